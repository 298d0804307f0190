//! Films: what a task is asked for.

use std::sync::Arc;

use serde_json::{Value, json};

use super::words::{self, invalid};
use super::{IMAGE, STORAGE, check, image};
use crate::desk::{Made, Media};
use crate::incoming::Seen;
use crate::pixels;
use crate::refusal::{Checked, Judged};
use crate::shape::{Kind, Shape, field, list_of, text_of};

const RATIOS: &[&str] = &["1:1", "16:9", "9:16", "4:3", "3:4", "3:2", "2:3"];

const REQUEST: Shape = Shape {
    fields: &[
        ("model", Kind::Str),
        ("prompt", Kind::Str),
        ("image", IMAGE),
        ("reference_images", Kind::Few(7, &IMAGE)),
        (
            "reference_audios",
            Kind::Few(
                3,
                &Kind::Shape(&Shape {
                    fields: &[("voice_id", Kind::Str)],
                    required: &["voice_id"],
                }),
            ),
        ),
        ("duration", Kind::Int(1, 15)),
        ("aspect_ratio", Kind::OneOf(RATIOS)),
        ("resolution", Kind::OneOf(&["480p", "720p", "1080p"])),
        ("user", Kind::Str),
        ("storage_options", STORAGE),
        ("generate_audio", Kind::Bool),
    ],
    required: &["model", "prompt"],
};

const MODELS: &[&str] = &[
    "grok-imagine-video",
    "grok-imagine-video-1.5",
    "grok-imagine-video-1.5-preview",
];

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &REQUEST)?;
    let body = &request.body;
    let model = text_of(body, "model").unwrap_or_default();
    if !MODELS.contains(&model) {
        return Err(Box::new(words::model_missing(model)));
    }
    pictures(body, model)?;
    let resolution = text_of(body, "resolution").unwrap_or("480p");
    if resolution == "1080p" && model == "grok-imagine-video" {
        let message = "1080p is not supported by this model";
        return Err(Box::new(invalid("resolution", message)));
    }
    let text = text_of(body, "prompt").unwrap_or_default().to_owned();
    if text.trim().is_empty() && field(body, "image").is_none() {
        return Err(Box::new(invalid("empty-prompt", "Prompt cannot be empty")));
    }
    let short = resolution.trim_end_matches('p').parse().unwrap_or(480);
    let ratio = text_of(body, "aspect_ratio").and_then(pixels::ratio);
    let size = pixels::with_short_side(ratio.unwrap_or(16.0 / 9.0), short);
    let seconds = field(body, "duration").and_then(Value::as_u64).unwrap_or(8);
    let facts = json!({
        "model": model, "width": size.0, "height": size.1, "seconds": seconds,
    });
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = desk.uuid();
        desk.begin(&id, facts);
        Ok(Made::json(json!({"request_id": id})))
    }))
}

fn pictures(body: &Value, model: &str) -> Checked {
    let references = list_of(body, "reference_images");
    let first = field(body, "image");
    if let Some(first) = first {
        image(first, "image")?;
    }
    for (at, reference) in references.iter().enumerate() {
        image(reference, &format!("reference_images[{at}]"))?;
    }
    let refuse = |rule, message: &str| Err(Box::new(invalid(rule, message)));
    if first.is_some() && !references.is_empty() {
        return refuse(
            "image-fields",
            "`image` and `reference_images` exclude each other",
        );
    }
    if model.ends_with("-preview") && first.is_none() {
        return refuse("needs-image", "This model needs an image");
    }
    if references.is_empty() {
        let sounds = list_of(body, "reference_audios");
        return match sounds.is_empty() {
            true => Ok(()),
            false => refuse("audio-alone", "`reference_audios` needs `reference_images`"),
        };
    }
    if text_of(body, "resolution") == Some("1080p") {
        return refuse("resolution", "1080p is not supported with reference images");
    }
    if field(body, "duration").and_then(Value::as_u64) > Some(10) {
        return refuse(
            "duration",
            "At most 10 seconds are supported with reference images",
        );
    }
    Ok(())
}
