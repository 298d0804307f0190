//! Films by the newer APIs, which have the model in their path.

use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::{Value, json};

use super::words::{self, invalid};
use super::{callback, check, picture, task};
use crate::desk::{Made, Media};
use crate::incoming::Seen;
use crate::pixels;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

const RESOLUTION: (&str, Kind) = ("resolution", Kind::OneOf(&["720p", "1080p", "4k"]));
const DURATION: (&str, Kind) = ("duration", Kind::Int(3, 15));
const AUDIO: (&str, Kind) = ("audio", Kind::OneOf(&["off", "native", "original"]));
const SHOTS: (&str, Kind) = ("multi_shot", Kind::Bool);

const OPTIONS: Shape = Shape {
    fields: &[
        ("callback_url", Kind::Str),
        ("external_task_id", Kind::Str),
        (
            "watermark_info",
            Kind::Shape(&Shape {
                fields: &[("enabled", Kind::Bool)],
                required: &["enabled"],
            }),
        ),
    ],
    required: &[],
};

const TEXT: Shape = Shape {
    fields: &[
        ("prompt", Kind::Str),
        (
            "settings",
            Kind::Shape(&Shape {
                fields: &[
                    RESOLUTION,
                    ("aspect_ratio", Kind::OneOf(&["16:9", "9:16", "1:1"])),
                    DURATION,
                    AUDIO,
                    SHOTS,
                ],
                required: &[],
            }),
        ),
        ("options", Kind::Shape(&OPTIONS)),
    ],
    required: &["prompt"],
};

const IMAGE: Shape = Shape {
    fields: &[
        (
            "contents",
            Kind::List(&Kind::Shape(&Shape {
                fields: &[
                    (
                        "type",
                        Kind::OneOf(&["prompt", "first_frame", "last_frame"]),
                    ),
                    ("text", Kind::Str),
                    ("url", Kind::Str),
                ],
                required: &["type"],
            })),
        ),
        (
            "settings",
            Kind::Shape(&Shape {
                fields: &[RESOLUTION, DURATION, AUDIO, SHOTS],
                required: &[],
            }),
        ),
        ("options", Kind::Shape(&OPTIONS)),
    ],
    required: &["contents"],
};

/// Models by the name in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    V26,
    V3,
}

impl Model {
    fn named(name: &str) -> Judged<Self> {
        match name {
            "kling-2.6" => Ok(Self::V26),
            "kling-3.0" | "kling-3.0-turbo" => Ok(Self::V3),
            _ => Err(Box::new(words::model_missing(name))),
        }
    }

    /// Characters of a prompt at most.
    fn prompt(self) -> usize {
        match self {
            Self::V26 => 2500,
            Self::V3 => 3072,
        }
    }

    fn seconds(self) -> (RangeInclusive<u64>, u64) {
        match self {
            Self::V26 => (5..=10, 5),
            Self::V3 => (3..=15, 1),
        }
    }
}

pub(super) fn text(request: &Arc<Seen>, model: &str) -> Judged<Media> {
    let model = Model::named(model)?;
    check(request, &TEXT)?;
    let prompt = text_of(&request.body, "prompt")
        .unwrap_or_default()
        .to_owned();
    read(request, model, prompt)
}

pub(super) fn image(request: &Arc<Seen>, model: &str) -> Judged<Media> {
    let model = Model::named(model)?;
    check(request, &IMAGE)?;
    let contents = list_of(&request.body, "contents");
    let mut prompt = String::new();
    let (mut first, mut last) = (0, 0);
    for (at, content) in contents.iter().enumerate() {
        let kind = text_of(content, "type").unwrap_or_default();
        match (kind, text_of(content, "text"), text_of(content, "url")) {
            ("prompt", Some(text), None) => prompt.push_str(text),
            ("first_frame" | "last_frame", None, Some(url)) => {
                picture(url, &format!("contents[{at}].url"))?;
                *(if kind == "first_frame" {
                    &mut first
                } else {
                    &mut last
                }) += 1;
            }
            _ => {
                let message = format!("contents[{at}]: `{kind}` has other fields");
                return Err(Box::new(invalid("content", message)));
            }
        }
    }
    if first != 1 || last > 1 {
        let message = "contents must have one first_frame and at most one last_frame";
        return Err(Box::new(invalid("frames", message)));
    }
    read(request, model, prompt)
}

fn read(request: &Arc<Seen>, model: Model, prompt: String) -> Judged<Media> {
    let length = prompt.chars().count();
    if length > model.prompt() {
        let message = format!("prompt has {length} characters, at most {}", model.prompt());
        return Err(Box::new(invalid("length", message)));
    }
    let nothing = json!({});
    let settings = field(&request.body, "settings").unwrap_or(&nothing);
    let options = field(&request.body, "options").unwrap_or(&nothing);
    let seconds = field(settings, "duration")
        .and_then(Value::as_u64)
        .unwrap_or(5);
    rules(settings, model, seconds)?;
    callback(text_of(options, "callback_url"))?;
    let short = match text_of(settings, "resolution") {
        Some("1080p") => 1080,
        Some("4k") => 2160,
        _ => 720,
    };
    let ratio = text_of(settings, "aspect_ratio").and_then(pixels::ratio);
    let size = pixels::with_short_side(ratio.unwrap_or(16.0 / 9.0), short);
    let external = text_of(options, "external_task_id").map(str::to_owned);
    let marked = field(options, "watermark_info").is_some_and(|info| info["enabled"] == true);
    let facts = json!({
        "width": size.0, "height": size.1, "seconds": seconds, "external": external,
        "marked": marked,
    });
    let request = Arc::clone(request);
    Ok(Media::submit(prompt, move |desk| {
        desk.moderate(&request)?;
        let id = task::begin(desk, facts, external.as_deref())?;
        let state = desk.look(&id, |task, phase| task::record(desk, task, phase));
        Ok(Made::json(task::envelope(
            desk,
            state.unwrap_or(Value::Null),
        )))
    }))
}

fn rules(settings: &Value, model: Model, seconds: u64) -> Checked {
    let (range, step) = model.seconds();
    if !range.contains(&seconds) || !seconds.is_multiple_of(step) {
        let message = format!("settings.duration {seconds} is not supported by this model");
        return Err(Box::new(invalid("duration", message)));
    }
    let resolution = text_of(settings, "resolution").unwrap_or("720p");
    let audio = text_of(settings, "audio").unwrap_or("off");
    let refuse = |rule, message: &str| Err(Box::new(invalid(rule, message)));
    if model == Model::V3 {
        return Ok(());
    }
    if resolution == "4k" {
        return refuse(
            "resolution",
            "settings.resolution 4k is not supported by this model",
        );
    }
    if audio == "native" && resolution != "1080p" {
        return refuse(
            "audio",
            "settings.audio native needs settings.resolution 1080p",
        );
    }
    if field(settings, "multi_shot").is_some() {
        return refuse(
            "multi-shot",
            "settings.multi_shot is not supported by this model",
        );
    }
    Ok(())
}
