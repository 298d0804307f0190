//! Speech, answered at once.

use std::sync::Arc;

use serde_json::Value;

use super::check;
use super::words::plain;
use crate::desk::{Made, Media};
use crate::incoming::Seen;
use crate::made::{Recipe, Sound, SoundForm};
use crate::refusal::{Judged, Refusal};
use crate::shape::{Kind, Shape, field, text_of};

const FORMAT: Shape = Shape {
    fields: &[
        (
            "codec",
            Kind::OneOf(&["mp3", "wav", "pcm", "mulaw", "alaw"]),
        ),
        ("sample_rate", Kind::Int(8000, 48_000)),
        ("bit_rate", Kind::Int(32_000, 192_000)),
    ],
    required: &[],
};

const REQUEST: Shape = Shape {
    fields: &[
        ("text", Kind::Str),
        ("voice_id", Kind::Str),
        ("language", Kind::Str),
        ("speed", Kind::Num(0.7, 1.5)),
        ("output_format", Kind::Shape(&FORMAT)),
        ("text_normalization", Kind::Bool),
        ("with_timestamps", Kind::Bool),
    ],
    required: &["text"],
};

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &REQUEST).map_err(|no| in_plain_words(*no))?;
    let body = &request.body;
    let text = text_of(body, "text").unwrap_or_default().to_owned();
    if text.trim().is_empty() {
        return Err(Box::new(plain(400, "empty-text", "text must not be empty")));
    }
    let is_name = |voice: &str| {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !voice.is_empty() && voice.chars().all(legal)
    };
    if text_of(body, "voice_id").is_some_and(|voice| !is_name(voice)) {
        return Err(Box::new(plain(404, "voice", "Voice not found")));
    }
    let codec = field(body, "output_format").and_then(|format| text_of(format, "codec"));
    let timed = body.get("with_timestamps") == Some(&Value::Bool(true));
    let form = SoundForm::named(codec.unwrap_or("mp3")).filter(|_| !timed);
    let Some(form) = form else {
        let message = "The fake has no timestamps, no mulaw and no alaw";
        return Err(Box::new(plain(501, "not-made", message)));
    };
    let speed = field(body, "speed").and_then(Value::as_f64).unwrap_or(1.0);
    let sound = Sound::of(&text, form, speed);
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.succeed(&request).map_err(|no| in_plain_words(*no))?;
        let blob = desk.blob(Recipe::Sound(sound));
        Ok(Made::file(form.media_type(), blob).after(desk.course.work))
    }))
}

/// Errors of speech are a text alone.
fn in_plain_words(refusal: Refusal) -> Box<Refusal> {
    let plain = plain(refusal.status, refusal.rule, refusal.message.clone());
    Box::new(Refusal {
        kind: plain.kind,
        ..refusal
    })
}
