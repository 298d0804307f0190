//! Bad values of every field: each refused with its name, what came and what is allowed.

use serde_json::{Value, json};

use crate::{URL, model, rejection, urls, with_prompt};

/// Each body is refused with a message that holds all the words.
pub(crate) fn check(model: &str, cases: &[(Value, &[&str])]) {
    for (body, words) in cases {
        let message = rejection(model, body);
        for word in *words {
            assert!(
                message.contains(word),
                "{model} {body}: {message:?} lacks {word:?}"
            );
        }
    }
}

const ALL: [&str; 12] = [
    "gpt-image-2-official",
    "gpt-image-1-official",
    "gpt-image-2.5-async",
    "doubao-seedream-4-5",
    "doubao-seedream-5-0-lite",
    "grok-imagine-1.0-partner",
    "grok-imagine-1.0-edit-partner",
    "imagen-4.0-partner",
    "gemini-2.5-flash-image-preview",
    "gemini-3.1-flash-image-preview",
    "gemini-3-pro-image-preview",
    "wan2.7-image-pro",
];

#[test]
fn the_prompt_is_required() {
    for model in ALL {
        for prompt in [json!(null), json!(""), json!(" \n\t　")] {
            check(
                model,
                &[(json!({ "prompt": prompt }), &["`prompt` is required"])],
            );
        }
        for prompt in [json!(1), json!(["a"]), json!({}), json!(true)] {
            check(
                model,
                &[(
                    json!({ "prompt": prompt }),
                    &["`prompt` must be a string, got"],
                )],
            );
        }
    }
    let long = "狐".repeat(1001);
    for model in [
        "gemini-2.5-flash-image-preview",
        "gemini-2.5-flash-image-preview-official",
    ] {
        check(
            model,
            &[(
                json!({ "prompt": long }),
                &["`prompt`", "at most 1000", "got 1001"],
            )],
        );
    }
    let long = "x".repeat(5001);
    for model in ["wan2.7-image", "wan2.7-image-pro"] {
        check(
            model,
            &[(json!({ "prompt": long }), &["at most 5000", "got 5001"])],
        );
        let body = json!({ "prompt": long, "image_urls": [URL] });
        check(model, &[(body, &["at most 5000", "got 5001"])]);
    }
}

#[test]
fn n_is_a_whole_number_in_range() {
    for (model, max) in [
        ("gpt-image-2-official", 4),
        ("doubao-seedream-4-5", 15),
        ("doubao-seedream-5-0-lite", 4),
        ("grok-imagine-1.0-partner", 10),
        ("grok-imagine-1.0-edit-partner", 10),
        ("gemini-2.5-flash-image-preview", 4),
        ("gemini-3.1-flash-image-preview", 4),
        ("gemini-3-pro-image-preview", 4),
        ("wan2.7-image-pro", 12),
    ] {
        let allowed = format!("from 1 to {max}");
        for (n, shown) in [
            (json!(0), "got 0"),
            (json!(-1), "got -1"),
            (json!(max + 1), &*format!("got {}", max + 1)),
            (json!(u64::MAX), "got 18446744073709551615"),
            (json!(1.0), "got 1.0"),
            (json!(1.5), "got 1.5"),
            (json!(1e300), "got 1e+300"),
            (json!("2"), "got \"2\""),
            (json!(true), "got true"),
            (json!([1]), "got [1]"),
            (json!({ "a": 1 }), "got {\"a\":1}"),
        ] {
            let body = json!({ "n": n, "image_urls": [URL] });
            check(model, &[(body, &["`n`", &allowed, shown])]);
        }
        check(
            model,
            &[(
                json!({ "n": "2", "image_urls": [URL] }),
                &["without quotes"],
            )],
        );
    }
    for n in [0, 2, -1] {
        check(
            "imagen-4.0-partner",
            &[(json!({ "n": n }), &["`n` must be 1, the only value"])],
        );
    }
    for n in [json!("2"), json!(2.0), json!(true), json!(1e30)] {
        check(
            "gpt-image-1-official",
            &[(json!({ "n": n }), &["`n` must be a whole number"])],
        );
    }
    for n in [5, 12] {
        let words: &[&str] = &["`n`", "1 to 4", "enable_sequential"];
        check("wan2.7-image", &[(json!({ "n": n }), words)]);
    }
}

