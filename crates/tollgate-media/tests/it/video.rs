//! The video families: the docs pages.

use serde_json::{Value, json};
use tollgate_core::{ApiError, ErrorKind};
use tollgate_media::image::PixelSize;
use tollgate_media::video::{FAMILIES, VideoJob};
use tollgate_media::{Endpoint, Job, MediaJob as _, RequestLayout, Submission, Units};

use crate::{CATALOGUE, URL, adjustment_values};

fn read(id: &str, body: &Value, strict: bool) -> Result<Submission, ApiError> {
    let mut body = body.as_object().unwrap().clone();
    body.entry("prompt").or_insert_with(|| "a fox".into());
    let model = CATALOGUE.task_model(id, Endpoint::Videos).unwrap();
    tollgate_media::parse_request(model, RequestLayout::Standard, &body, strict)
}

pub(crate) fn submit(id: &str, body: &Value) -> Submission {
    read(id, body, false).unwrap_or_else(|error| panic!("{id} {body}: {error}"))
}

pub(crate) fn video(submission: &Submission) -> &VideoJob {
    match submission.job() {
        Job::Video(job) => job,
        other => panic!("no video: {other:?}"),
    }
}

/// The job of a good request that nothing is changed in.
pub(crate) fn job(id: &str, body: &Value) -> VideoJob {
    let submission = submit(id, body);
    assert_eq!(submission.adjustments, [], "{id} {body}");
    video(&submission).clone()
}

pub(crate) fn rejection(id: &str, body: &Value) -> String {
    match read(id, body, false) {
        Ok(submission) => panic!("{id} {body} was taken: {:?}", submission.job()),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::InvalidRequest, "{id} {body}");
            assert!(error.message.len() <= 330, "too long: {error}");
            error.message
        }
    }
}

pub(crate) fn pixels(job: &VideoJob) -> String {
    job.size
        .pixels
        .map_or("follows".to_owned(), |size| size.to_string())
}

#[test]
fn defaults() {
    for (id, family, seconds, tier, size) in [
        ("sora-2", "sora-2", 8, "720p", "1280x720"),
        ("veo-3.1-flash", "veo-3.1", 8, "720p", "1280x720"),
        ("veo-3.1-pro", "veo-3.1", 8, "720p", "1280x720"),
        (
            "grok-imagine-video-1.5",
            "grok-imagine-video",
            6,
            "480p",
            "854x480",
        ),
        ("seedance-1.0-fast", "seedance-1.0", 5, "720p", "1248x704"),
        ("seedance-1.0-mini", "seedance-1.0", 5, "720p", "1248x704"),
        ("seedance-1.0-pro", "seedance-1.0", 5, "720p", "1248x704"),
        (
            "seedance-1.5-pro",
            "seedance-1.5-pro",
            5,
            "720p",
            "1280x720",
        ),
        ("seedance-2.0", "seedance-2.0", 5, "720p", "1280x720"),
        ("seedance-2.0-fast", "seedance-2.0", 5, "720p", "1280x720"),
    ] {
        let submission = submit(id, &json!({}));
        let job = video(&submission);
        assert_eq!((job.model.as_str(), job.family.as_str()), (id, family));
        assert_eq!((job.seconds, pixels(job).as_str()), (seconds, size), "{id}");
        assert_eq!(job.size.ratio.as_deref(), Some("16:9"));
        assert_eq!(job.size.resolution.as_deref(), Some(tier));
        assert_eq!(job.image_use, None);
        assert!(job.extra.is_empty());
        assert_eq!(submission.adjustments, []);
        assert_eq!(submission.job().units(), Units::Seconds(seconds));
        assert_eq!(submission.price.size, "16:9");
        assert_eq!(submission.price.pixels.as_deref(), Some(size));
        assert_eq!(submission.price.resolution.as_deref(), Some(tier));
        let shown = json!({ "seconds": seconds.to_string(), "size": size });
        assert_eq!(Value::Object(submission.job().echoed_fields()), shown);
    }
    let seedance = job("seedance-1.5-pro", &json!({}));
    assert_eq!(
        (
            seedance.generate_audio,
            seedance.return_last_frame,
            seedance.camera_fixed,
            seedance.watermark,
            seedance.seed
        ),
        (Some(true), Some(false), None, Some(false), None)
    );
    assert_eq!(job("seedance-1.0-pro", &json!({})).generate_audio, None);
    assert_eq!(job("veo-3.1-pro", &json!({})).generate_audio, Some(true));
    let sora = job("sora-2", &json!({}));
    assert_eq!((sora.generate_audio, sora.watermark), (None, None));
}

