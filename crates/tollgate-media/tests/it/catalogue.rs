//! Tests which family and endpoint serve each model id.

use serde_json::json;
use tollgate_core::{ErrorKind, TaskKind};
use tollgate_media::{AnyFamily, Catalogue, Endpoint, ExtraModel, LinkTtl, MediaJob as _};

use crate::{CATALOGUE, cases, parse};

const TASK_ENDPOINTS: [Endpoint; 7] = [
    Endpoint::ImageGenerations,
    Endpoint::ImageEdits,
    Endpoint::VideoGenerations,
    Endpoint::Videos,
    Endpoint::AudioSpeech,
    Endpoint::NativeSpeech,
    Endpoint::MultimodalAudio,
];

/// `cases/models.txt`: a family or chat endpoint, then model ids.
#[test]
fn every_model_has_its_family_and_is_sent_to_its_endpoint() {
    let (mut tasks, mut count) = (0, 0);
    for line in cases::read_file("models.txt").lines() {
        let mut names = line.split_whitespace();
        let owner = names.next().unwrap();
        let family = AnyFamily::by_name(owner);
        let path = family.map_or(owner, |family| family.endpoint().path());
        for id in names {
            count +=
                usize::from(family.is_some() || CATALOGUE.models().any(|(name, _)| name == id));
            tasks += usize::from(family.is_some());
            for endpoint in TASK_ENDPOINTS {
                match (CATALOGUE.task_model(id, endpoint), family) {
                    (Ok(model), Some(family)) => {
                        assert_eq!(
                            (&*model.name, model.base_model, model.family),
                            (id, id, family)
                        );
                        assert_eq!(family.endpoint(), endpoint.canonical());
                        assert_eq!(CATALOGUE.endpoint(id), Some(endpoint.canonical()));
                    }
                    (Ok(_), None) => panic!("{id} is a chat model"),
                    (Err(error), _) => {
                        assert_ne!(Some(endpoint.canonical()), family.map(AnyFamily::endpoint));
                        assert_eq!(error.kind, ErrorKind::InvalidRequest, "{id}: {error}");
                        let right = format!("POST {path}");
                        assert!(error.message.contains(id), "{id}: {error}");
                        assert!(error.message.contains(&right), "{id}: {error}");
                    }
                }
            }
        }
    }
    assert_eq!(CATALOGUE.task_models().count(), tasks);
    assert_eq!(
        AnyFamily::all().map(|f| f.models().len()).sum::<usize>(),
        tasks
    );
    assert_eq!(CATALOGUE.models().count(), count);
}

#[test]
fn unknown_models_are_not_found() {
    let long = "x".repeat(100_000);
    for id in [
        "",
        "GPT-IMAGE-2-OFFICIAL",
        "gpt-image-2",
        "sora-3",
        "\u{0}",
        &long,
    ] {
        for endpoint in TASK_ENDPOINTS {
            let error = CATALOGUE.task_model(id, endpoint).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound);
            assert!(error.message.len() < 200 && !error.message.contains('\0'));
        }
        assert_eq!(CATALOGUE.endpoint(id), None);
    }
}

#[test]
fn configured_models_follow_the_rules_of_the_model_that_they_are_like() {
    let configured = [
        ("my-wan", "wan2.7-image-pro", "wan2.7-image-pro"),
        ("my-plain-wan", "wan2.7-image", "wan2.7-image"),
        ("my-lite", "seedream-5-lite", "doubao-seedream-5-0-lite"),
        (
            "my-nano",
            "gemini-3-pro-image-preview-official",
            "gemini-3-pro-image-preview-official",
        ),
        ("my-mini", "seedance-1.0-mini", "seedance-1.0-mini"),
        ("my-pro", "seedance-1.0-pro", "seedance-1.0-pro"),
        ("my-veo", "veo-3.1", "veo-3.1-flash"),
        ("my-voice", "kling-v3", "kling-v3"),
    ];
    let mut extras: Vec<_> = configured.map(|(name, like, _)| extra(name, like)).into();
    extras.push(extra("my-chat", "gpt-5"));
    let catalogue = Catalogue::new(&extras).unwrap();
    let model = |name: &str| {
        let endpoint = catalogue.endpoint(name).unwrap();
        catalogue.task_model(name, endpoint).unwrap()
    };
    for (name, _, base) in configured {
        assert_eq!(model(name).base_model, base);
    }
    assert_eq!(
        catalogue.endpoint("my-chat"),
        Some(Endpoint::ChatCompletions)
    );
    let four_k = json!({ "prompt": "x", "size": "4K" });
    let fallback = json!({ "prompt": "x", "official_fallback": true });
    let three = json!({ "prompt": "x", "images": ["https://a/1", "https://a/2", "https://a/3"] });
    for (name, body, accepted) in [
        ("my-wan", &four_k, true),
        ("my-plain-wan", &four_k, false),
        ("my-nano", &fallback, false),
        ("my-mini", &three, true),
        ("my-pro", &three, false),
    ] {
        let parsed = parse(model(name), body, true);
        assert_eq!(parsed.is_ok(), accepted, "{name}");
        assert!(parsed.is_err() || parsed.unwrap().job().model() == name);
    }
}