#[test]
fn choices_are_listed_and_case_sensitive() {
    for (model, field, bad, allowed) in [
        (
            "gpt-image-2-official",
            "quality",
            "High",
            "auto, low, medium, high",
        ),
        (
            "gpt-image-2-official",
            "quality",
            "xhigh",
            "auto, low, medium, high",
        ),
        (
            "gpt-image-2-official",
            "background",
            "none",
            "auto, opaque, transparent",
        ),
        ("gpt-image-2-official", "moderation", "high", "auto, low"),
        (
            "gpt-image-2-official",
            "output_format",
            "gif",
            "png, jpeg, webp",
        ),
        (
            "gpt-image-2-official",
            "output_format",
            "jpg",
            "png, jpeg, webp",
        ),
        ("gpt-image-2-official", "resolution", "3k", "1k, 2k, 4k"),
        ("gpt-image-2-official", "resolution", "", "1k, 2k, 4k"),
        (
            "gpt-image-1-official",
            "quality",
            "best",
            "auto, low, medium, high",
        ),
        (
            "gpt-image-1-official",
            "background",
            "clear",
            "auto, opaque, transparent",
        ),
        ("gpt-image-1-official", "moderation", "off", "auto, low"),
        ("gpt-image-1-official", "output_format", "webp", "png, jpeg"),
        ("gpt-image-1-official", "size", "16:9", "1:1, 3:2, 2:3"),
        ("gpt-image-1-official", "size", "auto", "1:1, 3:2, 2:3"),
        ("gpt-image-1-official", "size", "512x512", "1:1, 3:2, 2:3"),
        (
            "gpt-image-2.5-async",
            "quality",
            "best",
            "auto, low, medium, high, xhigh, max",
        ),
        ("gpt-image-2.5-async", "size", "1:1", "1024x1024, 1536x1024"),
        (
            "gpt-image-2.5-async",
            "size",
            "auto",
            "1024x1024, 1536x1024",
        ),
        ("gpt-image-2.5-async", "size", "512x512", "3840x2160"),
        ("doubao-seedream-4.5", "resolution", "1K", "2K, 4K"),
        ("doubao-seedream-4.5", "resolution", "3K", "2K, 4K"),
        (
            "doubao-seedream-4.5",
            "size",
            "5:4",
            "1:1, 4:3, 3:4, 16:9, 9:16, 3:2, 2:3, 21:9, 9:21",
        ),
        ("doubao-seedream-4.5", "size", "2048x2048", "9:21"),
        (
            "doubao-seedream-4.5",
            "optimize_prompt_mode",
            "slow",
            "standard, fast",
        ),
        (
            "doubao-seedream-4.5",
            "sequential_image_generation",
            "on",
            "disabled, auto",
        ),
        ("doubao-seedream-5.0-lite", "resolution", "1K", "2K, 3K"),
        ("doubao-seedream-5.0-lite", "resolution", "4K", "2K, 3K"),
        (
            "doubao-seedream-5.0-lite",
            "size",
            "9:21",
            "1:1, 4:3, 3:4, 16:9, 9:16, 3:2, 2:3, 21:9",
        ),
        (
            "doubao-seedream-5.0-lite",
            "output_format",
            "webp",
            "jpeg, png",
        ),
        (
            "doubao-seedream-5.0-lite",
            "sequential_image_generation",
            "Auto",
            "disabled, auto",
        ),
        (
            "grok-imagine-1.0-partner",
            "size",
            "4:3",
            "1:1, 16:9, 9:16, 3:2, 2:3",
        ),
        (
            "grok-imagine-1.0-partner",
            "size",
            "auto",
            "1:1, 16:9, 9:16, 3:2, 2:3",
        ),
        (
            "imagen-4.0-partner",
            "size",
            "wide",
            "1:1, 4:3, 3:4, 16:9, 9:16",
        ),
        (
            "imagen-4.0-partner",
            "size",
            "1024x1024",
            "1:1, 4:3, 3:4, 16:9, 9:16",
        ),
        (
            "gemini-2.5-flash-image-preview",
            "resolution",
            "2K",
            "1K, the only value",
        ),
        (
            "gemini-2.5-flash-image-preview",
            "size",
            "1:4",
            "1:1, 2:3, 3:2, 3:4, 4:3, 4:5, 5:4, 9:16, 16:9, 21:9",
        ),
        ("gemini-2.5-flash-image-preview", "size", "auto", "21:9"),
        (
            "gemini-3-pro-image-preview",
            "resolution",
            "0.5K",
            "1K, 2K, 4K",
        ),
        ("gemini-3-pro-image-preview", "size", "8:1", "21:9"),
        (
            "gemini-3.1-flash-image-preview",
            "resolution",
            "3K",
            "0.5K, 1K, 2K, 4K",
        ),
        (
            "gemini-3.1-flash-image-preview",
            "size",
            "9:21",
            "1:4, 4:1, 1:8, 8:1",
        ),
    ] {
        let field_in_ticks = format!("`{field}`");
        let got = format!("got {}", json!(bad));
        check(
            model,
            &[(json!({ field: bad }), &[&field_in_ticks, allowed, &got])],
        );
        check(model, &[(json!({ field: 7 }), &[&field_in_ticks, "got 7"])]);
        check(model, &[(json!({ field: [bad] }), &[&field_in_ticks])]);
    }
}

