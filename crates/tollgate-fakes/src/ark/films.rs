//! Films: what a task is asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::models::{Seedance, Seedream};
use super::pictures;
use super::words::{self, invalid, of_code};
use crate::desk::{Made, Media};
use crate::given;
use crate::incoming::Seen;
use crate::media;
use crate::pixels;
use crate::refusal::{Checked, Fault, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

const LINK: Kind = Kind::Shape(&Shape {
    fields: &[("url", Kind::Str)],
    required: &["url"],
});

const ROLES: &[&str] = &[
    "first_frame",
    "last_frame",
    "reference_image",
    "reference_video",
    "reference_audio",
];

const ITEM: Shape = Shape {
    fields: &[
        (
            "type",
            Kind::OneOf(&["text", "image_url", "video_url", "audio_url", "draft_task"]),
        ),
        ("text", Kind::Str),
        ("image_url", LINK),
        ("video_url", LINK),
        ("audio_url", LINK),
        (
            "draft_task",
            Kind::Shape(&Shape {
                fields: &[("id", Kind::Str)],
                required: &["id"],
            }),
        ),
        ("role", Kind::OneOf(ROLES)),
    ],
    required: &["type"],
};

pub(super) const RATIOS: &[&str] = &["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "adaptive"];

const REQUEST: Shape = Shape {
    fields: &[
        ("model", Kind::Str),
        ("content", Kind::List(&Kind::Shape(&ITEM))),
        ("callback_url", Kind::Str),
        ("return_last_frame", Kind::Bool),
        ("service_tier", Kind::OneOf(&["default", "flex"])),
        ("execution_expires_after", Kind::Int(3600, 259_200)),
        ("generate_audio", Kind::Bool),
        ("draft", Kind::Bool),
        ("camera_fixed", Kind::Bool),
        ("watermark", Kind::Bool),
        ("seed", Kind::Int(-1, 4_294_967_295)),
        ("resolution", Kind::OneOf(&["480p", "720p", "1080p"])),
        ("ratio", Kind::OneOf(RATIOS)),
        ("duration", Kind::Int(-1, 15)),
        ("frames", Kind::Int(29, 289)),
        ("priority", Kind::Int(0, 9)),
        ("safety_identifier", Kind::Str),
    ],
    required: &["model", "content"],
};

/// What the content holds.
#[derive(Debug, Default)]
struct Content {
    text: String,
    first: usize,
    last: usize,
    references: usize,
    films: usize,
    sounds: usize,
    /// The size of the first frame, if that is known.
    frame: Option<(u32, u32)>,
}

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    super::check(request, &REQUEST)?;
    let body = &request.body;
    let name = text_of(body, "model").unwrap_or_default();
    let Some(model) = Seedance::named(name) else {
        return Err(Box::new(match Seedream::named(name) {
            Some(_) => of_code(
                404,
                "UnsupportedModel",
                "model",
                "The model makes no films.",
            ),
            None => words::fault(Fault::ModelMissing, request),
        }));
    };
    let content = content(body)?;
    counts(&content, model)?;
    options(body, &content, model)?;
    let facts = facts(body, &content, name);
    let text = content.text;
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = format!("cgt-{}-{}", &desk.hex()[..14], &desk.hex()[..5]);
        desk.begin(&id, facts);
        Ok(Made::json(json!({"id": id})))
    }))
}

fn content(body: &Value) -> Judged<Content> {
    let mut content = Content::default();
    for (at, item) in list_of(body, "content").iter().enumerate() {
        let kind = text_of(item, "type").unwrap_or_default();
        let param = format!("content[{at}].{kind}");
        if field(item, kind).is_none() {
            let message = format!("The request failed because it is missing `{param}` parameter.");
            return Err(Box::new(
                of_code(400, "MissingParameter", "missing-field", message).param(param),
            ));
        }
        let role = text_of(item, "role");
        let url = field(item, kind).and_then(|link| text_of(link, "url"));
        let url = url.unwrap_or_default();
        let fits = match (kind, role) {
            ("text", None) => {
                content
                    .text
                    .push_str(text_of(item, "text").unwrap_or_default());
                true
            }
            ("image_url", _) => {
                picture(&mut content, url, role, &format!("{param}.url"))?;
                !matches!(role, Some("reference_video" | "reference_audio"))
            }
            ("video_url", Some("reference_video")) => {
                content.films += 1;
                media::is_web(url)
            }
            ("audio_url", Some("reference_audio")) => {
                content.sounds += 1;
                media::is_web(url) || url.starts_with("data:audio/")
            }
            ("draft_task", None) => true,
            _ => false,
        };
        if !fits {
            let role = role.unwrap_or("none");
            let what = format!("the role {role} or the address do not fit");
            return Err(Box::new(invalid("role", &param, what)));
        }
    }
    Ok(content)
}

fn picture(content: &mut Content, url: &str, role: Option<&str>, param: &str) -> Checked {
    if !url.starts_with("asset://") {
        pictures::picture(url, param)?;
    }
    match role {
        Some("last_frame") => content.last += 1,
        Some("reference_image") => content.references += 1,
        _ => {
            content.first += 1;
            if let Ok(given::Given::Inline(inline)) = given::link_or_data(url) {
                content.frame = Some(inline.size);
            }
        }
    }
    Ok(())
}

