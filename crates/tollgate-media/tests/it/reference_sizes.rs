//! Sizes and boxes that depend on the reference images.

use serde_json::{Value, json};
use tollgate_media::image::{ImageJob, ImageMetadata};

use crate::{image_family, job, metadata, submit, urls};

fn settled(id: &str, body: &Value, known: &[Option<ImageMetadata>]) -> ImageJob {
    let mut job = job(submit(id, body));
    image_family(id)
        .apply_reference_metadata(&mut job, known)
        .unwrap();
    job
}

#[test]
fn the_first_reference_gives_the_nearest_ratio() {
    for (id, size, tier, reference, expected) in [
        (
            "gpt-image-2-official",
            json!("auto"),
            json!(null),
            (4000, 3000),
            "1024x768",
        ),
        (
            "gpt-image-2-official",
            json!("auto"),
            json!("2k"),
            (1000, 3000),
            "1024x3072",
        ),
        (
            "gpt-image-2-official",
            json!("auto"),
            json!("4k"),
            (1, 5000),
            "1280x3840",
        ),
        (
            "doubao-seedream-4.5",
            json!("auto"),
            json!("4K"),
            (1920, 1080),
            "5404x3040",
        ),
        (
            "doubao-seedream-4.5",
            json!("auto"),
            json!(null),
            (900, 2100),
            "1296x3024",
        ),
        (
            "doubao-seedream-5.0-lite",
            json!("auto"),
            json!("3K"),
            (900, 2100),
            "2304x4096",
        ),
        (
            "gemini-2.5-flash-image-preview",
            json!(null),
            json!(null),
            (810, 1000),
            "896x1152",
        ),
        (
            "gemini-3.1-flash-image-preview",
            json!(null),
            json!("0.5K"),
            (100, 700),
            "192x1536",
        ),
        (
            "gemini-3-pro-image-preview",
            json!(null),
            json!("4K"),
            (500, 500),
            "4096x4096",
        ),
        (
            "grok-imagine-1.0-edit-partner",
            json!(null),
            json!(null),
            (640, 480),
            "1152x864",
        ),
        (
            "grok-imagine-1.0-edit-partner",
            json!(null),
            json!(null),
            (9000, 10),
            "1408x704",
        ),
    ] {
        let mut body = json!({ "image_urls": urls(2) });
        body["size"] = size;
        if id != "grok-imagine-1.0-edit-partner" {
            body["resolution"] = tier.clone();
        }
        let first = Some(metadata(reference.0, reference.1));
        let got = settled(id, &body, &[first, None]);
        assert_eq!(
            got.size.pixels.unwrap().to_string(),
            expected,
            "{id} {body}"
        );
        assert_ne!(got.size.ratio.as_deref(), Some("auto"));
        if let Some(tier) = tier.as_str() {
            assert_eq!(got.size.tier.as_deref(), Some(tier));
        }
        // Unknown, it stays open; known, it stays settled.
        assert_eq!(settled(id, &body, &[None, first]).size.pixels, None);
        let mut again = got.clone();
        image_family(id)
            .apply_reference_metadata(&mut again, &[Some(metadata(77, 5)), None])
            .unwrap();
        assert_eq!(again, got);
    }
}

#[test]
fn asked_sizes_do_not_follow() {
    let body = json!({ "size": "16:9", "image_urls": urls(1) });
    let got = settled("gpt-image-2-official", &body, &[Some(metadata(500, 500))]);
    assert_eq!(got.size.pixels.unwrap().to_string(), "1536x864");
    let body = json!({ "image_urls": urls(1) });
    let got = settled("doubao-seedream-4.5", &body, &[Some(metadata(500, 1000))]);
    assert_eq!(got.size.pixels.unwrap().to_string(), "2048x2048");
}

#[test]
fn wan_follows_the_last_image_within_its_range() {
    for (size, last, expected) in [
        (json!(null), (1000, 1000), "2048x2048"),
        (json!("2K"), (1600, 900), "2048x1152"),
        (json!("2K"), (900, 1600), "1152x2048"),
        (json!("2K"), (800, 600), "2048x1536"),
        (json!("2K"), (1000, 800), "2048x1632"),
        (json!("2K"), (8000, 1000), "2048x768"),
        (json!("2K"), (1000, 8000), "768x2048"),
        (json!("1K"), (500, 500), "1024x1024"),
        (json!("1K"), (1600, 900), "1360x768"),
        (json!("1K"), (2000, 1000), "1536x768"),
        (json!("1K"), (8000, 1000), "2048x768"),
    ] {
        let body = json!({ "size": size, "image_urls": urls(2) });
        let got = settled(
            "wan2.7-image",
            &body,
            &[None, Some(metadata(last.0, last.1))],
        );
        assert_eq!(got.size.pixels.unwrap().to_string(), expected, "{last:?}");
        assert_eq!(got.size.ratio.as_deref(), Some("auto"));
        let open = settled("wan2.7-image", &body, &[Some(metadata(9, 9)), None]);
        assert_eq!(open.size.pixels, None);
    }
}

#[test]
fn boxes_lie_inside_the_images_that_are_known() {
    let body = json!({
        "image_urls": urls(3),
        "bbox_list": [[[0, 0, 300, 250]], [], [[10, 20, 301, 40], [0, 0, 1, 1]]],
    });
    let family = image_family("wan2.7-image");
    let check = |known: &[Option<ImageMetadata>]| {
        let mut job = job(submit("wan2.7-image", &body));
        family
            .apply_reference_metadata(&mut job, known)
            .map_err(|error| error.message)
    };
    let (fits, small) = (Some(metadata(301, 250)), Some(metadata(300, 249)));
    assert_eq!(check(&[fits, small, fits]), Ok(()));
    assert_eq!(check(&[None, None, None]), Ok(()));
    assert_eq!(check(&[]), Ok(()));
    let message = check(&[small, None, None]).unwrap_err();
    assert!(
        message.contains("`bbox_list[0][0]`") && message.contains("300x249"),
        "{message}"
    );
    let message = check(&[None, None, small]).unwrap_err();
    assert!(message.contains("`bbox_list[2][0]`"), "{message}");
}

#[test]
fn the_price_learns_the_size() {
    let got = submit(
        "gpt-image-2-official",
        &json!({ "size": "auto", "image_urls": urls(1) }),
    );
    let mut price = got.price.clone();
    assert_eq!((price.size.as_str(), price.pixels.clone()), ("auto", None));
    let mut job = job(got);
    let family = image_family("gpt-image-2-official");
    family
        .apply_reference_metadata(&mut job, &[Some(metadata(10, 30))])
        .unwrap();
    price.update_from(&job);
    assert_eq!(
        (price.size.as_str(), price.pixels.as_deref()),
        ("auto", Some("512x1536"))
    );
    assert_eq!(price.resolution.as_deref(), Some("1k"));
}