#[test]
fn gpt_image_2() {
    let long = "9".repeat(5000);
    check(
        "gpt-image-2-official",
        &[
            (
                json!({ "size": "7:5" }),
                &[
                    "`size` must be one of auto, 1:1, 3:2",
                    "9:21",
                    "got \"7:5\"",
                ],
            ),
            (
                json!({ "size": "1000x1000" }),
                &["`size`", "nearest is 1024x1024", "got \"1000x1000\""],
            ),
            (json!({ "size": "1024X1024" }), &["`size`"]),
            (json!({ "size": "1024*1024" }), &["`size`"]),
            (json!({ "size": "01024x1024" }), &["`size`"]),
            (json!({ "size": "+1024x1024" }), &["`size`"]),
            (json!({ "size": "1024x1024 " }), &["`size`"]),
            (json!({ "size": "" }), &["`size`"]),
            (
                json!({ "size": format!("{long}x{long}") }),
                &["`size`", "…"],
            ),
            (
                json!({ "size": "1024x1024", "resolution": "2k" }),
                &["`size` 1024x1024", "1k", "`resolution` is 2k"],
            ),
            (
                json!({ "size": "3840x2160", "resolution": "1K" }),
                &["`resolution`"],
            ),
            (
                json!({ "size": "1881x836", "resolution": "4k" }),
                &["`resolution`"],
            ),
            (
                json!({ "output_format": "jpeg", "output_compression": 101 }),
                &["from 0 to 100", "got 101"],
            ),
            (
                json!({ "output_format": "jpeg", "output_compression": -1 }),
                &["`output_compression`"],
            ),
            (
                json!({ "output_compression": "50" }),
                &["`output_compression`", "without quotes"],
            ),
            (
                json!({ "image_urls": urls(17) }),
                &["`image_urls`", "at most 16", "got 17"],
            ),
            (
                json!({ "image_urls": URL }),
                &["`image_urls` must be an array"],
            ),
            (
                json!({ "image_urls": [URL, 5] }),
                &["`image_urls[1]`", "got 5"],
            ),
            (
                json!({ "image_urls": [{ "url": URL }] }),
                &["`image_urls[0]` must be a string", "not an object"],
            ),
            (
                json!({ "image_urls": ["ftp://a/b"] }),
                &["`image_urls[0]`", "http or https", "ftp://a/b"],
            ),
            (
                json!({ "image_urls": ["data:image/png;base64,AAAA"] }),
                &["`image_urls[0]`", "POST /v1/uploads/images"],
            ),
            (
                json!({ "mask_url": URL }),
                &["`mask_url` requires `image_urls`"],
            ),
            (
                json!({ "mask_url": URL, "image_urls": [] }),
                &["`mask_url` requires `image_urls`"],
            ),
            (
                json!({ "mask_url": "x", "image_urls": [URL] }),
                &["`mask_url`", "http or https"],
            ),
            (
                json!({ "mask_url": [URL], "image_urls": [URL] }),
                &["`mask_url` must be a string"],
            ),
            (
                json!({ "mask_url": "DATA:,x", "image_urls": [URL] }),
                &["POST /v1/uploads/images"],
            ),
        ],
    );
}

