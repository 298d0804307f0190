//! Pictures from text, and what both ways to pictures have in common.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::words::{self, invalid_value};
use super::fields;
use crate::clock;
use crate::desk::{Desk, Made, Media};
use crate::incoming::Seen;
use crate::made::{Picture, PictureForm, Recipe};
use crate::pixels;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, text_of};
use crate::tokens::tokens;

pub(super) const QUALITIES: &[&str] = &["low", "medium", "high", "xhigh", "max", "auto"];
pub(super) const GRADES: &[&str] = &["low", "medium", "high"];
pub(super) const BACKGROUNDS: &[&str] = &["transparent", "opaque", "auto"];
pub(super) const FORMATS: &[&str] = &["png", "jpeg", "webp"];

const REQUEST: Shape = Shape {
    fields: &[
        ("prompt", Kind::Text(32_000)),
        ("model", Kind::Str),
        ("n", Kind::Int(1, 10)),
        ("size", Kind::Str),
        ("quality", Kind::OneOf(QUALITIES)),
        ("background", Kind::OneOf(BACKGROUNDS)),
        ("moderation", Kind::OneOf(&["auto", "low"])),
        ("output_format", Kind::OneOf(FORMATS)),
        ("output_compression", Kind::Int(0, 100)),
        ("complexity", Kind::OneOf(GRADES)),
        ("stream", Kind::Bool),
        ("partial_images", Kind::Int(0, 3)),
        ("safety_identifier", Kind::Text(128)),
        ("user", Kind::Str),
    ],
    required: &["prompt", "model"],
};

/// Generations of picture models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Model {
    Mini,
    One5,
    Two,
    /// 2.5 and 2.6.
    Two5,
}

impl Model {
    /// The model of a request; those that are shut down are missing.
    pub(super) fn of(body: &Value) -> Judged<Self> {
        let name = text_of(body, "model").unwrap_or_default();
        match name {
            "gpt-image-1-mini" => Ok(Self::Mini),
            "gpt-image-1.5" | "chatgpt-image-latest" => Ok(Self::One5),
            "gpt-image-2" | "gpt-image-2-2026-04-21" => Ok(Self::Two),
            "gpt-image-2.5-sunburst"
            | "gpt-image-2.5-flare"
            | "gpt-image-2.5-sunburst-2026-09-08"
            | "gpt-image-2.5-flare-2026-09-08"
            | "gpt-image-2.6-sunburst"
            | "gpt-image-2.6-flare" => Ok(Self::Two5),
            _ => Err(Box::new(words::model_missing(name))),
        }
    }
}

/// The pictures that a request wants.
pub(super) struct Wish {
    pub(super) prompt: String,
    pub(super) size: (u32, u32),
    count: usize,
    form: PictureForm,
    /// What an answer repeats.
    quality: String,
    background: String,
}

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    if request.says_form() {
        let given = request.header("content-type").unwrap_or_default();
        return Err(Box::new(words::content_type(given)));
    }
    let body = fields(request, &REQUEST)?;
    let model = Model::of(&body)?;
    let wish = wish(&body, model)?;
    Ok(submit(request, wish, 0))
}

/// Judges what both ways have in common.
pub(super) fn wish(body: &Value, model: Model) -> Judged<Wish> {
    let format = text_of(body, "output_format").unwrap_or("png");
    let quality = text_of(body, "quality").unwrap_or("auto");
    let background = text_of(body, "background").unwrap_or("auto");
    if ["xhigh", "max"].contains(&quality) && model < Model::Two5 {
        let message = format!(
            "Invalid value: '{quality}'. Supported values are: 'low', 'medium', 'high', and 'auto'."
        );
        return Err(Box::new(invalid_value("quality", "quality", message)));
    }
    if background == "transparent" && format == "jpeg" {
        let message = "Transparent background is not supported for JPEG output format.";
        return Err(Box::new(invalid_value(
            "transparent",
            "background",
            message,
        )));
    }
    if field(body, "output_compression").is_some() && format == "png" {
        let message = "Compression is only supported for the output formats 'jpeg' and 'webp'.";
        let refusal = invalid_value("compression", "output_compression", message);
        return Err(Box::new(refusal));
    }
    if field(body, "complexity").is_some() && model < Model::Two5 {
        return Err(Box::new(words::unsupported("complexity", None)));
    }
    streams(body)?;
    Ok(Wish {
        prompt: prompt(body)?,
        size: size(body, model)?,
        count: field(body, "n").and_then(Value::as_u64).unwrap_or(1) as usize,
        form: PictureForm::named(format).unwrap_or(PictureForm::Png),
        quality: quality.replace("auto", "medium"),
        background: background.replace("auto", "opaque"),
    })
}

