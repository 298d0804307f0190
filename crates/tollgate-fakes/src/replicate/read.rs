//! What a prediction is asked for.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::prediction;
use super::words::{self, invalid, problem};
use crate::desk::{Made, Media};
use crate::hosted::{self, Family};
use crate::incoming::Seen;
use crate::media;
use crate::place::{Place, Style};
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};
use crate::tasks::Phase;

const EVENTS: &[&str] = &["start", "output", "logs", "completed"];

/// What both requests take.
macro_rules! with_common {
    ($($field:expr),* $(,)?) => {
        &[
            ("input", Kind::Object),
            ("webhook", Kind::Str),
            ("webhook_events_filter", Kind::List(&Kind::OneOf(EVENTS))),
            ("stream", Kind::Bool),
            $($field),*
        ]
    };
}

const OFFICIAL: Shape = Shape {
    fields: with_common![],
    required: &["input"],
};

const VERSIONED: Shape = Shape {
    fields: with_common![("version", Kind::Str)],
    required: &["version", "input"],
};

const PICTURE: Shape = Shape {
    fields: &[
        ("prompt", Kind::Str),
        ("negative_prompt", Kind::Str),
        ("num_outputs", Kind::Int(1, 4)),
        ("max_images", Kind::Int(1, 15)),
        (
            "sequential_image_generation",
            Kind::OneOf(&["disabled", "auto"]),
        ),
        ("aspect_ratio", Kind::Str),
        ("size", Kind::Str),
        ("resolution", Kind::Str),
        ("width", Kind::Int(64, 4096)),
        ("height", Kind::Int(64, 4096)),
        ("image", Kind::Str),
        ("image_input", Kind::Few(14, &Kind::Str)),
        ("input_images", Kind::Few(14, &Kind::Str)),
        ("reference_images", Kind::Few(14, &Kind::Str)),
        ("output_format", Kind::OneOf(&["png", "jpg", "webp"])),
        ("output_quality", Kind::Int(0, 100)),
        ("seed", Kind::Int(0, 4_294_967_295)),
    ],
    required: &["prompt"],
};

const FILM: Shape = Shape {
    fields: &[
        ("prompt", Kind::Str),
        ("negative_prompt", Kind::Str),
        ("image", Kind::Str),
        ("last_frame", Kind::Str),
        ("last_frame_image", Kind::Str),
        ("reference_images", Kind::Few(9, &Kind::Str)),
        ("duration", Kind::Int(1, 15)),
        ("aspect_ratio", Kind::Str),
        ("resolution", Kind::OneOf(&["480p", "720p", "1080p", "4k"])),
        ("fps", Kind::Int(24, 24)),
        ("camera_fixed", Kind::Bool),
        ("generate_audio", Kind::Bool),
        ("seed", Kind::Int(0, 4_294_967_295)),
    ],
    required: &["prompt"],
};

const SOUND: Shape = Shape {
    fields: &[
        ("text", Kind::Text(10_000)),
        ("voice_id", Kind::Str),
        ("speed", Kind::Num(0.5, 2.0)),
        ("language_boost", Kind::Str),
    ],
    required: &["text"],
};

/// A prediction by the name of a model.
pub(super) fn official(request: &Arc<Seen>, owner: &str, name: &str) -> Judged<Media> {
    read(request, &OFFICIAL, &format!("{owner}/{name}"))
}

/// A prediction by a version, or by a name with one.
pub(super) fn versioned(request: &Arc<Seen>) -> Judged<Media> {
    let version = text_of(&request.body, "version").unwrap_or_default();
    let is_bare = version.len() == 64 && version.bytes().all(|byte| byte.is_ascii_hexdigit());
    let name = version.split(':').next().unwrap_or_default();
    // A version alone does not say what its model makes: a picture.
    let name = if is_bare { "someone/pictures" } else { name };
    read(request, &VERSIONED, name)
}

fn read(request: &Arc<Seen>, shape: &Shape, model: &str) -> Judged<Media> {
    if !request.says_json() || !request.body.is_object() {
        let rule = if request.says_json() {
            "json"
        } else {
            "content-type"
        };
        let detail = "The request body is not valid JSON.";
        return Err(Box::new(problem(400, "Bad request", rule, detail)));
    }
    check(shape, &request.body, Place::root(Style::Brackets))?;
    let family = model.split_once('/');
    let family = family.and_then(|(owner, name)| Family::named(owner, name));
    let family = family.ok_or_else(|| Box::new(words::missing("model")))?;
    let input = &request.body["input"];
    let inputs = match family {
        Family::Picture => &PICTURE,
        Family::Film => &FILM,
        Family::Sound => &SOUND,
    };
    check(inputs, input, Place::root(Style::Brackets).field("input"))?;
    if let Some((name, (rule, what))) = hosted::bad_picture(input) {
        return Err(Box::new(invalid(rule, &format!("input.{name}"), &what)));
    }
    webhook(&request.body)?;
    let wait = wait(request)?;
    let mut facts = hosted::facts(family, input);
    facts["model"] = model.into();
    facts["version"] = field(&request.body, "version")
        .cloned()
        .unwrap_or("hidden".into());
    facts["input"] = input.clone();
    let text = text_of(input, "prompt").or(text_of(input, "text"));
    Ok(Media::submit(text.unwrap_or_default(), move |desk| {
        let id = format!("{}{}", desk.hex(), &desk.hex()[..10]);
        desk.begin(&id, facts);
        let work = desk.course.work;
        let is_done = wait.is_some_and(|wait| work <= wait) && desk.course.polls <= 1;
        let state = desk.look(&id, |task, phase| {
            let phase = match is_done {
                true => Phase::Ended(desk.course.verdict),
                false => phase,
            };
            prediction::record(desk, task, phase)
        });
        let status = if wait.is_some() && !is_done { 202 } else { 201 };
        let hold = wait.map_or(Duration::ZERO, |wait| wait.min(work));
        Ok(Made::json(state.unwrap_or(Value::Null))
            .status(status)
            .after(hold))
    }))
}

fn check(shape: &Shape, value: &Value, place: Place) -> Checked {
    let fit = shape.check(value, &place);
    fit.map_err(|flaw| Box::new(invalid(flaw.rule(), &flaw.field(), &flaw.says())))
}

fn webhook(body: &Value) -> Checked {
    let refuse = |field: &str, what: &str| Err(Box::new(invalid("webhook", field, what)));
    match text_of(body, "webhook") {
        Some(url) if !media::is_web(url) => refuse("webhook", "must be a URL"),
        None if !list_of(body, "webhook_events_filter").is_empty() => {
            refuse("webhook_events_filter", "needs a webhook")
        }
        _ => Ok(()),
    }
}

/// How long the answer may be held.
fn wait(request: &Seen) -> Judged<Option<Duration>> {
    let Some(prefer) = request.header("prefer") else {
        return Ok(None);
    };
    let seconds = match prefer.split_once('=') {
        None if prefer == "wait" => Some(60),
        Some(("wait", seconds)) => seconds.parse().ok(),
        _ => None,
    };
    let seconds = seconds.filter(|seconds| (1..=60).contains(seconds));
    let refuse = || {
        let detail = "The Prefer header must be `wait` or `wait=n`, n from 1 to 60.";
        Box::new(problem(400, "Bad request", "prefer", detail))
    };
    let seconds = seconds.ok_or_else(refuse)?;
    Ok(Some(Duration::from_secs(seconds)))
}
