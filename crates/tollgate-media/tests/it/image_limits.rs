//! Tests the limits of reference images and masks, and those of complete requests.

use serde_json::{Value, json};
use tollgate_media::image::ImageFormat;
use tollgate_media::image::ImageMetadata;
use tollgate_media::input::InputRole;

use crate::cases::check_cases;
use crate::{adjustment_values, metadata, model, rejection, submit};

/// `cases/image_limits.jsonl`: an `image` is a PNG with alpha of 1000 bytes unless the case states otherwise; `first` is the size of the first
/// reference, for a mask; `error` is the complete message, absent if the image is accepted.
#[test]
fn every_image_is_checked_against_the_limits_of_its_family() {
    check_cases("image_limits.jsonl", |row| {
        let image = &row["image"];
        let size = |size: &Value| {
            let side = |i: usize| u32::try_from(size[i].as_u64().unwrap()).unwrap();
            metadata(side(0), side(1))
        };
        let png = image.get("size").map_or(metadata(1000, 1000), size);
        let format = image["format"].as_str().unwrap_or("png");
        let formats = ImageFormat::ALL.into_iter();
        let file = ImageMetadata {
            format: formats.clone().find(|f| f.name() == format).unwrap(),
            bytes: image["bytes"].as_u64().unwrap_or(1000),
            has_alpha: image["opaque"] != true,
            ..png
        };
        let first = row.get("first").map(size);
        let (role, field) = match row["mask"] == true {
            true => (InputRole::Mask, "mask_url"),
            false => (InputRole::Reference(0), "image_urls[0]"),
        };
        let mut real = row.as_object().unwrap().clone();
        real.remove("error");
        for (index, id) in row["models"].as_array().unwrap().iter().enumerate() {
            let family = model(id.as_str().unwrap()).family;
            let found = family.check_input_image(role, field, &file, first.as_ref());
            let error = found.err().map(|error| Value::from(error.message));
            let same = index == 0 || real.get("error") == error.as_ref();
            assert!(same, "{row}: {id} differs: {error:?}");
            real.extend(error.map(|message| ("error".to_owned(), message)));
        }
        real.into()
    });
}

#[test]
fn file_size_limits_are_those_of_the_family() {
    let max = |id: &str| model(id).family.input_limits().max_bytes;
    assert_eq!(max("seedance-2.0"), 30 * 1_048_576);
    assert_eq!(max("sora-2"), 20 * 1_048_576);
}

#[test]
fn many_and_huge_ignored_fields_stay_small() {
    let field = |index| {
        (
            format!("{}{index}", "z".repeat(200)),
            "y".repeat(5000).into(),
        )
    };
    let body: serde_json::Map<_, _> = (0..5000).map(field).collect();
    let got = submit("grok-imagine-1.0-partner", &body.into());
    assert_eq!(got.adjustments.len(), 21);
    let last = adjustment_values(&got.adjustments[20..]);
    assert_eq!(last[0][1], "4980 more fields");
    assert!(serde_json::to_string(&got.adjustments).unwrap().len() < 20_000);
}

#[test]
fn huge_names_and_values_are_cut_in_errors() {
    let long = "9".repeat(5000);
    let message = rejection(
        "gpt-image-2-official",
        &json!({ "size": format!("{long}x{long}") }),
    );
    assert!(
        message.contains("`size`") && message.contains('…'),
        "{message}"
    );
    let body = json!({ "prompt": "a", "x".repeat(100_000): 1 });
    let error = crate::parse(model("wan2.7-image"), &body, true).unwrap_err();
    assert!(error.message.len() < 300, "{error}");
}
