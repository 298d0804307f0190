//! Whatever a client sends is an error or a legal job, and never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value};
use tollgate_media::image::{self, FAMILIES, Source, facts};

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

/// Values that some field takes.
fn likely() -> impl Strategy<Value = Value> {
    let texts = prop::sample::select(vec![
        "auto",
        "low",
        "high",
        "png",
        "jpeg",
        "transparent",
        "disabled",
        "fast",
        "1:1",
        "16:9",
        "21:9",
        "1k",
        "2K",
        "3K",
        "4K",
        "0.5K",
        "1024x1024",
        "1024*1024",
        "768x2048",
        "5x5",
        "https://a/b.png",
        "data:image/png;base64,AAAA",
        "#aabbcc",
        "33.00%",
    ]);
    prop_oneof![
        texts.prop_map(Value::from),
        (0..16_i64).prop_map(Value::from),
        vec(Just("https://a/b.png"), 0..17).prop_map(Value::from),
        vec(vec(vec(0..9_u32, 3..5), 0..3), 0..3).prop_map(|boxes| serde_json::json!(boxes)),
        (0..17_i64).prop_map(|max| serde_json::json!({ "max_images": max })),
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
            body.insert("prompt".to_owned(), "a fox".into());
        }
        body
    })
}

fn request() -> impl Strategy<Value = (&'static str, Map<String, Value>)> {
    let ids: Vec<_> = FAMILIES
        .iter()
        .flat_map(|family| family.models.iter().map(move |id| (*id, *family)))
        .collect();
    prop::sample::select(ids).prop_flat_map(|(id, family)| {
        let fields = family.fields.iter();
        let names = fields
            .flat_map(|field| std::iter::once(field.name).chain(field.aliases.iter().copied()));
        body(names.collect()).prop_map(move |body| (id, body))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn any_body_is_an_error_or_a_legal_job((id, body) in request(), strict: bool, width in 1..9000_u32, height in 1..9000_u32) {
        let model = crate::model(id);
        match image::read(model, &body, strict) {
            Err(error) => {
                prop_assert_eq!(error.kind.status(), 400);
                prop_assert!(error.message.chars().count() <= 330 && error.message.contains('`'), "{}", error);
                prop_assert!(!error.message.chars().any(char::is_control));
            }
            Ok(submission) => {
                let family = model.family;
                let price = submission.price.clone();
                let sources = vec![Source::Url("https://a/b".to_owned()); submission.inputs.len()];
                let adjusted = serde_json::to_string(&submission.adjustments).unwrap();
                prop_assert!(adjusted.len() < 20_000);
                let mut job = submission.into_job(sources);
                prop_assert!((1..=15).contains(&job.n));
                prop_assert!(job.references.len() <= family.inputs.max_count);
                prop_assert_eq!(price.pixels.is_none(), job.size.pixels.is_none());
                prop_assert!(job.size.pixels.is_some() || !job.references.is_empty());
                prop_assert!(job.output_compression.is_none_or(|percent| percent <= 100));
                let known = vec![Some(crate::facts(width, height)); job.references.len()];
                if family.settle(&mut job, &known).is_ok() {
                    let pixels = job.size.pixels.unwrap();
                    prop_assert!(pixels.width.min(pixels.height) >= 192 && pixels.pixels() < 20_000_000);
                }
                let stored = serde_json::to_string(&job).unwrap();
                prop_assert_eq!(serde_json::from_str::<image::ImageJob>(&stored).unwrap(), job);
            }
        }
    }

    #[test]
    fn any_model_name_is_found_or_refused(name in ".{0,60}") {
        let found = CATALOGUE.image(&name, tollgate_media::Endpoint::ImageGenerations);
        prop_assert_eq!(found.is_ok(), CATALOGUE.endpoint(&name).is_some());
    }

    #[test]
    fn any_bytes_are_facts_or_an_error(start in 0..6_usize, tail in vec(any::<u8>(), 0..200)) {
        let starts: [&[u8]; 6] = [
            b"",
            b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x05\0\0\0\x05\x08\x02\0\0\0",
            b"\xff\xd8",
            b"RIFF\0\0\0\0WEBPVP8X",
            b"GIF89a",
            b"BM",
        ];
        let file = [starts[start], &tail].concat();
        if let Ok(found) = facts::read(std::io::Cursor::new(&file), file.len() as u64) {
            prop_assert!(found.size.width > 0 && found.size.height > 0);
        }
    }
}
