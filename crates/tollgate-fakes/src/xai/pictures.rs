//! Pictures, from text and from pictures.

use std::sync::Arc;

use serde_json::{Value, json};

use super::words::{self, invalid};
use super::{IMAGE, STORAGE, check, image};
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::incoming::Seen;
use crate::made::{Picture, PictureForm, Recipe};
use crate::pixels;
use crate::refusal::Judged;
use crate::shape::{Kind, Shape, field, list_of, text_of};

const RATIOS: &[&str] = &[
    "1:1", "3:4", "4:3", "9:16", "16:9", "2:3", "3:2", "9:19.5", "19.5:9", "9:20", "20:9", "1:2",
    "2:1", "auto",
];

/// What both requests take.
macro_rules! with_common {
    ($($field:expr),* $(,)?) => {
        &[
            ("model", Kind::Str),
            ("prompt", Kind::Str),
            ("n", Kind::Int(1, 10)),
            ("aspect_ratio", Kind::OneOf(RATIOS)),
            ("resolution", Kind::OneOf(&["1k", "2k"])),
            ("quality", Kind::OneOf(&["low", "medium"])),
            ("response_format", Kind::OneOf(&["url", "b64_json"])),
            ("user", Kind::Str),
            ("storage_options", STORAGE),
            $($field),*
        ]
    };
}

const GENERATION: Shape = Shape {
    fields: with_common![],
    required: &["model", "prompt"],
};

const EDIT: Shape = Shape {
    fields: with_common![("image", IMAGE), ("images", Kind::Few(3, &IMAGE))],
    required: &["model", "prompt"],
};

const MODELS: &[&str] = &[
    "grok-imagine-image",
    "grok-imagine-image-2.0",
    "grok-imagine-image-quality",
    "grok-imagine-image-pro",
];

/// Ticks of a dollar for a picture.
const COST: u64 = 200_000_000;

pub(super) fn generate(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &GENERATION)?;
    read(request)
}

pub(super) fn edit(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &EDIT)?;
    let body = &request.body;
    let images = list_of(body, "images");
    match (field(body, "image"), images) {
        (Some(one), []) => image(one, "image")?,
        (None, [_, ..]) => {
            for (at, one) in images.iter().enumerate() {
                image(one, &format!("images[{at}]"))?;
            }
        }
        _ => {
            let message = "Exactly one of `image` and `images` must be given";
            return Err(Box::new(invalid("image-fields", message)));
        }
    }
    read(request)
}

fn read(request: &Arc<Seen>) -> Judged<Media> {
    let model = text_of(&request.body, "model").unwrap_or_default();
    if !MODELS.contains(&model) {
        return Err(Box::new(words::model_missing(model)));
    }
    let text = text_of(&request.body, "prompt").unwrap_or_default();
    if text.trim().is_empty() {
        return Err(Box::new(invalid("empty-prompt", "Prompt cannot be empty")));
    }
    let request = Arc::clone(request);
    Ok(Media::submit(text.to_owned(), move |desk| {
        desk.moderate(&request)?;
        if desk.course.verdict != Verdict::Filtered {
            desk.succeed(&request)?;
        }
        Ok(answer(desk, &request.body))
    }))
}

fn answer(desk: &Desk<'_>, body: &Value) -> Made {
    let count = field(body, "n").and_then(Value::as_u64).unwrap_or(1) as usize;
    let good = match desk.course.verdict {
        Verdict::Good => desk.course.good(count),
        _ => 0,
    };
    let side = match text_of(body, "resolution") {
        Some("2k") => 2048,
        _ => 1024,
    };
    let ratio = text_of(body, "aspect_ratio").and_then(pixels::ratio);
    let size = pixels::with_area(ratio.unwrap_or(1.0), side);
    let is_inline = text_of(body, "response_format") == Some("b64_json");
    let item = |nth: usize| {
        if nth >= good {
            return json!({"url": "", "revised_prompt": "", "respect_moderation": false});
        }
        let form = PictureForm::Jpeg;
        let number = desk.number + nth as u64;
        let recipe = Recipe::Picture(Picture { form, size, number });
        let mut item = json!({"revised_prompt": "", "respect_moderation": true});
        if is_inline {
            item["b64_json"] = json!(desk.base64(recipe));
        } else {
            item["url"] = json!(desk.link(recipe));
        }
        item
    };
    let data: Vec<Value> = (0..count).map(item).collect();
    let usage = json!({"cost_in_usd_ticks": COST * count as u64});
    Made::json(json!({"data": data, "usage": usage})).after(desk.course.work)
}
