//! The adapter of Volcengine Ark against its fake: sizes, groups, models, uses of images.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::Polled;
use tollgate_upstream::error::UpstreamErrorKind::{Failed, Moderated};

use crate::booth::{Booth, film, picture, reference};
use crate::media_fakes::{booth, broken_rules, end, fetched, sized, sizes};

const NONE: [&str; 0] = [];

#[tokio::test]
async fn every_size_of_seedream_is_taken() {
    for (family, model) in [
        ("seedream-4.5", "doubao-seedream-4-5"),
        ("seedream-5-lite", "doubao-seedream-5-0-lite"),
    ] {
        let (fake, booth) = booth(Provider::Ark, model, Options::default()).await;
        for size in sizes(family) {
            let job = picture(family, 1, json!({ "size": sized(&size) }));
            let drawn = booth.draw(&job).await;
            assert!(drawn.unwrap().is_empty(), "{model} {size}");
        }
        assert_eq!(broken_rules(&fake), NONE);
        assert_eq!(booth.kept.things().len(), sizes(family).len());
    }
}

/// A group of `n`, as the families' validation makes it.
fn group(n: u32, prompt: &str) -> Value {
    json!({
        "prompt": prompt,
        "size": sized("2048x2048"),
        "extra": {
            "sequential_image_generation": "auto",
            "sequential_image_generation_options": { "max_images": n },
            "optimize_prompt_options": { "mode": "fast" },
        },
    })
}

#[tokio::test]
async fn groups_are_made_from_references_whole_or_in_part() {
    let model = "doubao-seedream-4-5";
    let (fake, mut booth) = booth(Provider::Ark, model, Options::default()).await;
    booth.references = [ImageFormat::Png, ImageFormat::Jpeg]
        .map(|format| reference("ark-fake", format, (400, 400)))
        .into();
    let job = picture("seedream-4.5", 4, group(4, "a day of a cat"));
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    let things = booth.kept.things();
    assert_eq!(things.len(), 4);
    let file = fetched(&things[0]).await;
    let there = image::load_from_memory(&file).unwrap();
    assert_eq!((there.width(), there.height()), (2048, 2048));

    let job = picture("seedream-4.5", 4, group(4, "[[fake:partial=3]]"));
    assert_eq!(booth.draw(&job).await.unwrap(), [Moderated]);
    assert_eq!(booth.kept.things().len(), 7);
    assert_eq!(broken_rules(&fake), NONE);
}

#[tokio::test]
async fn films_are_made_of_every_model_and_from_pictures_of_every_use() {
    for (model, family, image_use, count) in [
        ("seedance-1.0-pro", "seedance-1.0", None, 0),
        ("seedance-1.0-fast", "seedance-1.0", Some("first_frame"), 1),
        (
            "seedance-1.0-pro",
            "seedance-1.0",
            Some("first_and_last"),
            2,
        ),
        ("seedance-1.0-mini", "seedance-1.0", None, 0),
        ("seedance-1.0-mini", "seedance-1.0", Some("references"), 4),
        (
            "seedance-1.5-pro",
            "seedance-1.5-pro",
            Some("first_and_last"),
            2,
        ),
        ("seedance-2.0", "seedance-2.0", None, 0),
        ("seedance-2.0", "seedance-2.0", Some("references"), 9),
        ("seedance-2.0-fast", "seedance-2.0", Some("first_frame"), 1),
    ] {
        let (fake, mut booth) = booth(Provider::Ark, model, Options::default()).await;
        booth.references = vec![reference("ark-film", ImageFormat::Png, (400, 400)); count];
        let job = film(
            family,
            json!({
                "image_use": image_use, "seed": 4, "generate_audio": true, "camera_fixed": false,
                "return_last_frame": true, "watermark": false,
            }),
        );
        let provider_job_id = booth.film(&job).await.unwrap();
        assert!(
            matches!(end(&booth, &provider_job_id).await, Polled::Completed(_)),
            "{model}"
        );
        let things = booth.kept.things();
        assert_eq!(&fetched(&things[0]).await[4..8], b"ftyp", "{model}");
        let frame = fetched(&things[1]).await;
        assert!(image::load_from_memory(&frame).is_ok(), "{model}");
        assert_eq!(broken_rules(&fake), NONE, "{model}");
    }
}

async fn accepted(booth: &Booth, prompt: &str) -> String {
    let job = film("seedance-2.0", json!({ "prompt": prompt }));
    booth.film(&job).await.unwrap()
}

#[tokio::test]
async fn a_waiting_video_can_be_cancelled_and_a_finished_one_is_left_alone() {
    let options = Options {
        polls: 3,
        ..Options::default()
    };
    let (_fake, booth) = booth(Provider::Ark, "seedance-2.0", options).await;
    let provider_job_id = accepted(&booth, "a cat").await;
    booth.call_off(&provider_job_id).await.unwrap();
    assert_eq!(booth.failure(&provider_job_id).await.kind, Failed);

    let provider_job_id = accepted(&booth, "a cat").await;
    assert!(matches!(
        end(&booth, &provider_job_id).await,
        Polled::Completed(_)
    ));
    booth.call_off(&provider_job_id).await.unwrap();
}
