//! Good values of every other field: what the job keeps, and what the rules change.

use serde_json::{Value, json};
use tollgate_media::image::{Background, ImageFormat, Moderation};

use crate::{URL, adjustment_values, job, submit, urls};

const MODE: &str = "sequential_image_generation";
const OPTIONS: &str = "sequential_image_generation_options";

/// Each body is taken without an adjustment, and the job holds `value` at `pointer`.
fn check(model: &str, cases: &[(Value, &str, Value)]) {
    for (body, pointer, value) in cases {
        let got = submit(model, body);
        assert_eq!(adjustment_values(&got.adjustments), [], "{model} {body}");
        let job = serde_json::to_value(job(got)).unwrap();
        let found = job.pointer(pointer).unwrap_or(&Value::Null);
        assert_eq!(found, value, "{model} {body} {pointer}");
    }
}

/// An adjustment: field, asked, used.
type Change = (&'static str, Value, Value);

/// Each body is taken with exactly these adjustments.
fn check_changes(model: &str, cases: &[(Value, &[Change])]) {
    for (body, expected) in cases {
        let got = submit(model, body);
        let expected: Vec<_> = expected
            .iter()
            .map(|(field, asked, used)| ((*field).to_owned(), asked.clone(), used.clone()))
            .collect();
        assert_eq!(
            adjustment_values(&got.adjustments),
            expected,
            "{model} {body}"
        );
        assert!(got.adjustments.iter().all(|a| !a.why.is_empty()));
    }
}

#[test]
fn gpt_image_2() {
    let mut cases = vec![
        (json!({}), "/quality", json!("auto")),
        (json!({}), "/background", json!("auto")),
        (json!({}), "/moderation", json!("auto")),
        (json!({}), "/output_format", json!("png")),
        (json!({}), "/output_compression", Value::Null),
        (json!({}), "/n", json!(1)),
        (json!({}), "/model", json!("gpt-image-2-official")),
        (json!({}), "/family", json!("gpt-image-2")),
        (
            json!({ "prompt": "一只狐狸" }),
            "/prompt",
            json!("一只狐狸"),
        ),
        (
            json!({ "background": "opaque" }),
            "/background",
            json!("opaque"),
        ),
        (json!({ "moderation": "low" }), "/moderation", json!("low")),
        (
            json!({ "output_format": "jpeg", "output_compression": 0 }),
            "/output_compression",
            json!(0),
        ),
        (
            json!({ "output_format": "webp", "output_compression": 100 }),
            "/output_compression",
            json!(100),
        ),
        (json!({ "size": "auto" }), "/size/pixels/width", json!(1024)),
        (
            json!({ "size": "auto", "resolution": "4k" }),
            "/size/pixels/width",
            json!(2880),
        ),
        (
            json!({ "size": "auto", "image_urls": [URL] }),
            "/size/pixels",
            Value::Null,
        ),
        (
            json!({ "size": "auto", "image_urls": [URL] }),
            "/size/ratio",
            json!("auto"),
        ),
        (json!({ "image_urls": [] }), "/references", Value::Null),
        (
            json!({ "image_urls": urls(16) }),
            "/references/15/field",
            json!("image_urls[15]"),
        ),
        (
            json!({ "image_urls": [URL], "mask_url": URL }),
            "/mask/field",
            json!("mask_url"),
        ),
    ];
    for n in 1..=4 {
        cases.push((json!({ "n": n }), "/n", json!(n)));
    }
    for quality in ["auto", "low", "medium", "high"] {
        cases.push((json!({ "quality": quality }), "/quality", json!(quality)));
    }
    for format in ["png", "jpeg", "webp"] {
        cases.push((
            json!({ "output_format": format }),
            "/output_format",
            json!(format),
        ));
    }
    check("gpt-image-2-official", &cases);
    check_changes(
        "gpt-image-2-official",
        &[
            (
                json!({ "background": "transparent" }),
                &[("background", json!("transparent"), json!("auto"))],
            ),
            (
                json!({ "output_compression": 50 }),
                &[("output_compression", json!(50), Value::Null)],
            ),
            (
                json!({ "seed": 7, "style": "x" }),
                &[
                    ("seed", json!(7), Value::Null),
                    ("style", json!("x"), Value::Null),
                ],
            ),
        ],
    );
    let got = submit(
        "gpt-image-2-official",
        &json!({ "background": "transparent" }),
    );
    assert_eq!(got.job().background, Some(Background::Auto));
    assert_eq!(got.price.quality.as_deref(), Some("auto"));
}

#[test]
fn gpt_image_1() {
    for model in ["gpt-image-1-official", "gpt-image-1.5-official"] {
        let mut cases = vec![
            (json!({}), "/quality", json!("auto")),
            (json!({}), "/background", json!("auto")),
            (json!({}), "/moderation", json!("auto")),
            (json!({}), "/output_format", json!("png")),
            (json!({}), "/n", json!(1)),
            (
                json!({ "background": "transparent" }),
                "/background",
                json!("transparent"),
            ),
            (
                json!({ "background": "opaque", "output_format": "jpeg" }),
                "/background",
                json!("opaque"),
            ),
            (
                json!({ "output_format": "jpeg", "output_compression": 40 }),
                "/output_compression",
                json!(40),
            ),
            (json!({ "moderation": "low" }), "/moderation", json!("low")),
            (
                json!({ "image_urls": urls(15) }),
                "/references/14/field",
                json!("image_urls[14]"),
            ),
            (
                json!({ "image_urls": [URL], "mask_url": URL }),
                "/mask/field",
                json!("mask_url"),
            ),
        ];
        for n in 1..=4 {
            cases.push((json!({ "n": n }), "/n", json!(n)));
        }
        for quality in ["auto", "low", "medium", "high"] {
            cases.push((json!({ "quality": quality }), "/quality", json!(quality)));
        }
        check(model, &cases);
        check_changes(
            model,
            &[
                (json!({ "n": 0 }), &[("n", json!(0), json!(1))]),
                (json!({ "n": -3 }), &[("n", json!(-3), json!(1))]),
                (json!({ "n": 5 }), &[("n", json!(5), json!(4))]),
                (
                    json!({ "n": u64::MAX }),
                    &[("n", json!(u64::MAX), json!(4))],
                ),
                (
                    json!({ "output_compression": 40 }),
                    &[("output_compression", json!(40), Value::Null)],
                ),
            ],
        );
        assert_eq!(submit(model, &json!({ "n": 9 })).job().n, 4);
        let job = job(submit(model, &json!({ "output_compression": 40 })));
        assert_eq!(job.output_compression, None);
        assert_eq!(job.moderation, Some(Moderation::Auto));
    }
}

#[test]
fn gpt_image_2_5_async() {
    let mut cases = vec![
        (json!({}), "/quality", json!("auto")),
        (json!({}), "/n", json!(1)),
        (json!({}), "/output_format", json!("png")),
    ];
    for quality in ["auto", "low", "medium", "high", "xhigh", "max"] {
        cases.push((json!({ "quality": quality }), "/quality", json!(quality)));
    }
    check("gpt-image-2.5-async", &cases);
    check_changes(
        "gpt-image-2.5-async",
        &[(json!({ "n": 2 }), &[("n", json!(2), Value::Null)])],
    );
}

#[test]
fn seedream_4_5() {
    let model = "doubao-seedream-4-5";
    let mode = "/extra/sequential_image_generation";
    let max = "/extra/sequential_image_generation_options/max_images";
    let optimize = "/extra/optimize_prompt_options/mode";
    check(
        model,
        &[
            (json!({}), "/n", json!(1)),
            (json!({}), "/watermark", json!(false)),
            (json!({}), "/output_format", json!("jpeg")),
            (json!({}), mode, json!("disabled")),
            (json!({}), max, Value::Null),
            (json!({}), optimize, json!("standard")),
            (json!({}), "/extra/optimize_prompt_mode", Value::Null),
            (
                json!({ "optimize_prompt_options": {} }),
                optimize,
                json!("standard"),
            ),
            (
                json!({ "optimize_prompt_options": { "mode": "fast" } }),
                optimize,
                json!("fast"),
            ),
            (
                json!({ "optimize_prompt_mode": "fast" }),
                optimize,
                json!("fast"),
            ),
            (
                json!({ "optimize_prompt_mode": "standard" }),
                optimize,
                json!("standard"),
            ),
            (json!({ "watermark": true }), "/watermark", json!(true)),
            (json!({ "n": 15 - 1, "image_urls": [URL] }), "/n", json!(14)),
            (json!({ "n": 5, "image_urls": urls(10) }), "/n", json!(5)),
            (
                json!({ "n": 5, "image_urls": urls(10) }),
                mode,
                json!("auto"),
            ),
            (json!({ "n": 5, "image_urls": urls(10) }), max, json!(5)),
            (json!({ "image_urls": urls(10) }), mode, json!("disabled")),
            (
                json!({ "size": "auto", "image_urls": [URL] }),
                "/size/ratio",
                json!("auto"),
            ),
            (json!({ MODE: "auto" }), "/n", json!(1)),
            (json!({ MODE: "auto" }), max, json!(1)),
            (
                json!({ MODE: "auto", OPTIONS: { "max_images": 6 }, "image_urls": [URL] }),
                "/n",
                json!(6),
            ),
            (
                json!({ MODE: "auto", OPTIONS: { "max_images": 1 } }),
                "/n",
                json!(1),
            ),
            (
                json!({ MODE: "auto", "n": 3, "image_urls": [URL] }),
                "/n",
                json!(3),
            ),
            (
                json!({ OPTIONS: { "max_images": 3 }, "n": 3, "image_urls": [URL] }),
                "/n",
                json!(3),
            ),
        ],
    );
    check_changes(
        model,
        &[
            (
                json!({ "n": 2, MODE: "disabled", "image_urls": [URL] }),
                &[(MODE, json!("disabled"), json!("auto"))],
            ),
            (
                json!({ "n": 5, MODE: "auto", OPTIONS: { "max_images": 3 }, "image_urls": [URL] }),
                &[("n", json!(5), json!(3))],
            ),
            (
                json!({ "n": 1, MODE: "auto", OPTIONS: { "max_images": 3 }, "image_urls": [URL] }),
                &[("n", json!(1), json!(3))],
            ),
            (
                json!({ OPTIONS: { "max_images": 3 } }),
                &[(OPTIONS, json!({ "max_images": 3 }), Value::Null)],
            ),
            (
                json!({ "output_format": "png" }),
                &[("output_format", json!("png"), Value::Null)],
            ),
            (
                json!({ "optimize_prompt_options": { "mode": "fast", "depth": 2 } }),
                &[("optimize_prompt_options.depth", json!(2), Value::Null)],
            ),
        ],
    );
    let got = submit(model, &json!({ "output_format": "png" }));
    assert_eq!(got.job().output_format, ImageFormat::Jpeg);
    assert!(got.adjustments[0].why.contains("always jpeg"));
}

#[test]
fn seedream_5_lite() {
    let model = "doubao-seedream-5-0-lite";
    check(
        model,
        &[
            (json!({}), "/output_format", json!("jpeg")),
            (
                json!({ "output_format": "png" }),
                "/output_format",
                json!("png"),
            ),
            (json!({}), "/watermark", json!(false)),
            (
                json!({}),
                "/extra/sequential_image_generation",
                json!("disabled"),
            ),
            // Groups from text alone are fine here.
            (json!({ "n": 4 }), "/n", json!(4)),
            (
                json!({ "n": 4 }),
                "/extra/sequential_image_generation",
                json!("auto"),
            ),
            (
                json!({ MODE: "auto", OPTIONS: { "max_images": 15 } }),
                "/n",
                json!(15),
            ),
            (
                json!({ "image_urls": urls(14) }),
                "/references/13/field",
                json!("image_urls[13]"),
            ),
        ],
    );
}

#[test]
fn grok_imagen_and_edits() {
    for n in 1..=10 {
        check(
            "grok-imagine-1.0-partner",
            &[(json!({ "n": n }), "/n", json!(n))],
        );
        let body = json!({ "n": n, "image_urls": [URL] });
        check("grok-imagine-1.0-edit-partner", &[(body, "/n", json!(n))]);
    }
    check(
        "imagen-4.0-partner",
        &[
            (json!({ "n": 1 }), "/n", json!(1)),
            (json!({}), "/n", json!(1)),
        ],
    );
    check(
        "imagen-4.0-partner",
        &[(
            json!({ "image": null, "image_urls": null }),
            "/references",
            Value::Null,
        )],
    );
    check_changes(
        "imagen-4.0-partner",
        &[(
            json!({ "mask": "m", "quality": "high" }),
            &[
                ("mask", json!("m"), Value::Null),
                ("quality", json!("high"), Value::Null),
            ],
        )],
    );
    check_changes(
        "grok-imagine-1.0-edit-partner",
        &[(
            json!({ "image_urls": [URL, "https://example.com/b.png"] }),
            &[(
                "image_urls[1]",
                json!("https://example.com/b.png"),
                Value::Null,
            )],
        )],
    );
    let edit = job(submit(
        "grok-imagine-1.0-edit-partner",
        &json!({ "image_urls": urls(3) }),
    ));
    assert_eq!(edit.references.len(), 1);
    assert_eq!(edit.size.pixels, None);
}

#[test]
fn gemini() {
    for family in ["2.5-flash", "3.1-flash", "3-pro"] {
        let model = format!("gemini-{family}-image-preview");
        let mut cases = vec![
            (json!({}), "/n", json!(1)),
            (json!({}), "/extra/official_fallback", json!(false)),
            (
                json!({ "official_fallback": true }),
                "/extra/official_fallback",
                json!(true),
            ),
            (
                json!({ "image_urls": urls(14) }),
                "/references/13/field",
                json!("image_urls[13]"),
            ),
            (json!({ "image_urls": [URL] }), "/size/pixels", Value::Null),
            (
                json!({ "image_urls": [URL], "size": "1:1" }),
                "/size/pixels/width",
                json!(1024),
            ),
        ];
        for n in 1..=4 {
            cases.push((json!({ "n": n }), "/n", json!(n)));
        }
        check(&model, &cases);
        let official = format!("{model}-official");
        let body = json!({ "official_fallback": false });
        check(
            &official,
            &[(body, "/extra/official_fallback", json!(false))],
        );
    }
    let thousand = "狐".repeat(1000);
    check(
        "gemini-2.5-flash-image-preview",
        &[(json!({ "prompt": thousand }), "/prompt", json!(thousand))],
    );
    let long = "x".repeat(1001);
    check(
        "gemini-3-pro-image-preview",
        &[(json!({ "prompt": long }), "/prompt", json!(long))],
    );
    let image_search = "/extra/engine_image_search";
    let mut cases = vec![
        (json!({}), "/extra/engine_search", json!(false)),
        (json!({}), image_search, json!(false)),
        (
            json!({ "engine_search": true }),
            "/extra/engine_search",
            json!(true),
        ),
        (
            json!({ "google_search": true }),
            "/extra/engine_search",
            json!(true),
        ),
        (
            json!({ "google_search": true, "engine_search": true }),
            "/extra/engine_search",
            json!(true),
        ),
    ];
    for name in ["engine_image_search", "google_image_search", "image_search"] {
        cases.push((
            json!({ "engine_search": true, name: true }),
            image_search,
            json!(true),
        ));
        cases.push((json!({ name: false }), image_search, json!(false)));
    }
    check("gemini-3.1-flash-image-preview", &cases);
}

#[test]
fn wan2_7() {
    let palette = json!([
        { "hex": "#C2D1E6", "ratio": "25.00%" },
        { "hex": "#636574", "ratio": "25.5%" },
        { "hex": "#abcdef", "ratio": "49.50%" },
    ]);
    let boxes = json!([[[0, 0, 10, 10], [5, 5, 6, 6]], []]);
    for model in ["wan2.7-image-pro", "wan2.7-image"] {
        let mut cases = vec![
            (json!({}), "/n", json!(1)),
            (json!({ "enable_sequential": true }), "/n", json!(1)),
            (json!({}), "/watermark", json!(false)),
            (json!({}), "/extra/enable_sequential", json!(false)),
            (json!({}), "/extra/thinking_mode", Value::Null),
            (
                json!({ "thinking_mode": true }),
                "/extra/thinking_mode",
                json!(true),
            ),
            (json!({ "seed": 0 }), "/seed", json!(0)),
            (
                json!({ "seed": 2_147_483_647 }),
                "/seed",
                json!(2_147_483_647),
            ),
            (
                json!({ "negative_prompt": "rain" }),
                "/negative_prompt",
                json!("rain"),
            ),
            (json!({ "watermark": true }), "/watermark", json!(true)),
            (
                json!({ "prompt": "", "image_urls": [URL] }),
                "/prompt",
                json!(""),
            ),
            (
                json!({ "prompt": null, "image_urls": [URL] }),
                "/prompt",
                json!(""),
            ),
            (
                json!({ "prompt": "x".repeat(5000) }),
                "/prompt",
                json!("x".repeat(5000)),
            ),
            (
                json!({ "image_urls": urls(9) }),
                "/references/8/field",
                json!("image_urls[8]"),
            ),
            (
                json!({ "image_urls": urls(2), "bbox_list": boxes }),
                "/extra/bbox_list",
                boxes.clone(),
            ),
            (json!({ "bbox_list": [] }), "/extra/bbox_list", json!([])),
            (
                json!({ "color_palette": palette }),
                "/extra/color_palette",
                palette.clone(),
            ),
        ];
        for n in 1..=12 {
            cases.push((json!({ "n": n, "enable_sequential": true }), "/n", json!(n)));
            if n <= 4 {
                cases.push((json!({ "n": n }), "/n", json!(n)));
            }
        }
        check(model, &cases);
        check_changes(
            model,
            &[(
                json!({ "thinking_mode": true, "enable_sequential": true }),
                &[("thinking_mode", json!(true), Value::Null)],
            )],
        );
    }
    let mut ten: Vec<Value> = vec![json!({ "hex": "#000000", "ratio": "9.99%" }); 9];
    ten.push(json!({ "hex": "#FFFFFF", "ratio": "10.09%" }));
    submit("wan2.7-image", &json!({ "color_palette": ten }));
}

#[test]
fn many_and_huge_ignored_fields_stay_small() {
    let mut body = serde_json::Map::new();
    for index in 0..5000 {
        body.insert(
            format!("{}{index}", "z".repeat(200)),
            "y".repeat(5000).into(),
        );
    }
    let got = submit("grok-imagine-1.0-partner", &body.into());
    assert_eq!(got.adjustments.len(), 21);
    assert_eq!(got.adjustments[20].asked, json!("4980 more fields"));
    assert!(serde_json::to_string(&got.adjustments).unwrap().len() < 20_000);
}

#[test]
fn a_stored_job_reads_back() {
    let body = json!({ "image_urls": [URL], "n": 3, "size": "16:9" });
    let job = job(submit("doubao-seedream-4.5", &body));
    let stored = serde_json::to_string(&job).unwrap();
    assert_eq!(
        serde_json::from_str::<tollgate_media::image::ImageJob>(&stored).unwrap(),
        job
    );
}
