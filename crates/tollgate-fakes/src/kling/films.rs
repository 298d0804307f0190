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

/// A model, as its page and the provider's capability map have it.
struct Model {
    /// Its name in the path.
    name: &'static str,
    /// Characters of a prompt at most.
    prompt: usize,
    /// The shortest and the longest film, and the steps between them, in seconds.
    seconds: (RangeInclusive<u64>, u64),
    resolutions: &'static [&'static str],
    /// Resolutions with sound, where that can be chosen.
    sounds: Option<&'static [&'static str]>,
    /// Resolutions with a last frame.
    last_frames: &'static [&'static str],
    /// Whether several shots are a setting.
    has_shots: bool,
}

const ALL: &[&str] = &["720p", "1080p", "4k"];
const TWO: &[&str] = &["720p", "1080p"];
const BEST: &[&str] = &["1080p"];

static MODELS: &[Model] = &[
    Model {
        name: "kling-2.5-turbo",
        prompt: 2500,
        seconds: (5..=10, 5),
        resolutions: TWO,
        sounds: None,
        last_frames: BEST,
        has_shots: false,
    },
    Model {
        name: "kling-2.6",
        prompt: 2500,
        seconds: (5..=10, 5),
        resolutions: TWO,
        sounds: Some(BEST),
        last_frames: BEST,
        has_shots: false,
    },
    Model {
        name: "kling-3.0",
        prompt: 3072,
        seconds: (3..=15, 1),
        resolutions: ALL,
        sounds: Some(ALL),
        last_frames: ALL,
        has_shots: true,
    },
    Model {
        name: "kling-3.0-turbo",
        prompt: 3072,
        seconds: (3..=15, 1),
        resolutions: TWO,
        sounds: None,
        last_frames: &[],
        has_shots: false,
    },
];

impl Model {
    fn named(name: &str) -> Judged<&'static Self> {
        let model = MODELS.iter().find(|model| model.name == name);
        model.ok_or_else(|| Box::new(words::model_missing(name)))
    }
}

pub(super) fn text(request: &Arc<Seen>, model: &str) -> Judged<Media> {
    let model = Model::named(model)?;
    check(request, &TEXT)?;
    let prompt = text_of(&request.body, "prompt")
        .unwrap_or_default()
        .to_owned();
    read(request, model, prompt, false)
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
    read(request, model, prompt, last == 1)
}

fn read(request: &Arc<Seen>, model: &Model, prompt: String, has_last_frame: bool) -> Judged<Media> {
    let length = prompt.chars().count();
    if length > model.prompt {
        let message = format!("prompt has {length} characters, at most {}", model.prompt);
        return Err(Box::new(invalid("length", message)));
    }
    let nothing = json!({});
    let settings = field(&request.body, "settings").unwrap_or(&nothing);
    let options = field(&request.body, "options").unwrap_or(&nothing);
    let seconds = field(settings, "duration")
        .and_then(Value::as_u64)
        .unwrap_or(5);
    rules(settings, model, seconds, has_last_frame)?;
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

fn rules(settings: &Value, model: &Model, seconds: u64, has_last_frame: bool) -> Checked {
    let refuse = |rule, what: &str| {
        let message = format!("{what} is not supported by {}", model.name);
        Err(Box::new(invalid(rule, message)))
    };
    let (range, step) = &model.seconds;
    if !range.contains(&seconds) || !seconds.is_multiple_of(*step) {
        return refuse("duration", &format!("settings.duration {seconds}"));
    }
    let resolution = text_of(settings, "resolution").unwrap_or("720p");
    if !model.resolutions.contains(&resolution) {
        return refuse("resolution", &format!("settings.resolution {resolution}"));
    }
    let sound = text_of(settings, "audio");
    let sounds = match (sound, model.sounds) {
        (Some(_), None) => return refuse("audio", "settings.audio"),
        (Some("native"), Some(at)) if !at.contains(&resolution) => {
            return refuse("audio", &format!("settings.audio native at {resolution}"));
        }
        (sound, _) => sound == Some("native"),
    };
    // The capability map: what has sound at its best resolution only has it without a last frame.
    let is_loud = sounds && model.sounds != Some(ALL);
    if has_last_frame && (is_loud || !model.last_frames.contains(&resolution)) {
        return refuse("last-frame", &format!("last_frame at {resolution}"));
    }
    if field(settings, "multi_shot").is_some() && !model.has_shots {
        return refuse("multi-shot", "settings.multi_shot");
    }
    Ok(())
}
