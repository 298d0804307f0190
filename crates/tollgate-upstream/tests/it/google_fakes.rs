//! The provider `gemini` against its fake, on both of its surfaces.

use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::provider::ProviderErrorKind::{
    Failed, KeyRefused, ModelMissing, Moderated, QuotaExhausted, RateLimited, Retryable, Unknown,
};
use tollgate_upstream::{Channel, Polled, ProviderErrorKind};

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
    use tollgate_media::image::Family;
    use tollgate_media::image::size::Sizes;
    for (family, model) in [
        ("gemini-2.5-flash-image", "gemini-2.5-flash-image-preview"),
        ("gemini-3-pro-image", "gemini-3-pro-image-preview-official"),
        ("gemini-3.1-flash-image", "gemini-3.1-flash-image-preview"),
        ("imagen-4", "imagen-4.0-partner"),
    ] {
        let Sizes::Ratios(sizes) = &Family::by_name(family).unwrap().sizes else {
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

/// What the fake does on demand, and what that is to the gateway, of pictures and of submitted films alike.
const BREAKS: &[(&str, ProviderErrorKind)] = &[
    ("blocked", Moderated),
    ("quota-exhausted", QuotaExhausted),
    ("rate-limited=7", RateLimited),
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
    for options in OPTIONS {
        let (_fake, mut booth) = google(options, "", Options::default()).await;
        for (directive, expected) in BREAKS {
            let prompt = json!({ "prompt": format!("a cat [[fake:{directive}]]") });
            for (family, model) in [
                ("gemini-3-pro-image", "gemini-3-pro-image-preview"),
                ("imagen-4", "imagen-4.0-partner"),
            ] {
                booth.model = ChannelModel::new(model, model);
                let error = booth.draw(&picture(family, 1, prompt.clone())).await;
                let error = error.unwrap_err();
                assert_eq!(error.kind, *expected, "{model} {directive}: {error}");
                if *expected == RateLimited {
                    assert_eq!(error.retry_after.map(|wait| wait.as_secs()), Some(7));
                }
            }
            booth.model = ChannelModel::new("veo-3.1-flash", "veo-3.1-flash");
            let error = booth.film(&film("veo-3.1", prompt)).await.unwrap_err();
            assert_eq!(error.kind, *expected, "veo {directive}: {error}");
        }
        assert!(booth.kept.things().is_empty());
        let model = "imagen-4.0-partner";
        booth.model = ChannelModel::new(model, model);
        let filtered = json!({ "prompt": "[[fake:content-filter]]" });
        let error = booth.draw(&picture("imagen-4", 1, filtered)).await;
        assert_eq!(error.unwrap_err().kind, Moderated);
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
                let ticket = booth.film(&film("veo-3.1", job.clone())).await.unwrap();
                let first = booth.poll(&ticket).await.unwrap();
                assert!(matches!(first, Polled::Waiting(None)), "{model}");
                assert!(matches!(end(&booth, &ticket).await, Polled::Done(_)));
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

#[tokio::test]
async fn films_end_in_every_way() {
    for options in OPTIONS {
        let (_fake, booth) = google(options, "veo-3.1-pro", Options::default()).await;
        let accepted = async |directive: &str| {
            let prompt = json!({ "prompt": format!("[[fake:{directive}]]") });
            booth.film(&film("veo-3.1", prompt)).await.unwrap()
        };
        for (directive, expected) in [
            ("content-filter", Moderated),
            ("fail", Retryable),
            ("expire", Retryable),
        ] {
            let ticket = accepted(directive).await;
            let error = booth.failure(&ticket).await;
            assert_eq!(error.kind, expected, "{directive}: {error}");
        }
        for (directive, expected) in [
            ("status=503@poll", Retryable),
            ("rate-limited@poll", RateLimited),
            ("key-refused@poll", KeyRefused),
            ("reset-before-head@poll", Retryable),
            ("truncated-json@poll", Retryable),
        ] {
            let ticket = accepted(directive).await;
            let error = booth.poll(&ticket).await.unwrap_err();
            assert_eq!(error.kind, expected, "{directive}: {error}");
        }
        let unknown = "models/veo-3.1-generate-preview/operations/nobody";
        assert_eq!(booth.failure(unknown).await.kind, Failed);
    }
}
