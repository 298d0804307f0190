//! Tests that every request becomes an error or a valid job, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};
use tollgate_core::TaskKind;
use tollgate_media::fields::Field;
use tollgate_media::image::{ImageMetadata, ImageSource};
use tollgate_media::{AnyFamily, Endpoint, Job, MediaJob as _, TaskModel, Units};

use crate::CATALOGUE;

/// Any JSON value, not very deep.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,30}".prop_map(Value::from),
        likely(),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec(("[a-z_]{1,12}", inner), 0..4).prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

/// Values that are valid for some field.
fn likely() -> impl Strategy<Value = Value> {
    let texts = "auto low high png jpeg transparent disabled fast 1:1 16:9 21:9 1k 2K 3K 4K 0.5K
        1024x1024 1024*1024 768x2048 5x5 https://a/b.png data:image/png;base64,AAAA
        #aabbcc 33.00% 480p 720p 1080p 1280x720 1920x1080 adaptive 8 tts zh";
    let texts: Vec<_> = texts.split_whitespace().collect();
    prop_oneof![
        prop::sample::select(texts).prop_map(Value::from),
        (0..16_i64).prop_map(Value::from),
        vec(Just("https://a/b.png"), 0..17).prop_map(Value::from),
        vec(vec(vec(0..9_u32, 3..5), 0..3), 0..3).prop_map(|boxes| serde_json::json!(boxes)),
        (0..17_i64).prop_map(|max| serde_json::json!({ "max_images": max })),
        (0.0..5.0_f64).prop_map(Value::from),
        (0..3_usize, 0..16_i64).prop_map(|(ratio, seconds)| serde_json::json!({
            "aspectRatio": (["16:9", "9:16", "1:1"][ratio]), "durationSeconds": seconds, "seed": seconds,
            "text": "a fox", "voice_speed": 1.5,
        })),
    ]
}

/// A body whose names are mostly fields of the family.
fn body(names: Vec<&'static str>) -> impl Strategy<Value = Map<String, Value>> {
    let name = prop_oneof![
        9 => prop::sample::select(names).prop_map(str::to_owned),
        1 => ".{0,40}",
    ];
    let value = prop_oneof![3 => likely(), 1 => any_json()];
    (vec((name, value), 0..8), any::<bool>()).prop_map(|(fields, with_prompt)| {
        let mut body: Map<String, Value> = fields.into_iter().collect();
        if with_prompt {
            for name in ["prompt", "input", "text"] {
                body.insert(name.to_owned(), "a fox".into());
            }
        }
        body
    })
}

fn request() -> impl Strategy<Value = (&'static TaskModel, Endpoint, Map<String, Value>)> {
    let targets: Vec<_> = AnyFamily::all()
        .flat_map(|family| {
            let endpoints = std::iter::once(family.endpoint())
                .chain(family.endpoint().aliases().iter().copied());
            let models = family.models().iter();
            let all =
                endpoints.flat_map(move |endpoint| models.clone().map(move |id| (*id, endpoint)));
            all.collect::<Vec<_>>()
        })
        .collect();
    prop::sample::select(targets).prop_flat_map(|(id, endpoint)| {
        let model = CATALOGUE.task_model(id, endpoint).unwrap();
        let fields = model
            .family
            .fields(endpoint.request_layout())
            .iter()
            .chain([&Field::CALLBACK_URL]);
        let names = fields
            .flat_map(|field| std::iter::once(field.name).chain(field.aliases.iter().copied()));
        body(names.collect()).prop_map(move |body| (model, endpoint, body))
    })
}

/// Checks the properties that every final job must have.
fn check(job: &Job, family: AnyFamily) -> Result<(), TestCaseError> {
    match job.units() {
        Units::Images(n) => prop_assert!((1..=15).contains(&n)),
        Units::Seconds(seconds) => prop_assert!((1..=15).contains(&seconds)),
        Units::Characters(n) => prop_assert!((1..=4096).contains(&n)),
    }
    match job {
        Job::Image(job) => {
            prop_assert!(job.output_compression.is_none_or(|percent| percent <= 100))
        }
        Job::Video(job) => {
            let pixels = job.size.pixels.unwrap();
            prop_assert!(pixels.width.is_multiple_of(2) && pixels.height.is_multiple_of(2));
            prop_assert_eq!(job.image_use.is_some(), !job.images.is_empty());
            prop_assert!(job.extra.is_empty() && job.seed.is_none_or(|seed| seed >= 0));
        }
        Job::Speech(job) => {
            prop_assert!(job.extra.is_empty() && !job.text.trim().is_empty());
            prop_assert!(job.speed.is_none_or(|speed| (0.25..=4.0).contains(&speed)));
        }
    }
    prop_assert!(job.input_images().len() <= family.input_limits().max_count + 1);
    if family.kind() != TaskKind::Speech {
        let pixels = job.pixels().unwrap();
        prop_assert!(pixels.width.min(pixels.height) >= 192 && pixels.pixels() < 20_000_000);
    }
    prop_assert!(serde_json::to_string(&job.echoed_fields()).unwrap().len() < 2000);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn any_body_is_an_error_or_a_legal_job((model, endpoint, body) in request(), strict: bool, width in 1..9000_u32, height in 1..9000_u32) {
        let family = model.family;
        match tollgate_media::parse_request(model, endpoint.request_layout(), &body, strict) {
            Err(error) => {
                prop_assert_eq!(error.kind.status(), 400);
                prop_assert!(error.message.chars().count() <= 330 && error.message.contains('`'), "{}", error);
                prop_assert!(!error.message.chars().any(char::is_control));
            }
            Ok(submission) => {
                let price = submission.price.clone();
                prop_assert!(submission.callback_url.as_ref().is_none_or(|url| url.len() <= 2048));
                let sources = vec![ImageSource::Url("https://a/b".to_owned()); submission.inputs.len()];
                let adjusted = serde_json::to_string(&submission.adjustments).unwrap();
                prop_assert!(adjusted.len() < 20_000);
                let mut job = submission.into_job(sources);
                prop_assert_eq!((job.kind(), job.family(), job.model()), (family.kind(), family.name(), model.name.as_str()));
                prop_assert_eq!(price.pixels.is_none(), job.pixels().is_none());
                let known = vec![Some(crate::metadata(width, height)); job.input_images().len()];
                let speaks = family.kind() == TaskKind::Speech;
                prop_assert!(speaks || job.pixels().is_some() || !known.is_empty());
                if family.apply_reference_metadata(&mut job, &known).is_ok() {
                    check(&job, family)?;
                }
                let stored = job.to_text().unwrap();
                prop_assert_eq!(Job::from_text(job.kind(), &stored).unwrap(), job);
            }
        }
    }

    #[test]
    fn any_model_name_is_found_or_rejected(name in ".{0,60}") {
        let found = CATALOGUE.task_model(&name, Endpoint::ImageGenerations);
        prop_assert_eq!(found.is_ok(), CATALOGUE.endpoint(&name).is_some());
    }

    #[test]
    fn any_bytes_are_metadata_or_an_error(start in 0..6_usize, tail in vec(any::<u8>(), 0..200)) {
        let starts: [&[u8]; 6] = [
            b"",
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x05\0\0\0\x05\x08\x02\0\0\0",
            b"\xff\xd8",
            b"RIFF\0\0\0\0WEBPVP8X",
            b"GIF89a",
            b"BM",
        ];
        let file = [starts[start], &tail].concat();
        if let Ok(found) = ImageMetadata::read(std::io::Cursor::new(&file), file.len() as u64) {
            prop_assert!(found.size.width > 0 && found.size.height > 0);
        }
    }
}
