//! Requests that clients send and messages that they understand: sizes, references and errors that name what was sent.

use serde_json::{Value, json};
use tollgate_media::input::InputSource;
use tollgate_media::{Catalogue, Endpoint, ExtraModel};

use crate::{CATALOGUE, adjustment_values, data_uri, image_file, rejection, submit};
use tollgate_media::image::ImageFormat;

const WAN: &str = "wan2.7-image";
const WAN_PRO: &str = "wan2.7-image-pro";
const GEMINI: &str = "gemini-3.1-flash-image-preview";
const SEEDREAM: &str = "doubao-seedream-4-5";

/// The pixel size of a request.
fn pixels(model: &str, size: &str) -> String {
    let submission = submit(model, &json!({ "size": size }));
    submission.price.pixels.clone().expect("a size")
}

/// `count` reference images.
fn urls(count: usize) -> Value {
    vec!["https://example.com/a.png"; count].into()
}

fn message(model: &str, body: &Value) -> String {
    rejection(model, body)
}

/// The error of a video request.
fn video_message(body: &Value) -> String {
    let body = body.as_object().unwrap();
    let endpoint = Endpoint::VideoGenerations;
    let model = CATALOGUE.requested_model(body, endpoint).unwrap();
    let parsed = tollgate_media::parse_request(model, endpoint.request_layout(), body, false);
    parsed.expect_err("a rejection").message
}

/// A PNG of `bytes` bytes.
fn png_of(bytes: usize) -> Vec<u8> {
    let mut file = image_file(ImageFormat::Png, 300, 300, false);
    file.resize(bytes, 0);
    file
}

#[test]
fn wan_pixel_sizes_are_bounded_by_their_product_and_ratio() {
    for (model, size) in [
        (WAN, "2560x1440"),
        (WAN, "5792x724"),
        (WAN, "288x2304"),
        (WAN, "768x768"),
        (WAN, "2048x2048"),
        (WAN_PRO, "8192x2048"),
        (WAN_PRO, "4096x4096"),
    ] {
        assert_eq!(pixels(model, size), size, "{model}");
    }
    for (model, size) in [
        (WAN, "2049x2048"),
        (WAN, "767x768"),
        (WAN, "5801x725"),
        (WAN, "256x2304"),
        (WAN, "6000x700"),
        (WAN_PRO, "4097x4096"),
        (WAN_PRO, "11592x1440"),
    ] {
        let said = message(model, &json!({ "size": size }));
        assert!(said.contains("product"), "{said}");
        assert!(said.contains("1:8 to 8:1"), "{said}");
    }
    for model in [WAN, WAN_PRO] {
        assert_eq!(pixels(model, "16:9"), "2560x1440", "{model}");
    }
}

#[test]
fn a_size_may_be_written_with_x_capital_x_or_asterisk() {
    for size in ["1536x1024", "1536X1024", "1536*1024"] {
        for model in ["gpt-image-2-official", "gpt-image-2.5-async", WAN] {
            let submission = submit(model, &json!({ "size": size }));
            assert_eq!(submission.price.size, "1536x1024", "{model} {size}");
            assert!(submission.adjustments.is_empty());
        }
    }
}

#[test]
fn a_clamped_n_may_be_as_large_as_it_likes() {
    for (sent, used) in [
        (json!(99_999_999_999_999_999_999_999_f64), 4),
        (json!(-99_999_999_999_999_999_999_999_f64), 1),
        (json!(u64::MAX), 4),
        (json!(i64::MIN), 1),
        (json!(0), 1),
    ] {
        let submission = submit("gpt-image-1-official", &json!({ "n": sent }));
        assert_eq!(
            adjustment_values(&submission.adjustments),
            json!([["n", sent, used]])
        );
    }
    for sent in [json!(1.0), json!(2.5), json!("2"), json!(true)] {
        let said = message("gpt-image-1-official", &json!({ "n": sent }));
        assert!(said.contains("whole number"), "{said}");
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
    let said = message(GEMINI, &json!({ "image_urls": [{ "uri": URL }] }));
    assert!(
        said.contains("`image_urls[0]`") && said.contains("url"),
        "{said}"
    );
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
        let submission = submit(GEMINI, &json!({ "image_urls": [uri] }));
        let InputSource::Data { bytes, .. } = &submission.inputs[0].source else {
            panic!("no data")
        };
        assert_eq!(*bytes, file);
    }
}

