//! The catalogue: every id of the docs pages.

use serde_json::{Map, json};
use tollgate_core::{ErrorKind, TaskKind};
use tollgate_media::LinkTtl;
use tollgate_media::image::FAMILIES;
use tollgate_media::{AnyFamily, Catalogue, Endpoint, ExtraModel, MediaJob as _, RequestLayout};

use crate::CATALOGUE;

fn extra(name: &str, like: &str) -> ExtraModel {
    ExtraModel {
        name: name.to_owned(),
        like: like.to_owned(),
    }
}

#[test]
fn every_image_model_has_its_family() {
    let expected = [
        ("gpt-image-2-official", "gpt-image-2"),
        ("gpt-image-1-official", "gpt-image-1"),
        ("gpt-image-1.5-official", "gpt-image-1"),
        ("gpt-image-2.5-async", "gpt-image-2.5-async"),
        ("doubao-seedance-4-5", "seedream-4.5"),
        ("Doubao-Seedream-4.5", "seedream-4.5"),
        ("doubao-seedream-4.5", "seedream-4.5"),
        ("doubao-seedream-4-5", "seedream-4.5"),
        ("doubao-seedream-5-0-lite", "seedream-5-lite"),
        ("doubao-seedream-5.0-lite", "seedream-5-lite"),
        ("Doubao-Seedream-5.0-lite", "seedream-5-lite"),
        ("grok-imagine-1.0-partner", "grok-imagine"),
        ("imagen-4.0-partner", "imagen-4"),
        ("gemini-2.5-flash-image-preview", "gemini-2.5-flash-image"),
        (
            "gemini-2.5-flash-image-preview-official",
            "gemini-2.5-flash-image",
        ),
        ("gemini-3.1-flash-image-preview", "gemini-3.1-flash-image"),
        (
            "gemini-3.1-flash-image-preview-official",
            "gemini-3.1-flash-image",
        ),
        ("gemini-3-pro-image-preview", "gemini-3-pro-image"),
        ("gemini-3-pro-image-preview-official", "gemini-3-pro-image"),
        ("wan2.7-image-pro", "wan2.7"),
        ("wan2.7-image", "wan2.7"),
    ];
    for (id, family) in expected {
        let found = CATALOGUE
            .task_model(id, Endpoint::ImageGenerations)
            .unwrap();
        assert_eq!(
            (found.name.as_str(), found.base_model, found.family.name()),
            (id, id, family)
        );
    }
    let edit = CATALOGUE
        .task_model("grok-imagine-1.0-edit-partner", Endpoint::ImageEdits)
        .unwrap();
    assert_eq!(edit.family.name(), "grok-imagine-edit");
    assert_eq!(
        CATALOGUE
            .task_models()
            .filter(|found| found.family.kind() == TaskKind::Image)
            .count(),
        expected.len() + 1
    );
    assert_eq!(
        FAMILIES.iter().map(|f| f.models.len()).sum::<usize>(),
        expected.len() + 1
    );
}

#[test]
fn other_models_are_sent_to_their_endpoint() {
    for (id, right) in [
        ("gpt-5", "POST /api/v1/chat/completions"),
        ("gpt-4o", "POST /api/v1/chat/completions"),
        (
            "claude-opus-4-1-20250805-thinking",
            "POST /api/v1/chat/completions",
        ),
        ("gemini-2.5-flash", "POST /api/v1/chat/completions"),
        ("deepseek-v3-0324", "POST /api/v1/chat/completions"),
        (
            "doubao-seed-1-6-thinking-250715",
            "POST /api/v1/chat/completions",
        ),
        ("GPT-4o-image", "POST /v1/responses"),
        ("gpt-4-vision", "POST /v1/responses"),
        ("sora-2", "POST /v1/video/generations"),
        ("seedance-2.0-fast", "POST /v1/video/generations"),
        ("native-v3", "POST /v1/audio/speech"),
        ("grok-imagine-1.0-edit-partner", "POST /v1/images/edits"),
    ] {
        let error = CATALOGUE
            .task_model(id, Endpoint::ImageGenerations)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
        assert!(
            error.message.contains(id) && error.message.contains(right),
            "{error}"
        );
    }
    let error = CATALOGUE
        .task_model("gpt-image-2-official", Endpoint::ImageEdits)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    assert!(
        error.message.contains("POST /v1/images/generations"),
        "{error}"
    );
    assert_eq!(CATALOGUE.models().count(), 22 + 21 + 2 + 10 + 2);
}

