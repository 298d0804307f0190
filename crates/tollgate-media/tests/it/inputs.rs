//! Data URIs, and the limits of reference images and masks.

use serde_json::json;
use tollgate_media::image::{ImageFormat, ImageMetadata, PixelSize};
use tollgate_media::input::{InputRole, InputSource};

use crate::{data_uri, image_file, metadata, model, rejection, submit};

const MB: u64 = 1_048_576;

/// A body with one reference.
fn one(uri: &str) -> serde_json::Value {
    json!({ "image_urls": [uri] })
}

#[test]
fn data_uris_are_decoded_where_the_family_takes_them() {
    use ImageFormat::{Bmp, Gif, Jpeg, Png, Webp};
    let no = "POST /v1/uploads/images";
    for (id, taken) in [
        ("gpt-image-2-official", &[][..]),
        ("gpt-image-1-official", &[]),
        ("doubao-seedream-4-5", &[Jpeg, Png]),
        ("doubao-seedream-5-0-lite", &[Jpeg, Png]),
        ("gemini-2.5-flash-image-preview", &[Jpeg, Png, Webp]),
        ("gemini-3.1-flash-image-preview", &[Jpeg, Png, Webp]),
        ("gemini-3-pro-image-preview", &[Jpeg, Png, Webp]),
        ("wan2.7-image", &[Jpeg, Png, Webp, Bmp]),
        ("grok-imagine-1.0-edit-partner", &[Jpeg, Png, Webp, Gif]),
    ] {
        for format in ImageFormat::ALL {
            let file = image_file(format, 300, 240, false);
            let body = one(&data_uri(format.media_type(), &file));
            if !taken.contains(&format) {
                let message = rejection(id, &body);
                let expected = if taken.is_empty() {
                    no
                } else {
                    format.media_type()
                };
                assert!(
                    message.contains("`image_urls[0]`") && message.contains(expected),
                    "{message}"
                );
                continue;
            }
            let got = submit(id, &body);
            let InputSource::Data { metadata, bytes } = &got.inputs[0].source else {
                panic!("{id}: not data");
            };
            assert_eq!(
                (metadata.format, metadata.size),
                (format, PixelSize::new(300, 240))
            );
            assert_eq!(bytes, &file);
            assert_eq!(got.inputs[0].role, InputRole::Reference(0));
        }
    }
}

#[test]
fn media_types_are_read_without_regard_to_case() {
    let file = image_file(ImageFormat::Jpeg, 20, 20, false);
    for media_type in ["image/jpeg", "image/jpg", "IMAGE/JPEG"] {
        submit("doubao-seedream-4-5", &one(&data_uri(media_type, &file)));
    }
}

#[test]
fn bad_data_uris() {
    let id = "doubao-seedream-4-5";
    let png = image_file(ImageFormat::Png, 20, 20, false);
    let good = data_uri("image/png", &png);
    let huge = "A".repeat(20_000_000);
    for (uri, word) in [
        ("data:".to_owned(), "form data:image/png;base64"),
        ("data:image/png".to_owned(), "form data:image/png;base64"),
        (
            "data:image/png,AAAA".to_owned(),
            "form data:image/png;base64",
        ),
        (good.replace(";base64", ""), "form data:image/png;base64"),
        (
            good.replace(";base64", ";charset=x;base64"),
            "jpeg, png, got \"image/png;charset=x\"",
        ),
        (
            good.replace("image/png", "image/tiff"),
            "jpeg, png, got \"image/tiff\"",
        ),
        (good.replace("image/png", ""), "jpeg, png, got \"\""),
        (format!("{good}!"), "valid base64"),
        (format!("{}\n", good), "valid base64"),
        (
            good.trim_end_matches('=').to_owned() + "====",
            "valid base64",
        ),
        ("data:image/png;base64,".to_owned(), "must hold an image"),
        (
            "data:image/png;base64,AAAA".to_owned(),
            "must hold an image",
        ),
        (
            "data:image/png;base64,iVBORw0KGgo=".to_owned(),
            "must hold an image",
        ),
        (
            good.replace("image/png", "image/jpeg"),
            "says image/jpeg, but its bytes are image/png",
        ),
        (
            format!("data:image/png;base64,{huge}"),
            "10485760 bytes (10 MB)",
        ),
        (format!("data:image/{huge};base64,AAAA"), "…"),
    ] {
        let message = rejection(id, &one(&uri));
        assert!(
            message.contains("`image_urls[0]`") && message.contains(word),
            "{message}"
        );
    }
}

