//! Bad values of wan2.7's own fields.

use serde_json::{Value, json};

use crate::invalid_requests::check;
use crate::{URL, urls};

#[test]
fn sizes() {
    let bad = |body: Value, size: &str| {
        let mut body = body;
        body["size"] = size.into();
        body
    };
    let group = json!({ "enable_sequential": true });
    let edit = json!({ "image_urls": [URL] });
    for (model, base, sizes) in [
        (
            "wan2.7-image-pro",
            json!({}),
            "8K 21:9 767x1024 4097x1024 1024x4097 1024X1024 x 1024x auto",
        ),
        (
            "wan2.7-image-pro",
            group.clone(),
            "4K 4k 2049x2048 2048*2049 767x768",
        ),
        (
            "wan2.7-image-pro",
            edit.clone(),
            "4K 4k 2049x2048 2048*2049 767x768 2560x1440",
        ),
        (
            "wan2.7-image",
            json!({}),
            "4K 4k 2560x1440 2049x2048 0x0 768x0768",
        ),
        ("wan2.7-image", group, "4K 2560x1440"),
        ("wan2.7-image", edit, "4K 2560x1440"),
    ] {
        for size in sizes.split_whitespace() {
            let shown = format!("got \"{size}\"");
            let words: &[&str] = &["`size`", "1K, 2K", "16:9", "768", &shown];
            check(model, &[(bad(base.clone(), size), words)]);
        }
    }
}

#[test]
fn fields() {
    let colours = |ratios: &[&str]| -> Value {
        let one = |ratio: &&str| json!({ "hex": "#C2D1E6", "ratio": ratio });
        ratios.iter().map(one).collect()
    };
    let third = json!({ "hex": "#C2D1E6", "ratio": "33.00%" });
    check(
        "wan2.7-image-pro",
        &[
            (json!({ "image_urls": urls(10) }), &["at most 9", "got 10"]),
            (
                json!({ "seed": -1 }),
                &["`seed`", "0 to 2147483647", "got -1"],
            ),
            (
                json!({ "seed": 2_147_483_648_u64 }),
                &["`seed`", "got 2147483648"],
            ),
            (json!({ "seed": "7" }), &["`seed`", "without quotes"]),
            (
                json!({ "n": 13, "enable_sequential": true }),
                &["`n`", "1 to 12", "got 13"],
            ),
            (
                json!({ "thinking_mode": "yes" }),
                &["`thinking_mode` must be true or false"],
            ),
            (
                json!({ "enable_sequential": 1 }),
                &["`enable_sequential` must be true or false"],
            ),
            (
                json!({ "negative_prompt": 1 }),
                &["`negative_prompt` must be a string"],
            ),
            (json!({ "watermark": "x" }), &["`watermark`"]),
            (json!({ "bbox_list": {} }), &["`bbox_list`"]),
            (
                json!({ "bbox_list": [[]] }),
                &["`bbox_list` must have one list per image", "(0), got 1"],
            ),
            (
                json!({ "image_urls": urls(2), "bbox_list": [[]] }),
                &["(2), got 1"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [5] }),
                &["`bbox_list[0]`", "at most 2 boxes"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 1]]] }),
                &["`bbox_list[0]`", "at most 2 boxes"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[0, 0, 1]]] }),
                &["`bbox_list[0][0]`", "[x1, y1, x2, y2]"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[0, 0, 1, 1, 1]]] }),
                &["`bbox_list[0][0]`"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[5, 0, 5, 1]]] }),
                &["`bbox_list[0][0]`", "x1 < x2"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[0, 9, 5, 1]]] }),
                &["`bbox_list[0][0]`"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[-1, 0, 5, 1]]] }),
                &["`bbox_list[0][0]`"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[0.5, 0, 5, 1]]] }),
                &["`bbox_list[0][0]`"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[["0", 0, 5, 1]]] }),
                &["`bbox_list[0][0]`"],
            ),
            (
                json!({ "image_urls": [URL], "bbox_list": [[[0, 0, 5_000_000_000_u64, 1]]] }),
                &["`bbox_list[0][0]`"],
            ),
            (
                json!({ "color_palette": {} }),
                &["`color_palette`", "3 to 10"],
            ),
            (
                json!({ "color_palette": colours(&["50%", "50%"]) }),
                &["3 to 10", "got 2"],
            ),
            (
                json!({ "color_palette": vec![third; 11] }),
                &["3 to 10", "got 11"],
            ),
            (
                json!({ "color_palette": colours(&["33.33%", "33.33%", "33.33%"]) }),
                &["sum to 100.00%", "got 99.99%"],
            ),
            (
                json!({ "color_palette": colours(&["33.33%", "33.33%", "33.35%"]) }),
                &["got 100.01%"],
            ),
            (
                json!({ "color_palette": colours(&["50%", "50%", "0%"]) }),
                &["`color_palette[2].ratio`", "got \"0%\""],
            ),
            (
                json!({ "color_palette": colours(&["50", "30%", "20%"]) }),
                &["`color_palette[0].ratio`"],
            ),
            (
                json!({ "color_palette": colours(&["50.000%", "30%", "20%"]) }),
                &["`color_palette[0].ratio`"],
            ),
            (
                json!({ "color_palette": colours(&["50.%", "30%", "20%"]) }),
                &["`color_palette[0].ratio`"],
            ),
            (
                json!({ "color_palette": colours(&["-50%", "30%", "20%"]) }),
                &["`color_palette[0].ratio`"],
            ),
            (
                json!({ "color_palette": colours(&["101%", "30%", "20%"]) }),
                &["`color_palette[0].ratio`"],
            ),
            (
                json!({ "color_palette": [{ "hex": "C2D1E6", "ratio": "50%" }, 1, 2] }),
                &["`color_palette[0].hex`", "#C8A37E"],
            ),
            (
                json!({ "color_palette": [{ "hex": "#C2D1E", "ratio": "50%" }, 1, 2] }),
                &["`color_palette[0].hex`"],
            ),
            (
                json!({ "color_palette": [{ "hex": "#C2D1EG", "ratio": "50%" }, 1, 2] }),
                &["`color_palette[0].hex`"],
            ),
            (
                json!({ "color_palette": [{ "hex": "#C2D1E6", "ratio": 0.5 }, 1, 2] }),
                &["`color_palette[0].ratio`", "got 0.5"],
            ),
            (
                json!({ "color_palette": [{ "hex": "#C2D1E6", "ratio": "5%", "x": 1 }, 1, 2] }),
                &["hex and ratio only"],
            ),
            (
                json!({ "color_palette": [1, 2, 3] }),
                &["`color_palette[0]`", "got 1"],
            ),
            (
                json!({ "color_palette": colours(&["50%", "30%", "20%"]), "enable_sequential": true }),
                &["`color_palette`", "`enable_sequential`"],
            ),
        ],
    );
}