#[test]
fn lengths() {
    for (id, good, bad) in [
        ("sora-2", vec![8, 12], vec![4, 10, 16]),
        ("veo-3.1-flash", vec![4, 6, 8], vec![3, 5, 7, 10]),
        ("grok-imagine-video-1.5", vec![1, 6, 15], vec![0, 16]),
        ("seedance-1.0-pro", vec![2, 5, 12], vec![1, 13]),
        ("seedance-1.5-pro", vec![4, 10, 12], vec![3, 13]),
        ("seedance-2.0-fast", vec![4, 5, 15], vec![3, 16, -1]),
    ] {
        for seconds in good {
            let text = seconds.to_string();
            for body in [
                json!({ "seconds": text }),
                json!({ "seconds": seconds }),
                json!({ "duration": seconds }),
                json!({ "duration": seconds, "seconds": text }),
            ] {
                assert_eq!(i64::from(job(id, &body).seconds), seconds, "{id} {body}");
            }
        }
        for seconds in bad {
            for (field, value) in [
                ("seconds", json!(seconds.to_string())),
                ("seconds", json!(seconds)),
                ("duration", json!(seconds)),
            ] {
                let message = rejection(id, &json!({ field: value }));
                assert!(
                    message.starts_with(&format!("`{field}` must be ")),
                    "{message}"
                );
            }
        }
    }
    for (body, message) in [
        (
            json!({ "seconds": "10" }),
            "`seconds` must be 8 or 12, in whole seconds, got \"10\"",
        ),
        (
            json!({ "duration": "8" }),
            "`duration` must be 8 or 12, in whole seconds, sent as a JSON number without quotes, got \"8\"",
        ),
        (
            json!({ "seconds": "8", "duration": 12 }),
            "`seconds` and `duration` must not differ, got 8 and 12",
        ),
        (
            json!({ "seconds": "08" }),
            "`seconds` must be 8 or 12, in whole seconds, got \"08\"",
        ),
        (
            json!({ "seconds": "8s" }),
            "`seconds` must be 8 or 12, in whole seconds, got \"8s\"",
        ),
        (
            json!({ "seconds": 8.0 }),
            "`seconds` must be 8 or 12, in whole seconds, got 8.0",
        ),
        (
            json!({ "seconds": true }),
            "`seconds` must be 8 or 12, in whole seconds, got true",
        ),
    ] {
        assert_eq!(rejection("sora-2", &body), message);
    }
    assert_eq!(job("sora-2", &json!({ "seconds": null })).seconds, 8);
}

#[test]
fn every_cell_of_every_table_is_made_as_asked() {
    for family in FAMILIES {
        // The model of the family that has every tier.
        let id = family.models[0];
        for row in family.sizes.rows {
            for (tier, (width, height)) in family.sizes.tiers.iter().zip(row.pixels) {
                let size = PixelSize::new(*width, *height);
                assert!(width % 2 == 0 && height % 2 == 0, "{id} {size}");
                for body in [
                    json!({ "size": size.to_string() }),
                    json!({ "aspect_ratio": row.ratio, "resolution": tier }),
                    json!({ "aspect_ratio": row.ratio, "resolution": tier.to_uppercase() }),
                    json!({ "size": size.to_string(), "aspect_ratio": row.ratio, "resolution": tier }),
                ] {
                    let job = job(id, &body);
                    assert_eq!(job.size.pixels, Some(size), "{id} {body}");
                    assert_eq!(job.size.ratio.as_deref(), Some(row.ratio));
                    assert_eq!(job.size.resolution.as_deref(), Some(*tier));
                }
                let named: Vec<f64> = row.ratio.split(':').map(|n| n.parse().unwrap()).collect();
                let off = f64::from(*width) / f64::from(*height) / (named[0] / named[1]);
                assert!(
                    (0.95..1.06).contains(&off),
                    "{id} {size} is no {}",
                    row.ratio
                );
            }
        }
        assert!(
            family
                .sizes
                .rows
                .iter()
                .any(|row| row.ratio == family.sizes.default_ratio)
        );
        assert!(family.durations.contains(family.durations.default()));
    }
}