/// A prompt that is not empty.
pub(super) fn prompt(body: &Value) -> Judged<String> {
    let prompt = text_of(body, "prompt").unwrap_or_default();
    if prompt.is_empty() {
        let message =
            "Invalid 'prompt': string too short. Expected a string with minimum length 1.";
        return Err(Box::new(invalid_value("empty-prompt", "prompt", message)));
    }
    Ok(prompt.to_owned())
}

fn streams(body: &Value) -> Checked {
    let streams = body.get("stream") == Some(&Value::Bool(true));
    if streams {
        let refusal = words::not_made("The fake has no streams of pictures.");
        return Err(Box::new(refusal));
    }
    if field(body, "partial_images").is_some_and(|n| n != 0) {
        let message = "Partial images are only supported when 'stream' is true.";
        let refusal = invalid_value("partial-images", "partial_images", message);
        return Err(Box::new(refusal));
    }
    Ok(())
}

fn size(body: &Value, model: Model) -> Judged<(u32, u32)> {
    let text = text_of(body, "size").unwrap_or("auto");
    let standard = [(1024, 1024), (1536, 1024), (1024, 1536)];
    let bad = |message: String| Box::new(invalid_value("size", "size", message));
    if text == "auto" {
        return Ok(standard[0]);
    }
    let size = pixels::parse(text, 'x');
    if model < Model::Two {
        let fits = size.filter(|size| standard.contains(size));
        let names = "'1024x1024', '1024x1536', '1536x1024', and 'auto'";
        let message = format!("Invalid value: '{text}'. Supported values are: {names}.");
        return fits.ok_or_else(|| bad(message));
    }
    let Some(size) = size else {
        let message = format!("Invalid size '{text}'. Expected WIDTHxHEIGHT or 'auto'.");
        return Err(bad(message));
    };
    let rule = if size.0 % 16 != 0 || size.1 % 16 != 0 {
        "Width and height must both be divisible by 16."
    } else if size.0.max(size.1) > 3840 {
        "The longest edge must be at most 3840 pixels."
    } else if pixels::stretch(size) > 3.0 {
        "The aspect ratio must be between 1:3 and 3:1."
    } else if !(655_360..=8_294_400).contains(&pixels::area(size)) {
        "The number of pixels must be between 655360 and 8294400."
    } else {
        return Ok(size);
    };
    Err(bad(format!("Invalid size '{text}'. {rule}")))
}

/// A request in order, with so many pictures in it.
pub(super) fn submit(request: &Arc<Seen>, wish: Wish, inputs: usize) -> Media {
    let request = Arc::clone(request);
    Media::submit(wish.prompt.clone(), move |desk| {
        desk.succeed(&request)?;
        Ok(answer(desk, &wish, inputs))
    })
}

fn answer(desk: &Desk<'_>, wish: &Wish, inputs: usize) -> Made {
    let count = desk.course.good(wish.count);
    let item = |nth: usize| {
        let (form, size) = (wish.form, wish.size);
        let number = desk.number + nth as u64;
        let recipe = Recipe::Picture(Picture { form, size, number });
        json!({"b64_json": desk.base64(recipe)})
    };
    let data: Vec<Value> = (0..count).map(item).collect();
    let text = tokens(&wish.prompt, 0, false).input;
    let images = 323 * inputs as u64;
    let output = pixels::area(wish.size) / 1000 * count as u64;
    let format = wish.form.media_type().trim_start_matches("image/");
    let answer = json!({
        "created": clock::seconds(desk.time()), "background": wish.background,
        "output_format": format, "quality": wish.quality,
        "size": format!("{}x{}", wish.size.0, wish.size.1), "data": data,
        "usage": {
            "input_tokens": text + images, "output_tokens": output,
            "total_tokens": text + images + output,
            "input_tokens_details": {"text_tokens": text, "image_tokens": images},
            "output_tokens_details": {"text_tokens": 0, "image_tokens": output},
        },
    });
    Made::json(answer).after(desk.course.work)
}