#[test]
fn every_video_and_speech_model_has_its_family() {
    let videos = [
        ("sora-2", "sora-2"),
        ("veo-3.1-flash", "veo-3.1"),
        ("veo-3.1-pro", "veo-3.1"),
        ("grok-imagine-video-1.5", "grok-imagine-video"),
        ("seedance-1.0-fast", "seedance-1.0"),
        ("seedance-1.0-mini", "seedance-1.0"),
        ("seedance-1.0-pro", "seedance-1.0"),
        ("seedance-1.5-pro", "seedance-1.5-pro"),
        ("seedance-2.0", "seedance-2.0"),
        ("seedance-2.0-fast", "seedance-2.0"),
    ];
    let speech = [("native-v3", "native-v3"), ("kling-v3", "native-v3")];
    let (video, audio) = (
        &[Endpoint::VideoGenerations, Endpoint::Videos][..],
        &[
            Endpoint::AudioSpeech,
            Endpoint::NativeSpeech,
            Endpoint::MultimodalAudio,
        ][..],
    );
    for (models, ways, others, kind) in [
        (&videos[..], video, audio, TaskKind::Video),
        (&speech[..], audio, video, TaskKind::Speech),
    ] {
        for (id, family) in models {
            for endpoint in ways {
                let found = CATALOGUE.task_model(id, *endpoint).unwrap();
                assert_eq!(
                    (found.name.as_str(), found.base_model, found.family.name()),
                    (*id, *id, *family)
                );
                assert_eq!(
                    (found.family.kind(), found.family.endpoint()),
                    (kind, endpoint.canonical())
                );
            }
            for endpoint in others {
                let error = CATALOGUE.task_model(id, *endpoint).unwrap_err();
                assert_eq!(error.kind, ErrorKind::InvalidRequest);
                assert!(error.message.contains(ways[0].path()), "{error}");
            }
        }
    }
    assert_eq!(
        CATALOGUE.task_models().count(),
        22 + videos.len() + speech.len()
    );
    let error = CATALOGUE.task_model("gpt-5", Endpoint::Videos).unwrap_err();
    assert!(
        error.message.contains("POST /api/v1/chat/completions"),
        "{error}"
    );
    let error = CATALOGUE
        .task_model("sora-3", Endpoint::Videos)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[test]
fn configuration_adds_videos_and_speech() {
    let catalogue = Catalogue::new(&[
        extra("my-mini", "seedance-1.0-mini"),
        extra("my-veo", "veo-3.1"),
        extra("my-voice", "kling-v3"),
    ])
    .unwrap();
    let video = |id: &str| catalogue.task_model(id, Endpoint::Videos).unwrap();
    assert_eq!(
        (video("my-mini").base_model, video("my-veo").base_model),
        ("seedance-1.0-mini", "veo-3.1-flash")
    );
    let voice = catalogue
        .task_model("my-voice", Endpoint::NativeSpeech)
        .unwrap();
    assert_eq!(
        (voice.base_model, voice.family.name()),
        ("kling-v3", "native-v3")
    );
    // A new id follows the rules of the very model that it is like.
    let body = json!({ "prompt": "x", "images": ["https://a/1", "https://a/2", "https://a/3"] });
    let read = |model| {
        tollgate_media::parse_request(
            model,
            RequestLayout::Standard,
            body.as_object().unwrap(),
            true,
        )
    };
    assert_eq!(read(video("my-mini")).unwrap().job().model(), "my-mini");
    assert!(
        read(
            CATALOGUE
                .task_model("seedance-1.0-pro", Endpoint::Videos)
                .unwrap()
        )
        .is_err()
    );
}

#[test]
fn unknown_models_are_not_found() {
    for id in [
        "",
        "GPT-IMAGE-2-OFFICIAL",
        "gpt-image-2",
        "\u{0}",
        &"x".repeat(100_000),
    ] {
        let error = CATALOGUE
            .task_model(id, Endpoint::ImageGenerations)
            .unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
        assert!(error.message.len() < 200 && !error.message.contains('\0'));
        assert_eq!(CATALOGUE.endpoint(id), None);
    }
}

#[test]
fn configuration_adds_models() {
    let catalogue = Catalogue::new(&[
        extra("my-wan", "wan2.7-image-pro"),
        extra("my-plain-wan", "wan2.7-image"),
        extra("my-lite", "seedream-5-lite"),
        extra("my-chat", "gpt-5"),
        extra("my-nano", "gemini-3-pro-image-preview-official"),
    ])
    .unwrap();
    let image = |id: &str| {
        catalogue
            .task_model(id, Endpoint::ImageGenerations)
            .unwrap()
    };
    assert_eq!(image("my-lite").base_model, "doubao-seedream-5-0-lite");
    assert_eq!(
        catalogue.endpoint("my-chat"),
        Some(Endpoint::ChatCompletions)
    );
    // A new id follows the rules of the very model that it is like.
    let body = |value: serde_json::Value| -> Map<_, _> { value.as_object().unwrap().clone() };
    let four_k = body(json!({ "prompt": "x", "size": "4K" }));
    assert_eq!(
        crate::parse(image("my-wan"), &four_k, true)
            .unwrap()
            .job()
            .model,
        "my-wan"
    );
    assert!(crate::parse(image("my-plain-wan"), &four_k, true).is_err());
    let fallback = body(json!({ "prompt": "x", "official_fallback": true }));
    assert!(crate::parse(image("my-nano"), &fallback, true).is_err());
}

#[test]
fn bad_configuration_is_one_sentence() {
    for (models, word) in [
        (vec![extra("gpt-5", "gpt-5")], "in the catalogue already"),
        (
            vec![extra("a", "gpt-5"), extra("a", "gpt-5")],
            "in the catalogue already",
        ),
        (vec![extra("a", "gpt-6")], "seedream-5-lite"),
        (
            vec![extra("a", "gpt-5"), extra("b", "a")],
            "neither a built-in model nor a family",
        ),
        (vec![extra("", "gpt-5")], "1 to 128 printable"),
        (vec![extra("a b", "gpt-5")], "1 to 128 printable"),
        (vec![extra(&"x".repeat(129), "gpt-5")], "1 to 128 printable"),
    ] {
        let error = Catalogue::new(&models).err().unwrap();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn families_keep_their_promises() {
    let long: Vec<&str> = FAMILIES
        .iter()
        .filter(|family| family.link_ttl == LinkTtl::Long)
        .map(|family| family.name)
        .collect();
    assert_eq!(long, ["seedream-5-lite"]);
    let reviewed: Vec<&str> = FAMILIES
        .iter()
        .filter(|family| family.safety_review)
        .map(|family| family.name)
        .collect();
    assert_eq!(reviewed, ["gpt-image-2"]);
    for family in FAMILIES {
        assert_eq!(
            tollgate_media::image::families::by_name(family.name).map(|f| f.name),
            Some(family.name)
        );
        assert_eq!(FAMILIES.iter().filter(|f| f.name == family.name).count(), 1);
    }
    assert!(tollgate_media::image::families::by_name("nothing").is_none());
    for family in AnyFamily::all() {
        assert_eq!(AnyFamily::by_name(family.name()), Some(family));
        let same = AnyFamily::all().filter(|other| *other == family).count();
        assert_eq!(same, 1, "{family:?}");
        if family.kind() != TaskKind::Image {
            assert_eq!(
                (family.link_ttl(), family.safety_review()),
                (LinkTtl::Standard, false)
            );
        }
    }
    assert_eq!(AnyFamily::by_name("nothing"), None);
    assert_eq!((LinkTtl::Standard.hours(), LinkTtl::Long.hours()), (24, 72));
}
