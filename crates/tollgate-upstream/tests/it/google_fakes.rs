//! The provider `gemini` against its fake, on both of its surfaces.

use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::{Channel, Polled};

use crate::booth::{Booth, Thing, film, members, picture, reference};
use crate::media_fakes::{broken_rules, end, fetched, sized};
use crate::vendor::{KEY, channel};

const NONE: [&str; 0] = [];

/// Both surfaces.
const OPTIONS: [&str; 2] = [
    "{}",
    r#"{"platform": "vertex", "project": "p", "location": "l"}"#,
];

async fn google(options: &str, model: &str, more: Options) -> (Fake, Booth) {
    let keys = vec![KEY.to_owned()];
    let fake = tollgate_fakes::start(Provider::Gemini, Options { keys, ..more }).await;
    let fake = fake.unwrap();
    let options: Value = serde_json::from_str(options).unwrap();
    let channel = Channel {
        options: members(options),
        ..channel("gemini", fake.base_url())
    };
    let booth = Booth::of(channel, ChannelModel::new(model, model));
    (fake, booth)
}

#[tokio::test]
async fn every_ratio_and_tier_is_taken() {
    use tollgate_media::image::families;
    use tollgate_media::image::size::Sizes;
    for (family, model) in [
        ("gemini-2.5-flash-image", "gemini-2.5-flash-image-preview"),
        ("gemini-3-pro-image", "gemini-3-pro-image-preview-official"),
        ("gemini-3.1-flash-image", "gemini-3.1-flash-image-preview"),
        ("imagen-4", "imagen-4.0-partner"),
    ] {
        let Sizes::Ratios(sizes) = &families::by_name(family).unwrap().sizes else {
            panic!("{family} has a table");
        };
        for options in OPTIONS {
            let (fake, booth) = google(options, model, Options::default()).await;
            let tiers = sizes.tiers.iter().take(2).map(Some);
            for tier in tiers.chain(sizes.tiers.is_empty().then_some(None)) {
                for row in sizes.rows {
                    let mut job = picture(family, 1, json!({ "size": sized("64x64") }));
                    job.size.ratio = Some(row.ratio.to_owned());
                    job.size.tier = tier.map(|tier| (*tier).to_owned());
                    let drawn = booth.draw(&job).await;
                    assert!(drawn.is_ok(), "{model} {} {tier:?}: {drawn:?}", row.ratio);
                }
            }
            assert_eq!(broken_rules(&fake), NONE, "{model}");
        }
    }
}

#[tokio::test]
async fn pictures_are_made_from_references_after_a_search() {
    for options in OPTIONS {
        let model = "gemini-3.1-flash-image-preview";
        let (fake, mut booth) = google(options, model, Options::default()).await;
        booth.references = [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp]
            .map(|format| reference("google-fake", format, (64, 64)))
            .into();
        let job = picture(
            "gemini-3.1-flash-image",
            4,
            json!({ "extra": { "engine_search": true, "engine_image_search": true } }),
        );
        assert_eq!(booth.draw(&job).await.unwrap(), []);
        let files = booth.kept.files();
        assert_eq!(files.len(), 4);
        for file in files {
            let there = image::load_from_memory(&file).unwrap();
            assert_eq!((there.width(), there.height()), (1024, 1024), "no draft");
        }
        assert_eq!(broken_rules(&fake), NONE);
    }
}

#[tokio::test]
async fn films_are_made_from_text_and_from_a_first_frame() {
    for options in OPTIONS {
        for model in ["veo-3.1-flash", "veo-3.1-pro"] {
            let more = Options {
                polls: 2,
                ..Options::default()
            };
            let (fake, mut booth) = google(options, model, more).await;
            let size = json!({ "pixels": null, "ratio": "9:16", "resolution": "1080p" });
            let job = json!({
                "size": size, "negative_prompt": "dogs", "seed": 3, "generate_audio": true,
                "person_generation": "allow_all",
            });
            for with_frame in [false, true] {
                if with_frame {
                    let frame = reference("google-film", ImageFormat::Jpeg, (64, 64));
                    booth.references = vec![frame];
                }
                let provider_job_id = booth.film(&film("veo-3.1", job.clone())).await.unwrap();
                let first = booth.poll(&provider_job_id).await.unwrap();
                assert!(matches!(first, Polled::Pending(None)), "{model}");
                assert!(matches!(
                    end(&booth, &provider_job_id).await,
                    Polled::Completed(_)
                ));
            }
            for thing in booth.kept.things() {
                let file = match &thing {
                    Thing::Bytes(bytes) => bytes.to_vec(),
                    link => fetched(link).await,
                };
                assert_eq!(&file[4..8], b"ftyp", "{model}");
            }
            assert_eq!(booth.kept.things().len(), 2);
            assert_eq!(broken_rules(&fake), NONE, "{model}");
        }
    }
}