#[test]
fn an_alias_has_the_first_name_of_its_model() {
    let added = [
        extra("fast", "gpt-5"),
        extra("portrait", "doubao-seedream-4.5"),
        extra("clips", "veo-3.1"),
    ];
    let catalogue = Catalogue::new(&added).unwrap();
    for (name, first) in [
        ("doubao-seedance-4-5", "doubao-seedance-4-5"),
        ("Doubao-Seedream-4.5", "doubao-seedance-4-5"),
        ("doubao-seedream-4-5", "doubao-seedance-4-5"),
        ("Doubao-Seedream-5.0-lite", "doubao-seedream-5-0-lite"),
        ("kling-v3", "native-v3"),
        ("gpt-image-1.5-official", "gpt-image-1.5-official"),
        ("wan2.7-image", "wan2.7-image"),
        ("fast", "gpt-5"),
        ("portrait", "doubao-seedance-4-5"),
        ("clips", "veo-3.1-flash"),
        ("unknown", "unknown"),
    ] {
        let names = catalogue.names(name);
        assert_eq!((names.own, names.first), (name, first));
    }
}

#[test]
fn invalid_configuration_is_one_sentence() {
    let long = "x".repeat(129);
    for (models, message) in [
        (vec![("gpt-5", "gpt-5")], "in the catalogue already"),
        (
            vec![("a", "gpt-5"), ("a", "gpt-5")],
            "in the catalogue already",
        ),
        (vec![("a", "gpt-6")], "seedream-5-lite"),
        (
            vec![("a", "gpt-5"), ("b", "a")],
            "neither a built-in model nor a family",
        ),
        (vec![("", "gpt-5")], "1 to 128 printable"),
        (vec![("a b", "gpt-5")], "1 to 128 printable"),
        (vec![(&*long, "gpt-5")], "1 to 128 printable"),
    ] {
        let models: Vec<_> = models
            .into_iter()
            .map(|(name, like)| extra(name, like))
            .collect();
        let error = Catalogue::new(&models).err().unwrap();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn families_are_found_by_name_with_their_link_ttl_and_safety_review() {
    for family in AnyFamily::all() {
        let name = family.name();
        assert_eq!(AnyFamily::by_name(name), Some(family));
        assert_eq!(AnyFamily::all().filter(|f| f.name() == name).count(), 1);
        let long = if name == "seedream-5-lite" {
            LinkTtl::Long
        } else {
            LinkTtl::Standard
        };
        assert_eq!(
            (family.link_ttl(), family.safety_review()),
            (long, name == "gpt-image-2")
        );
        let image = tollgate_media::image::families::by_name(name).map(|family| family.name);
        assert_eq!(image, (family.kind() == TaskKind::Image).then_some(name));
    }
    assert!(tollgate_media::image::families::by_name("nothing").is_none());
    assert_eq!(AnyFamily::by_name("nothing"), None);
    assert_eq!((LinkTtl::Standard.hours(), LinkTtl::Long.hours()), (24, 72));
}

fn extra(name: &str, like: &str) -> ExtraModel {
    ExtraModel {
        name: name.to_owned(),
        like: like.to_owned(),
    }
}