#[test]
fn sizes_of_a_ratio_and_its_lines_mean_the_models_own() {
    for (id, asked, used) in [
        ("seedance-1.0-pro", "1280x720", "1248x704"),
        ("seedance-1.0-pro", "1920x1080", "1920x1088"),
        ("seedance-1.5-pro", "854x480", "864x496"),
        ("seedance-2.0", "720x720", "960x960"),
        ("grok-imagine-video-1.5", "848x480", "854x480"),
    ] {
        let submission = submit(id, &json!({ "size": asked }));
        assert_eq!(pixels(video(&submission)), used, "{id}");
        assert_eq!(
            adjustment_values(&submission.adjustments),
            [("size".to_owned(), json!(asked), json!(used))]
        );
        assert_eq!(submission.price.size, asked);
    }
}

#[test]
fn bad_sizes() {
    for (id, body, words) in [
        (
            "sora-2",
            json!({ "size": "1024x1792" }),
            "`size` must be one of 1280x720, 720x1280, got \"1024x1792\"",
        ),
        (
            "sora-2",
            json!({ "size": "16:9" }),
            "a ratio goes in `aspect_ratio`",
        ),
        ("sora-2", json!({ "size": 720 }), "`size` must be a string"),
        (
            "sora-2",
            json!({ "aspect_ratio": "1:1" }),
            "`aspect_ratio` must be one of 16:9, 9:16, got \"1:1\"",
        ),
        (
            "sora-2",
            json!({ "resolution": "1080p" }),
            "`resolution` must be 720p, the only value",
        ),
        (
            "veo-3.1-pro",
            json!({ "resolution": "480p" }),
            "720p, 1080p, 4k",
        ),
        (
            "veo-3.1-pro",
            json!({ "resolution": "1080p", "duration": 4 }),
            "`duration` must be 8 at 1080p, got 4",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "resolution": "4k", "durationSeconds": 6 } }),
            "`metadata.durationSeconds` must be 8 at 4k, got 6",
        ),
        (
            "grok-imagine-video-1.5",
            json!({ "size": "100x100" }),
            "pixels such as 854x480, of the ratios 16:9, 9:16, 1:1, 4:3, 3:4, 3:2, 2:3 at 480p, 720p, 1080p",
        ),
        (
            "grok-imagine-video-1.5",
            json!({ "aspect_ratio": "21:9" }),
            "`aspect_ratio` must be one of",
        ),
        (
            "seedance-1.0-pro",
            json!({ "resolution": "4k" }),
            "480p, 720p, 1080p",
        ),
        (
            "seedance-2.0-fast",
            json!({ "resolution": "1080p" }),
            "`resolution` must be 480p or 720p for seedance-2.0-fast",
        ),
        (
            "seedance-2.0-fast",
            json!({ "size": "1920x1080" }),
            "`size` must be 480p or 720p for seedance-2.0-fast",
        ),
        (
            "seedance-2.0",
            json!({ "size": "1280x720", "aspect_ratio": "9:16" }),
            "`size` 1280x720 is 16:9, but `aspect_ratio` is 9:16: leave one out",
        ),
        (
            "seedance-2.0",
            json!({ "size": "1280x720", "resolution": "1080p" }),
            "`size` 1280x720 is 720p, but `resolution` is 1080p: leave one out",
        ),
        (
            "seedance-2.0",
            json!({ "aspect_ratio": "adaptive" }),
            "needs an image that is one, got none",
        ),
    ] {
        let message = rejection(id, &body);
        assert!(message.contains(words), "{id} {body}: {message}");
    }
}

#[test]
fn metadata_wins_over_what_stands_beside_it() {
    let submission = submit(
        "veo-3.1-pro",
        &json!({
            "seconds": "4", "duration": 4, "aspect_ratio": "16:9", "resolution": "720p",
            "metadata": {
                "durationSeconds": 8, "aspectRatio": "9:16", "resolution": "1080P", "negativePrompt": "rain",
                "personGeneration": "allow_adult", "seed": 7, "generateAudio": false,
            },
        }),
    );
    let asked = video(&submission);
    assert_eq!((asked.seconds, pixels(asked).as_str()), (8, "1080x1920"));
    assert_eq!(asked.negative_prompt.as_deref(), Some("rain"));
    assert_eq!(asked.person_generation.as_deref(), Some("allow_adult"));
    assert_eq!((asked.seed, asked.generate_audio), (Some(7), Some(false)));
    let said = [
        ("seconds", json!(4), json!(8)),
        ("duration", json!(4), json!(8)),
        ("aspect_ratio", json!("16:9"), json!("9:16")),
        ("resolution", json!("720p"), json!("1080p")),
    ];
    let said = said.map(|(field, asked, used)| (field.to_owned(), asked, used));
    assert_eq!(adjustment_values(&submission.adjustments), said);

    let body = json!({ "size": "1920x1080", "metadata": { "aspectRatio": "9:16" } });
    let submission = submit("veo-3.1-pro", &body);
    assert_eq!(pixels(video(&submission)), "1080x1920");
    assert_eq!(
        adjustment_values(&submission.adjustments),
        [("size".to_owned(), json!("1920x1080"), json!("1080x1920"))]
    );
    // Nothing to say where they agree.
    let same = json!({ "seconds": "6", "metadata": { "durationSeconds": 6 } });
    assert_eq!(job("veo-3.1-pro", &same).seconds, 6);
}

