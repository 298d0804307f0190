//! The provider `ark` against its fake, which refuses what the real one refuses and breaks in every way.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::provider::ProviderErrorKind::{
    Failed, KeyRefused, ModelMissing, Moderated, QuotaExhausted, RateLimited, Retryable, Unknown,
};
use tollgate_upstream::{Polled, ProviderErrorKind};

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

/// What the fake does on demand, and what that is to the gateway, of pictures and of submitted films alike.
const BREAKS: &[(&str, ProviderErrorKind)] = &[
    ("blocked", Moderated),
    ("quota-exhausted", QuotaExhausted),
    ("rate-limited", RateLimited),
    ("key-refused", KeyRefused),
    ("model-missing", ModelMissing),
    ("overloaded", Retryable),
    ("status=500", Retryable),
    ("html-200", Retryable),
    ("empty-body", Retryable),
    ("truncated-json", Unknown),
    ("reset-before-head", Unknown),
    ("reset-mid-body", Unknown),
    ("reset-after-accept", Unknown),
];

#[tokio::test]
async fn the_fake_breaks_in_every_way() {
    let model = "doubao-seedream-5-0-lite";
    let (_fake, pictures) = booth(Provider::Ark, model, Options::default()).await;
    let (_fake, films) = booth(Provider::Ark, "seedance-2.0", Options::default()).await;
    for (directive, expected) in BREAKS {
        let prompt =
            json!({ "prompt": format!("a cat [[fake:{directive}]]"), "size": sized("2048x2048") });
        let job = picture("seedream-5-lite", 1, prompt.clone());
        let error = pictures.draw(&job).await.unwrap_err();
        assert_eq!(error.kind, *expected, "{directive}: {error}");
        let job = film("seedance-2.0", without_size(prompt));
        let error = films.film(&job).await.unwrap_err();
        assert_eq!(error.kind, *expected, "{directive}: {error}");
    }
    let prompt = json!({ "prompt": "[[fake:content-filter]]", "size": sized("2048x2048") });
    let job = picture("seedream-5-lite", 1, prompt);
    let error = pictures.draw(&job).await.unwrap_err();
    assert_eq!(error.kind, Moderated);
    assert!(pictures.kept.things().is_empty());
}

fn without_size(mut job: Value) -> Value {
    job.as_object_mut().unwrap().remove("size");
    job
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
        let ticket = booth.film(&job).await.unwrap();
        assert!(
            matches!(end(&booth, &ticket).await, Polled::Done(_)),
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
async fn films_end_in_every_way() {
    let options = Options {
        polls: 2,
        ..Options::default()
    };
    let (_fake, booth) = booth(Provider::Ark, "seedance-2.0", options).await;
    for (directive, expected) in [
        ("content-filter", Moderated),
        ("fail", Retryable),
        ("expire", Failed),
    ] {
        let ticket = accepted(&booth, &format!("[[fake:{directive}]]")).await;
        let Polled::Failed(error) = end(&booth, &ticket).await else {
            panic!("{directive} is done");
        };
        assert_eq!(error.kind, expected, "{directive}");
    }
    for (directive, expected) in [
        ("status=503@poll", Retryable),
        ("rate-limited@poll", RateLimited),
        ("key-refused@poll", KeyRefused),
        ("reset-before-head@poll", Retryable),
        ("truncated-json@poll", Retryable),
    ] {
        let ticket = accepted(&booth, &format!("[[fake:{directive}]]")).await;
        let error = booth.poll(&ticket).await.unwrap_err();
        assert_eq!(error.kind, expected, "{directive}");
    }
    assert_eq!(booth.failure("cgt-20261121-nobody").await.kind, Failed);
}

#[tokio::test]
async fn what_waits_can_be_called_off_and_what_runs_cannot() {
    let options = Options {
        polls: 3,
        ..Options::default()
    };
    let (_fake, booth) = booth(Provider::Ark, "seedance-2.0", options).await;
    let ticket = accepted(&booth, "a cat").await;
    booth.call_off(&ticket).await.unwrap();
    assert_eq!(booth.failure(&ticket).await.kind, Failed);

    let ticket = accepted(&booth, "a cat").await;
    assert!(matches!(end(&booth, &ticket).await, Polled::Done(_)));
    booth.call_off(&ticket).await.unwrap();
}