#[test]
fn gpt_image_1() {
    for model in ["gpt-image-1-official", "gpt-image-1.5-official"] {
        check(
            model,
            &[
                (
                    json!({ "background": "transparent", "output_format": "jpeg" }),
                    &["`background`", "`output_format` \"jpeg\"", "png"],
                ),
                (json!({ "image_urls": urls(16) }), &["at most 15", "got 16"]),
                (
                    json!({ "mask_url": URL }),
                    &["`mask_url` requires `image_urls`"],
                ),
                (
                    json!({ "output_format": "jpeg", "output_compression": 101 }),
                    &["from 0 to 100"],
                ),
                (
                    json!({ "size": "1000x1000" }),
                    &["`size`", "nearest is 1024x1024"],
                ),
            ],
        );
    }
}

#[test]
fn seedream() {
    let mode = "sequential_image_generation";
    let options = "sequential_image_generation_options";
    check(
        "doubao-seedance-4-5",
        &[
            (
                json!({ "size": "auto" }),
                &["`size` \"auto\"", "`image_urls`"],
            ),
            (
                json!({ "n": 2 }),
                &["`n` must be 1 without `image_urls`", "got 2"],
            ),
            (
                json!({ mode: "auto", options: { "max_images": 2 } }),
                &["`n` must be 1 without `image_urls`"],
            ),
            (
                json!({ "n": 6, "image_urls": urls(10) }),
                &["at most 15", "got 6 and 10"],
            ),
            (
                json!({ "n": 15, "image_urls": urls(1) }),
                &["at most 15", "got 15 and 1"],
            ),
            (
                json!({ mode: "auto", options: { "max_images": 15 }, "image_urls": [URL] }),
                &["at most 15"],
            ),
            (json!({ "image_urls": urls(11) }), &["at most 10", "got 11"]),
            (
                json!({ options: { "max_images": 0 } }),
                &[
                    "`sequential_image_generation_options.max_images`",
                    "1 to 15",
                ],
            ),
            (
                json!({ options: { "max_images": 16 } }),
                &["1 to 15", "got 16"],
            ),
            (
                json!({ options: { "max_images": "3" } }),
                &["without quotes"],
            ),
            (json!({ options: [3] }), &["must be an object"]),
            (
                json!({ "optimize_prompt_options": "fast" }),
                &["`optimize_prompt_options` must be an object"],
            ),
            (
                json!({ "optimize_prompt_options": { "mode": "x" } }),
                &["`optimize_prompt_options.mode`", "standard, fast"],
            ),
            (
                json!({ "optimize_prompt_options": { "mode": "fast" }, "optimize_prompt_mode": "standard" }),
                &["`optimize_prompt_mode`", "must not differ"],
            ),
            (
                json!({ "watermark": "true" }),
                &["`watermark` must be true or false", "got \"true\""],
            ),
            (
                json!({ "watermark": 1 }),
                &["`watermark` must be true or false"],
            ),
        ],
    );
    check(
        "doubao-seedream-5-0-lite",
        &[
            (
                json!({ "size": "auto" }),
                &["`size` \"auto\"", "`image_urls`"],
            ),
            (json!({ "image_urls": urls(15) }), &["at most 14", "got 15"]),
            (json!({ options: { "max_images": 16 } }), &["1 to 15"]),
        ],
    );
}