#[test]
fn metadata_of_each_family() {
    let full = json!({ "metadata": {
        "generate_audio": false, "return_last_frame": true, "camera_fixed": true, "seed": 4_294_967_295_u32, "watermark": true,
    } });
    let job_of = |id: &str| video(&submit(id, &full)).clone();
    let pro = job_of("seedance-1.5-pro");
    assert_eq!(
        (
            pro.generate_audio,
            pro.return_last_frame,
            pro.camera_fixed,
            pro.seed,
            pro.watermark
        ),
        (
            Some(false),
            Some(true),
            Some(true),
            Some(4_294_967_295),
            Some(true)
        )
    );
    for (id, ignored) in [
        ("seedance-1.0-pro", vec!["metadata.generate_audio"]),
        ("seedance-1.5-pro", vec![]),
        ("seedance-2.0", vec!["metadata.camera_fixed"]),
        (
            "veo-3.1-pro",
            vec![
                "metadata.generate_audio",
                "metadata.return_last_frame",
                "metadata.camera_fixed",
                "metadata.watermark",
            ],
        ),
    ] {
        let submission = submit(id, &full);
        let fields: Vec<&str> = submission
            .adjustments
            .iter()
            .map(|a| a.field.as_str())
            .collect();
        assert_eq!(fields, ignored, "{id}");
        assert_eq!(read(id, &full, true).is_err(), !ignored.is_empty(), "{id}");
    }
    let sora = submit("sora-2", &json!({ "metadata": { "seed": 1 }, "n": 2 }));
    assert_eq!(
        adjustment_values(&sora.adjustments),
        [
            ("metadata.seed".to_owned(), json!(1), Value::Null),
            ("n".to_owned(), json!(2), Value::Null),
        ]
    );
    let any = job("seedance-2.0", &json!({ "metadata": { "seed": -1 } }));
    assert_eq!(any.seed, None);
    let hint = submit("seedance-2.0", &json!({ "watermark": true }));
    assert_eq!(hint.adjustments[0].why, "send it in `metadata`");
    for (id, body, words) in [
        (
            "veo-3.1-pro",
            json!({ "metadata": "x" }),
            "`metadata` must be an object",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "seed": "7" } }),
            "`metadata.seed` must be a whole number",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "seed": -1 } }),
            "from 0 to 4294967295",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "durationSeconds": "8" } }),
            "`metadata.durationSeconds` must be 4, 6 or 8",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "aspectRatio": "1:1" } }),
            "`metadata.aspectRatio` must be one of 16:9, 9:16",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "resolution": "8k" } }),
            "`metadata.resolution` must be one of 720p, 1080p, 4k",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "personGeneration": "all" } }),
            "allow_all, allow_adult, dont_allow",
        ),
        (
            "veo-3.1-pro",
            json!({ "metadata": { "generateAudio": 1 } }),
            "`metadata.generateAudio` must be true or false",
        ),
        (
            "seedance-2.0",
            json!({ "metadata": { "watermark": "yes" } }),
            "`metadata.watermark` must be true or false",
        ),
        (
            "seedance-2.0",
            json!({ "metadata": { "seed": -2 } }),
            "from -1 to 4294967295",
        ),
    ] {
        let message = rejection(id, &body);
        assert!(message.contains(words), "{id} {body}: {message}");
    }
}

#[test]
fn prompts() {
    let blank = json!({ "prompt": "  " });
    for family in FAMILIES {
        let message = rejection(family.models[0], &blank);
        assert!(
            message.starts_with("`prompt` is required and must not be empty"),
            "{message}"
        );
        let with_image = json!({ "prompt": "", "image": URL });
        let optional = family.name.starts_with("seedance");
        assert_eq!(read(family.models[0], &with_image, false).is_ok(), optional);
    }
    let long = json!({ "prompt": "x".repeat(32_001) });
    assert!(rejection("sora-2", &long).contains("at most 32000 characters, got 32001"));
}