#[test]
fn a_limit_counts_the_bytes_behind_the_base64() {
    const LIMIT: usize = 20_971_520;
    for extra in [0, 1, 2, 3] {
        let uri = data_uri("image/png", &png_of(LIMIT + extra));
        let body = json!({ "image_urls": [uri] });
        if extra == 0 {
            submit(WAN, &body);
        } else {
            let said = message(WAN, &body);
            assert!(
                said.contains(&format!("got {} bytes", LIMIT + extra)),
                "{said}"
            );
        }
    }
    for less in [1, 2] {
        submit(
            WAN,
            &json!({ "image_urls": [data_uri("image/png", &png_of(LIMIT - less))] }),
        );
    }
}

#[test]
fn a_message_names_the_field_that_was_sent() {
    let options = "sequential_image_generation_options";
    let group = json!({ "sequential_image_generation": "auto", options: { "max_images": 3 } });
    let said = message(SEEDREAM, &group);
    assert!(
        said.starts_with(&format!("`{options}.max_images` must be 1")),
        "{said}"
    );
    let said = message(SEEDREAM, &json!({ "n": 3 }));
    assert!(
        said.starts_with("`n` must be 1 without `image_urls`"),
        "{said}"
    );
    let mut many = group.clone();
    many[options]["max_images"] = json!(9);
    many["image_urls"] = urls(8);
    let said = message(SEEDREAM, &many);
    assert!(
        said.starts_with(&format!("`{options}.max_images` and the number")),
        "{said}"
    );

    for (name, other) in [
        ("image_search", "engine_search"),
        ("google_image_search", "engine_search"),
        ("engine_image_search", "google_search"),
    ] {
        let got = message(GEMINI, &json!({ name: true, other: false }));
        let expected = format!("`{name}` must not be true unless `{other}` is true, got false");
        assert_eq!(got, expected);
    }
    let said = message(GEMINI, &json!({ "image_search": true }));
    assert!(said.ends_with("got none"), "{said}");
    let said = message(WAN, &json!({ "prompt": "" }));
    assert!(said.ends_with("got \"\""), "{said}");
}

#[test]
fn a_message_about_base64_speaks_of_base64() {
    const BASE64: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAf";
    let sora =
        |image: Value| video_message(&json!({ "model": "sora-2", "prompt": "a", "image": image }));
    let said = sora(json!(BASE64));
    assert!(said.contains("must hold an image"), "{said}");
    let said = sora(json!({ "url": "aGVsbG8gd29ybGQ=" }));
    assert!(
        said.contains("`image.url`") && said.contains("base64"),
        "{said}"
    );
    let said = message(WAN, &json!({ "image_urls": [BASE64] }));
    assert!(said.contains("data:image/png;base64,"), "{said}");
    let said = message("gpt-image-2-official", &json!({ "image_urls": [BASE64] }));
    assert!(said.contains("/v1/uploads/images"), "{said}");
    let text = data_uri(
        "image/png",
        b"this is a text, and no image at all, whatever its head says",
    );
    let said = message(WAN, &json!({ "image_urls": [text] }));
    assert!(
        said.contains("its bytes are not those of an image file"),
        "{said}"
    );
}

#[test]
fn a_message_about_too_many_images_names_the_fields_with_images() {
    let body = |fields: Value| {
        let mut body = json!({ "model": "seedance-1.0-pro", "prompt": "a" });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        video_message(&body)
    };
    let said = body(json!({ "images": urls(3) }));
    assert!(said.starts_with("`images` take at most 2"), "{said}");
    let other = "https://example.com/b.png";
    let said = body(json!({ "input_reference": other, "images": urls(2) }));
    assert!(
        said.starts_with("`input_reference` and `images` take at most 2"),
        "{said}"
    );
    let said = body(json!({ "images": urls(6) }));
    assert!(
        said.starts_with("`images` takes at most 4 images, got"),
        "{said}"
    );
}

#[test]
fn an_alias_has_the_first_name_of_its_model() {
    let extra = |name: &str, like: &str| ExtraModel {
        name: name.to_owned(),
        like: like.to_owned(),
    };
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