/// Checks limits: which metadata is accepted, and the words of the refusal of those that do not.
fn check(id: &str, good: &[ImageMetadata], bad: &[(ImageMetadata, &str)]) {
    let family = model(id).family;
    let role = InputRole::Reference(0);
    for metadata in good {
        family
            .check_input_image(role, "f", metadata, None)
            .unwrap_or_else(|e| panic!("{id} {metadata:?}: {e}"));
    }
    for (metadata, word) in bad {
        let error = family
            .check_input_image(role, "image_urls[0]", metadata, None)
            .unwrap_err();
        assert!(error.message.contains("`image_urls[0]`"), "{error}");
        assert!(error.message.contains(word), "{id} {metadata:?}: {error}");
    }
}

fn bytes(bytes: u64) -> ImageMetadata {
    ImageMetadata {
        bytes,
        ..metadata(1000, 1000)
    }
}

fn format(format: ImageFormat) -> ImageMetadata {
    ImageMetadata {
        format,
        ..metadata(1000, 1000)
    }
}

#[test]
fn limits_of_references() {
    for id in ["doubao-seedance-4-5", "doubao-seedream-5-0-lite"] {
        check(
            id,
            &[
                bytes(10 * MB),
                metadata(15, 15),
                metadata(15, 45),
                metadata(45, 15),
                metadata(6000, 6000),
                metadata(10_000, 3600),
                format(ImageFormat::Webp),
            ],
            &[
                (
                    bytes(10 * MB + 1),
                    "at most 10485760 bytes (10 MB), got 10485761",
                ),
                (metadata(14, 20), "15 to"),
                (metadata(20, 14), "got 20x14"),
                (metadata(15, 46), "1:3 to 3:1"),
                (metadata(46, 15), "got 46x15"),
                (metadata(6001, 6000), "at most 36000000 pixels"),
                (format(ImageFormat::Bmp), "got bmp"),
            ],
        );
    }
    for family in ["2.5-flash", "3.1-flash", "3-pro"] {
        check(
            &format!("gemini-{family}-image-preview"),
            &[
                bytes(10 * MB),
                format(ImageFormat::Webp),
                format(ImageFormat::Jpeg),
                metadata(1, 500),
            ],
            &[
                (bytes(10 * MB + 1), "10 MB"),
                (format(ImageFormat::Gif), "jpeg, png, webp, got gif"),
            ],
        );
    }
    check(
        "wan2.7-image",
        &[
            bytes(20 * MB),
            metadata(240, 240),
            metadata(240, 1920),
            metadata(8000, 8000),
            metadata(8000, 1000),
            format(ImageFormat::Bmp),
        ],
        &[
            (bytes(20 * MB + 1), "20 MB"),
            (metadata(239, 500), "240 to 8000"),
            (metadata(8001, 5000), "240 to 8000"),
            (metadata(240, 1921), "1:8 to 8:1"),
            (format(ImageFormat::Gif), "jpeg, png, webp, bmp, got gif"),
        ],
    );
    for id in [
        "gpt-image-2-official",
        "gpt-image-1-official",
        "grok-imagine-1.0-edit-partner",
    ] {
        check(
            id,
            &[
                bytes(20 * MB),
                metadata(1, 1),
                metadata(8000, 8000),
                format(ImageFormat::Gif),
            ],
            &[
                (bytes(20 * MB + 1), "20 MB"),
                (metadata(8000, 8001), "64000000 pixels"),
            ],
        );
    }
}

#[test]
fn masks_have_alpha_and_the_size_of_the_first_reference() {
    for id in ["gpt-image-2-official", "gpt-image-1.5-official"] {
        let family = model(id).family;
        let check = |mask: &ImageMetadata, first: Option<&ImageMetadata>| {
            family
                .check_input_image(InputRole::Mask, "mask_url", mask, first)
                .map_err(|e| e.message)
        };
        assert_eq!(check(&metadata(10, 10), Some(&metadata(10, 10))), Ok(()));
        assert_eq!(check(&metadata(10, 10), None), Ok(()));
        let message = check(&metadata(10, 11), Some(&metadata(10, 10))).unwrap_err();
        assert!(message.contains("(10x10), got 10x11"), "{message}");
        let opaque = ImageMetadata {
            has_alpha: false,
            ..metadata(10, 10)
        };
        assert!(check(&opaque, None).unwrap_err().contains("alpha channel"));
        assert!(check(&bytes(21 * MB), None).unwrap_err().contains("20 MB"));
    }
    let body = json!({ "image_urls": ["https://a/1", "https://a/2"], "mask_url": "https://a/m" });
    let got = submit("gpt-image-2-official", &body);
    let order: Vec<(&str, InputRole)> = got
        .inputs
        .iter()
        .map(|i| (i.field.as_str(), i.role))
        .collect();
    assert_eq!(
        order,
        [
            ("image_urls[0]", InputRole::Reference(0)),
            ("image_urls[1]", InputRole::Reference(1)),
            ("mask_url", InputRole::Mask),
        ]
    );
}