#[test]
fn imagen_takes_text_only() {
    for field in ["image", "image_urls"] {
        for value in [json!(URL), json!([URL]), json!([]), json!(5)] {
            let words: &[&str] = &["only supports text-to-image", field];
            check("imagen-4.0-partner", &[(json!({ field: value }), words)]);
        }
    }
}

#[test]
fn edits_need_a_image() {
    check(
        "grok-imagine-1.0-edit-partner",
        &[
            (json!({}), &["`image_urls` is required"]),
            (json!({ "image_urls": null }), &["`image_urls` is required"]),
            (json!({ "image_urls": [] }), &["`image_urls` is required"]),
            (
                json!({ "image_urls": URL }),
                &["`image_urls` must be an array"],
            ),
            // Those that are not used are checked for their form all the same.
            (
                json!({ "image_urls": [URL, "nonsense"] }),
                &["`image_urls[1]`"],
            ),
        ],
    );
}

#[test]
fn gemini() {
    for family in ["2.5-flash", "3.1-flash", "3-pro"] {
        let model = format!("gemini-{family}-image-preview");
        check(
            &model,
            &[
                (json!({ "image_urls": urls(15) }), &["at most 14", "got 15"]),
                (
                    json!({ "official_fallback": "true" }),
                    &["`official_fallback` must be true or false"],
                ),
            ],
        );
        check(
            &format!("{model}-official"),
            &[(
                json!({ "official_fallback": true }),
                &["`official_fallback`", "official"],
            )],
        );
    }
    for name in ["engine_image_search", "google_image_search", "image_search"] {
        check(
            "gemini-3.1-flash-image-preview",
            &[
                (
                    json!({ name: true }),
                    &["`engine_image_search`", "`engine_search`"],
                ),
                (
                    json!({ name: 1 }),
                    &[&format!("`{name}` must be true or false")],
                ),
                (
                    json!({ name: true, "engine_search": false }),
                    &["`engine_image_search`", "`engine_search`"],
                ),
            ],
        );
    }
    check(
        "gemini-3.1-flash-image-preview",
        &[(
            json!({ "engine_search": true, "google_search": false }),
            &["`engine_search` and `google_search`", "true and false"],
        )],
    );
}

#[test]
fn strict_requests_name_what_would_be_ignored() {
    let strict = |id: &str, body: Value| crate::parse(model(id), &with_prompt(&body), true);
    for (id, body, word) in [
        ("grok-imagine-1.0-partner", json!({ "seed": 1 }), "`seed`"),
        (
            "doubao-seedream-4.5",
            json!({ "output_format": "png" }),
            "`output_format`",
        ),
        (
            "imagen-4.0-partner",
            json!({ "quality": "high" }),
            "`quality`",
        ),
        (
            "doubao-seedream-4.5",
            json!({ "optimize_prompt_options": { "x": 1 } }),
            "`optimize_prompt_options.x`",
        ),
        (
            "wan2.7-image",
            json!({ "a": 1, "b": 1, "c": 1, "d": 1 }),
            "`a`, `b`, `c`, 1 more",
        ),
    ] {
        let error = strict(id, body).unwrap_err();
        assert!(error.message.contains(word), "{error}");
        assert!(error.message.contains("x-tollgate-strict"), "{error}");
    }
    let long = json!({ "x".repeat(100_000): 1 });
    assert!(strict("wan2.7-image", long).unwrap_err().message.len() < 300);
    assert!(
        strict(
            "wan2.7-image",
            json!({ "model": "wan2.7-image", "seed": null, "x": null })
        )
        .is_ok()
    );
    assert!(strict("gpt-image-1-official", json!({ "n": 9 })).is_ok());
}
