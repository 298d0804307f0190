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
            ("mode", Kind::OneOf(&["std", "pro", "4k"])),
            ("duration", Kind::OneOf(SECONDS)),
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

/// What lengths there are; most models make the third and the eighth only.
const SECONDS: &[&str] = &[
    "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
];

/// When a model takes a last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    Never,
    Always,
    /// In mode `pro`, without sound.
    Pro,
    /// In films of five seconds.
    Short,
}

/// A model, as the provider's capability map has it.
struct Model {
    name: &'static str,
    /// Whether it makes films from text.
    from_text: bool,
    /// None where there is only one.
    modes: &'static [&'static str],
    tail: Tail,
    /// The modes in which it makes sound.
    sound: &'static [&'static str],
    is_third: bool,
}

const TWO: &[&str] = &["std", "pro"];
const BASE: Model = Model {
    name: "",
    from_text: true,
    modes: TWO,
    tail: Tail::Pro,
    sound: &[],
    is_third: false,
};

const MODELS: &[Model] = &[
    Model {
        name: "kling-v1",
        tail: Tail::Short,
        ..BASE
    },
    Model {
        name: "kling-v1-5",
        from_text: false,
        ..BASE
    },
    Model {
        name: "kling-v1-6",
        ..BASE
    },
    Model {
        name: "kling-v2-master",
        modes: &[],
        tail: Tail::Never,
        ..BASE
    },
    Model {
        name: "kling-v2-1",
        from_text: false,
        ..BASE
    },
    Model {
        name: "kling-v2-1-master",
        modes: &[],
        tail: Tail::Never,
        ..BASE
    },
    Model {
        name: "kling-v2-5-turbo",
        ..BASE
    },
    Model {
        name: "kling-v2-6",
        sound: &["pro"],
        ..BASE
    },
    Model {
        name: "kling-v3",
        modes: &["std", "pro", "4k"],
        tail: Tail::Always,
        sound: &["std", "pro", "4k"],
        is_third: true,
        ..BASE
    },
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
    let name = text_of(body, "model_name").unwrap_or("kling-v1");
    let model = MODELS.iter().find(|model| model.name == name);
    let is_here = |model: &&Model| kind == Task::Image || model.from_text;
    let Some(model) = model.filter(is_here) else {
        return Err(Box::new(words::model_missing(name)));
    };
    callback(text_of(body, "callback_url"))?;
    rules(body, model)?;
    let external = text_of(body, "external_task_id").map(str::to_owned);
    let short = match (model.name, text_of(body, "mode")) {
        ("kling-v2-1-master", _) => 1080,
        ("kling-v1", _) => 720,
        (_, Some("pro")) => 1080,
        (_, Some("4k")) => 2160,
        _ => 720,
    };
    let ratio = text_of(body, "aspect_ratio").and_then(pixels::ratio);
    let size = pixels::with_short_side(ratio.unwrap_or(16.0 / 9.0), short);
    let facts = json!({
        "kind": kind.name(), "width": size.0, "height": size.1, "seconds": seconds(body),
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

fn seconds(body: &Value) -> u64 {
    let text = text_of(body, "duration").unwrap_or("5");
    text.parse().unwrap_or(5)
}

/// What only some models take.
fn rules(body: &Value, model: &Model) -> Checked {
    let refuse = |rule, message: String| Err(Box::new(invalid(rule, message)));
    let name = model.name;
    let seconds = seconds(body);
    if !model.is_third && ![5, 10].contains(&seconds) {
        return refuse(
            "duration",
            format!("duration {seconds} is not supported by {name}"),
        );
    }
    let mode = text_of(body, "mode").unwrap_or("std");
    let has_modes = !model.modes.is_empty();
    if (has_modes || field(body, "mode").is_some()) && !model.modes.contains(&mode) {
        return refuse("mode", format!("mode {mode} is not supported by {name}"));
    }
    if field(body, "cfg_scale").is_some() && !name.starts_with("kling-v1") {
        return refuse(
            "unsupported",
            format!("cfg_scale is not supported by {name}"),
        );
    }
    if field(body, "sound").is_some() && model.sound.is_empty() {
        return refuse("unsupported", format!("sound is not supported by {name}"));
    }
    let sounds = text_of(body, "sound") == Some("on");
    if sounds && !model.sound.contains(&mode) {
        return refuse(
            "sound",
            format!("sound is not supported by {name} in mode {mode}"),
        );
    }
    if field(body, "image_tail").is_none() {
        return Ok(());
    }
    let takes_it = match model.tail {
        Tail::Never => false,
        Tail::Always => true,
        Tail::Pro => mode == "pro" && !sounds,
        Tail::Short => seconds == 5,
    };
    match takes_it {
        true => Ok(()),
        false => refuse("tail", format!("image_tail is not supported by {name} so")),
    }
}
