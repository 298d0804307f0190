//! The catalogue: every id of SPEC.md, the endpoint it belongs to, and ids that configuration adds.

use serde_json::{Map, json};
use tollgate_core::ErrorKind;
use tollgate_media::image::{self, FAMILIES, LinkLife};
use tollgate_media::{Catalogue, Endpoint, ExtraModel};

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
        let found = CATALOGUE.image(id, Endpoint::ImageGenerations).unwrap();
        assert_eq!(
            (found.name.as_str(), found.like, found.family.name),
            (id, id, family)
        );
    }
    let edit = CATALOGUE
        .image("grok-imagine-1.0-edit-partner", Endpoint::ImageEdits)
        .unwrap();
    assert_eq!(edit.family.name, "grok-imagine-edit");
    assert_eq!(CATALOGUE.image_models().count(), expected.len() + 1);
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
        let error = CATALOGUE.image(id, Endpoint::ImageGenerations).unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidRequest);
        assert!(
            error.message.contains(id) && error.message.contains(right),
            "{error}"
        );
    }
    let error = CATALOGUE
        .image("gpt-image-2-official", Endpoint::ImageEdits)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    assert!(
        error.message.contains("POST /v1/images/generations"),
        "{error}"
    );
    assert_eq!(CATALOGUE.models().count(), 22 + 21 + 2 + 10 + 2);
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
        let error = CATALOGUE.image(id, Endpoint::ImageGenerations).unwrap_err();
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
    let image = |id: &str| catalogue.image(id, Endpoint::ImageGenerations).unwrap();
    assert_eq!(image("my-lite").like, "doubao-seedream-5-0-lite");
    assert_eq!(
        catalogue.endpoint("my-chat"),
        Some(Endpoint::ChatCompletions)
    );
    // A new id follows the rules of the very model that it is like.
    let body = |value: serde_json::Value| -> Map<_, _> { value.as_object().unwrap().clone() };
    let four_k = body(json!({ "prompt": "x", "size": "4K" }));
    assert_eq!(
        image::read(image("my-wan"), &four_k, true)
            .unwrap()
            .job()
            .model,
        "my-wan"
    );
    assert!(image::read(image("my-plain-wan"), &four_k, true).is_err());
    let fallback = body(json!({ "prompt": "x", "official_fallback": true }));
    assert!(image::read(image("my-nano"), &fallback, true).is_err());
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
        .filter(|family| family.links == LinkLife::Long)
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
            image::Family::by_name(family.name).map(|f| f.name),
            Some(family.name)
        );
        assert_eq!(FAMILIES.iter().filter(|f| f.name == family.name).count(), 1);
    }
    assert!(image::Family::by_name("nothing").is_none());
    assert_eq!((LinkLife::Usual.hours(), LinkLife::Long.hours()), (24, 72));
}