/// How many of what a model takes.
fn counts(content: &Content, model: Seedance) -> Checked {
    let refuse = |rule, what: &str| -> Checked {
        let code = "InvalidParameter.TaskTypeConstraint";
        Err(Box::new(
            of_code(400, code, rule, format!("Invalid content: {what}.")).param("content"),
        ))
    };
    let frames = content.first + content.last;
    if content.first > 1 || content.last > 1 {
        return refuse("frames", "more than one first or last frame");
    }
    if content.last > content.first {
        return refuse("frames", "a last frame needs a first frame");
    }
    if frames > 0 && content.references > 0 {
        return refuse(
            "frames-and-references",
            "frames and references exclude each other",
        );
    }
    if content.references > model.references() {
        return refuse("references", "more reference images than the model takes");
    }
    if content.last > 0 && !model.takes_last_frame() {
        return refuse("last-frame", "the model takes no last frame");
    }
    if (content.films > 0 || content.sounds > 0) && !model.is_second() {
        return refuse("references", "the model takes no reference video or audio");
    }
    if content.films > 3 || content.sounds > 3 {
        return refuse(
            "references",
            "at most 3 reference videos and 3 reference audios",
        );
    }
    if content.sounds > 0 && content.references + content.films == 0 {
        return refuse(
            "audio-alone",
            "reference audio needs a reference image or video",
        );
    }
    let pictures = frames + content.references;
    match model {
        Seedance::LiteText if pictures > 0 => refuse("text-only", "the model takes text only"),
        Seedance::LitePicture if pictures == 0 => refuse("needs-image", "the model needs an image"),
        _ if pictures + content.films == 0 && content.text.trim().is_empty() => {
            refuse("empty", "there is no text")
        }
        _ => Ok(()),
    }
}

/// Fields that only some models take, or only with some content.
fn options(body: &Value, content: &Content, model: Seedance) -> Checked {
    let unsupported = |name: &str| -> Checked {
        let code = "InvalidParameter.UnsupportedParameter";
        let message = format!("The parameter `{name}` is not supported by the current model.");
        Err(Box::new(
            of_code(400, code, "unsupported", message).param(name),
        ))
    };
    let given = |name: &str| field(body, name).is_some();
    if given("generate_audio") && model.is_first() {
        return unsupported("generate_audio");
    }
    if given("draft") && model != Seedance::Pro15 {
        return unsupported("draft");
    }
    if given("camera_fixed") && (model.is_second() || content.references > 0) {
        return unsupported("camera_fixed");
    }
    if given("frames") && !model.is_first() {
        return unsupported("frames");
    }
    if text_of(body, "resolution") == Some("1080p") {
        let lite = model == Seedance::LitePicture && content.references > 0;
        if lite || model == Seedance::V2Fast {
            return Err(Box::new(invalid(
                "resolution",
                "resolution",
                "1080p is not supported",
            )));
        }
    }
    let ratio = text_of(body, "ratio").unwrap_or("adaptive");
    if ratio != "adaptive" && content.first > 0 && !model.is_first() {
        let what = "the first frame decides the ratio";
        return Err(Box::new(invalid("ratio", "ratio", what)));
    }
    length(body, model)
}

fn length(body: &Value, model: Seedance) -> Checked {
    let number = |name| field(body, name).and_then(Value::as_i64);
    if let Some(frames) = number("frames") {
        if number("duration").is_some() {
            let what = "either `duration` or `frames`";
            return Err(Box::new(invalid("length", "frames", what)));
        }
        if (frames - 25) % 4 != 0 {
            return Err(Box::new(invalid("length", "frames", "must be 25 + 4n")));
        }
    }
    let Some(seconds) = number("duration") else {
        return Ok(());
    };
    let chooses = seconds == -1 && model.is_second();
    if !chooses && !model.seconds().contains(&seconds) {
        let (least, most) = (model.seconds().start().to_owned(), *model.seconds().end());
        let what = format!("must be from {least} to {most}, got {seconds}");
        return Err(Box::new(invalid("duration", "duration", what)));
    }
    Ok(())
}

/// What is kept of a task: the fields of its state that do not change.
fn facts(body: &Value, content: &Content, model: &str) -> Value {
    let resolution = text_of(body, "resolution").unwrap_or("720p");
    let short = resolution.trim_end_matches('p').parse().unwrap_or(720);
    let of_frame = content.frame.map(|(w, h)| f64::from(w) / f64::from(h));
    let wanted = text_of(body, "ratio").and_then(pixels::ratio);
    let ratio = wanted.or(of_frame).unwrap_or(16.0 / 9.0);
    let size = pixels::with_short_side(ratio, short);
    let number = |name: &str| field(body, name).and_then(Value::as_u64);
    let frames = number("frames");
    let seconds = frames.map_or(number("duration").unwrap_or(5), |frames| {
        frames.div_ceil(24)
    });
    let ratio = text_of(body, "ratio").filter(|ratio| *ratio != "adaptive");
    let mut facts = json!({
        "model": model, "width": size.0, "height": size.1, "seconds": seconds,
        "resolution": resolution, "ratio": ratio.unwrap_or("16:9"),
        "service_tier": text_of(body, "service_tier").unwrap_or("default"),
        "execution_expires_after": number("execution_expires_after").unwrap_or(172_800),
        "seed": number("seed").unwrap_or(58_944),
    });
    for name in ["return_last_frame", "generate_audio", "draft", "frames"] {
        if let Some(value) = field(body, name) {
            facts[name] = value.clone();
        }
    }
    facts
}
