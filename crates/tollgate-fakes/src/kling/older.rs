//! Films by the older APIs, which have a `model_name`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::task::{self, Kind as Task};
use super::words::{self, invalid};
use super::{callback, check, picture};
use crate::desk::{Made, Media};
use crate::incoming::Seen;
use crate::pixels;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, text_of};

const RATIO: (&str, Kind) = ("aspect_ratio", Kind::OneOf(&["16:9", "9:16", "1:1"]));

/// What both requests take.
macro_rules! with_common {
    ($($field:expr),* $(,)?) => {
        &[
            ("model_name", Kind::Str),
            ("prompt", Kind::Text(2500)),
            ("negative_prompt", Kind::Text(2500)),
            ("mode", Kind::OneOf(&["std", "pro"])),
            ("duration", Kind::OneOf(&["5", "10"])),
            ("cfg_scale", Kind::Num(0.0, 1.0)),
            ("sound", Kind::OneOf(&["on", "off"])),
            ("camera_control", Kind::Object),
            (
                "watermark_info",
                Kind::Shape(&Shape {
                    fields: &[("enabled", Kind::Bool)],
                    required: &["enabled"],
                }),
            ),
            ("callback_url", Kind::Str),
            ("external_task_id", Kind::Str),
            $($field),*
        ]
    };
}

const TEXT: Shape = Shape {
    fields: with_common![RATIO],
    required: &["prompt"],
};

const IMAGE: Shape = Shape {
    fields: with_common![("image", Kind::Str), ("image_tail", Kind::Str)],
    required: &[],
};

const MODELS: &[&str] = &[
    "kling-v1",
    "kling-v1-6",
    "kling-v2-master",
    "kling-v2-1-master",
    "kling-v2-5-turbo",
    "kling-v2-6",
    "kling-v3",
];

pub(super) fn text(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &TEXT)?;
    if text_of(&request.body, "prompt").is_none_or(str::is_empty) {
        return Err(Box::new(invalid("empty-prompt", "prompt is empty")));
    }
    read(request, Task::Text)
}

pub(super) fn image(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &IMAGE)?;
    let body = &request.body;
    let frames = ["image", "image_tail"].map(|name| (name, text_of(body, name)));
    if frames.iter().all(|(_, frame)| frame.is_none()) {
        let message = "image and image_tail cannot both be empty";
        return Err(Box::new(invalid("missing-field", message)));
    }
    for (name, frame) in frames {
        frame.map_or(Ok(()), |frame| picture(frame, name))?;
    }
    read(request, Task::Image)
}

fn read(request: &Arc<Seen>, kind: Task) -> Judged<Media> {
    let body = &request.body;
    let model = text_of(body, "model_name").unwrap_or("kling-v1");
    if !MODELS.contains(&model) {
        return Err(Box::new(words::model_missing(model)));
    }
    rules(body, model)?;
    let external = text_of(body, "external_task_id").map(str::to_owned);
    let short = match text_of(body, "mode") {
        Some("pro") => 1080,
        _ => 720,
    };
    let ratio = text_of(body, "aspect_ratio").and_then(pixels::ratio);
    let size = pixels::with_short_side(ratio.unwrap_or(16.0 / 9.0), short);
    let seconds: u64 = text_of(body, "duration")
        .unwrap_or("5")
        .parse()
        .unwrap_or(5);
    let facts = json!({
        "kind": kind.name(), "width": size.0, "height": size.1, "seconds": seconds,
        "external": external,
        "marked": field(body, "watermark_info").is_some_and(|info| info["enabled"] == true),
    });
    let text = text_of(body, "prompt").unwrap_or_default().to_owned();
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = task::begin(desk, facts, external.as_deref())?;
        let state = desk.look(&id, |task, phase| task::record_older(desk, task, phase));
        Ok(Made::json(task::envelope(
            desk,
            state.unwrap_or(Value::Null),
        )))
    }))
}

/// Fields that only some models take.
fn rules(body: &Value, model: &str) -> Checked {
    callback(text_of(body, "callback_url"))?;
    let unsupported = |name: &str| {
        let message = format!("{name} is not supported by {model}");
        Err(Box::new(invalid("unsupported", message)))
    };
    if field(body, "cfg_scale").is_some() && !model.starts_with("kling-v1") {
        return unsupported("cfg_scale");
    }
    if field(body, "sound").is_some() && !["kling-v2-6", "kling-v3"].contains(&model) {
        return unsupported("sound");
    }
    Ok(())
}
