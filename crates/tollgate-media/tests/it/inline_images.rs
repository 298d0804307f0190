//! Tests images in requests: links, data URIs and base64.

use serde_json::{Value, json};
use tollgate_media::image::{ImageFormat, PixelSize};
use tollgate_media::input::{InputRole, InputSource};

use crate::{data_uri, image_file, rejection, submit};

/// A body with one reference.
fn one(uri: &str) -> Value {
    json!({ "image_urls": [uri] })
}

#[test]
fn data_uris_are_decoded_where_the_family_takes_their_format() {
    for (id, accepted) in [
        ("gpt-image-2-official", ""),
        ("gpt-image-1-official", ""),
        ("doubao-seedream-4-5", "jpeg png"),
        ("doubao-seedream-5-0-lite", "jpeg png"),
        ("gemini-2.5-flash-image-preview", "jpeg png webp"),
        ("gemini-3.1-flash-image-preview", "jpeg png webp"),
        ("gemini-3-pro-image-preview", "jpeg png webp"),
        ("wan2.7-image", "jpeg png webp bmp"),
        ("grok-imagine-1.0-edit-partner", "jpeg png webp gif"),
    ] {
        for format in ImageFormat::ALL {
            let file = image_file(format, 300, 240, false);
            let body = one(&data_uri(format.media_type(), &file));
            if !accepted.split(' ').any(|name| name == format.name()) {
                let message = rejection(id, &body);
                let upload = "POST /v1/uploads/images";
                let expected = if accepted.is_empty() {
                    upload
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
            assert_eq!(
                (bytes, got.inputs[0].role),
                (&file, InputRole::Reference(0))
            );
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
fn invalid_data_uris_are_rejected() {
    let valid = data_uri("image/png", &image_file(ImageFormat::Png, 20, 20, false));
    let huge = "A".repeat(20_000_000);
    let form = "form data:image/png;base64";
    for (uri, expected) in [
        ("data:".to_owned(), form),
        ("data:image/png".to_owned(), form),
        ("data:image/png,AAAA".to_owned(), form),
        (valid.replace(";base64", ""), form),
        (
            valid.replace(";base64", ";base65"),
            "form data:image/png;base64",
        ),
        (
            valid.replace("image/png", "image/tiff"),
            "jpeg, png, got \"image/tiff\"",
        ),
        (valid.replace("image/png", ""), "jpeg, png, got \"\""),
        (format!("{valid}!"), "valid base64"),
        (format!("{valid} "), "valid base64"),
        (
            valid.trim_end_matches('=').to_owned() + "====",
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
            valid.replace("image/png", "image/jpeg"),
            "declares image/jpeg, but its bytes are image/png",
        ),
        (
            format!("data:image/png;base64,{huge}"),
            "10485760 bytes (10 MB)",
        ),
        (format!("data:image/{huge};base64,AAAA"), "…"),
    ] {
        let message = rejection("doubao-seedream-4-5", &one(&uri));
        assert!(
            message.contains("`image_urls[0]`") && message.contains(expected),
            "{message}"
        );
    }
}

#[test]
fn videos_take_images_as_data_uris_and_as_bare_base64() {
    let uri =
        |format: ImageFormat| data_uri(format.media_type(), &image_file(format, 320, 320, false));
    let (png, gif) = (uri(ImageFormat::Png), uri(ImageFormat::Gif));
    let bare = |uri: &str| uri.split_once(',').unwrap().1.to_owned();
    for (body, field) in [
        (json!({ "image": png }), "image"),
        (json!({ "image": bare(&png) }), "image"),
        (json!({ "images": [png] }), "images[0]"),
        (json!({ "images": [bare(&png)] }), "images[0]"),
        (json!({ "images": [{ "url": png }] }), "images[0]"),
    ] {
        let submission = submit("seedance-1.5-pro", &body);
        let fields: Vec<_> = submission
            .inputs
            .iter()
            .map(|input| &*input.field)
            .collect();
        assert_eq!(
            (fields, submission.adjustments),
            (vec![field], vec![]),
            "{body}"
        );
    }
    for (id, image, expected) in [
        (
            "seedance-1.5-pro",
            bare(&png) + "A",
            "`image` must hold valid base64",
        ),
        (
            "veo-3.1-pro",
            gif.clone(),
            "must be a data URI of jpeg, png",
        ),
        (
            "veo-3.1-pro",
            bare(&gif),
            "must be base64 of an image (jpeg, png), got gif",
        ),
    ] {
        let message = rejection(id, &json!({ "image": image }));
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn references_may_be_strings_or_objects_with_a_url() {
    const URL: &str = "https://example.com/a.png";
    for reference in [
        json!(URL),
        json!({ "url": URL }),
        json!({ "image_url": URL }),
        json!({ "type": "image_url", "image_url": { "url": URL } }),
    ] {
        let body = json!({ "image_urls": [reference], "mask_url": reference });
        let submission = submit("gpt-image-2-official", &body);
        assert_eq!(submission.inputs.len(), 2);
        for input in submission.inputs {
            assert_eq!(input.source, InputSource::Url(URL.to_owned()));
        }
    }
}

#[test]
fn data_uris_may_have_parameters_and_line_breaks() {
    let file = image_file(ImageFormat::Png, 300, 300, false);
    let plain = data_uri("image/png", &file);
    let (head, data) = plain.split_once(',').unwrap();
    let lines: Vec<&str> = data
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    for uri in [
        format!("{head},{}", lines.join("\r\n")),
        format!("{head},{}\n", lines.join("\n")),
        format!("data:image/png;charset=utf-8;base64,{data}"),
        format!("data:image/png;name=a.png;charset=utf-8;BASE64,{data}"),
    ] {
        let submission = submit("gemini-3.1-flash-image-preview", &one(&uri));
        let InputSource::Data { bytes, .. } = &submission.inputs[0].source else {
            panic!("no data")
        };
        assert_eq!(*bytes, file);
    }
}

#[test]
fn a_limit_counts_the_bytes_behind_the_base64() {
    const LIMIT: usize = 20_971_520;
    let mut file = image_file(ImageFormat::Png, 300, 300, false);
    for bytes in LIMIT - 2..=LIMIT + 3 {
        file.resize(bytes, 0);
        let body = one(&data_uri("image/png", &file));
        if bytes <= LIMIT {
            submit("wan2.7-image", &body);
        } else {
            let message = rejection("wan2.7-image", &body);
            let expected = format!("got {bytes} bytes");
            assert!(message.contains(&expected), "{message}");
        }
    }
}
