//! Speech.

use std::sync::Arc;

use super::super::words::{self, invalid_value};
use super::fields;
use crate::desk::{Made, Media};
use crate::incoming::Seen;
use crate::made::{Recipe, Sound, SoundForm};
use crate::refusal::Judged;
use crate::shape::{Kind, Shape, field, text_of};

const FORMATS: &[&str] = &["mp3", "opus", "aac", "flac", "wav", "pcm"];

/// The voices; the last ones are not known to the older models.
const VOICES: &[&str] = &[
    "alloy", "ash", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer", "ballad", "verse",
    "marin", "cedar",
];

/// How many of the voices the older models know.
const OLD_VOICES: usize = 9;

const REQUEST: Shape = Shape {
    fields: &[
        ("model", Kind::Str),
        ("input", Kind::Text(4096)),
        (
            "voice",
            Kind::Either(&[
                Kind::Str,
                Kind::Shape(&Shape {
                    fields: &[("id", Kind::Str)],
                    required: &["id"],
                }),
            ]),
        ),
        ("instructions", Kind::Text(4096)),
        ("response_format", Kind::OneOf(FORMATS)),
        ("speed", Kind::Num(0.25, 4.0)),
        ("stream_format", Kind::OneOf(&["audio", "sse"])),
    ],
    required: &["model", "input", "voice"],
};

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    if request.says_form() {
        let given = request.header("content-type").unwrap_or_default();
        return Err(Box::new(words::content_type(given)));
    }
    let body = fields(request, &REQUEST)?;
    let model = text_of(&body, "model").unwrap_or_default();
    let is_old = ["tts-1", "tts-1-hd"].contains(&model);
    if !is_old && !["gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15"].contains(&model) {
        return Err(Box::new(words::model_missing(model)));
    }
    for name in ["instructions", "stream_format"] {
        if is_old && field(&body, name).is_some() {
            return Err(Box::new(words::unsupported(name, None)));
        }
    }
    let voices = if is_old {
        &VOICES[..OLD_VOICES]
    } else {
        VOICES
    };
    if let Some(voice) = text_of(&body, "voice")
        && !voices.contains(&voice)
    {
        let names = voices.join("', '");
        let message = format!("Invalid value: '{voice}'. Supported values are: '{names}'.");
        return Err(Box::new(invalid_value("voice", "voice", message)));
    }
    let text = text_of(&body, "input").unwrap_or_default().to_owned();
    if text.is_empty() {
        let message = "Invalid 'input': string too short. Expected a string with minimum length 1.";
        return Err(Box::new(invalid_value("empty-input", "input", message)));
    }
    let format = text_of(&body, "response_format").unwrap_or("mp3");
    let streams = text_of(&body, "stream_format") == Some("sse");
    let Some(form) = SoundForm::named(format).filter(|_| !streams) else {
        let message = format!("The fake has no streams of events and no '{format}'.");
        return Err(Box::new(words::not_made(&message)));
    };
    let speed = field(&body, "speed").and_then(serde_json::Value::as_f64);
    let sound = Sound::of(&text, form, speed.unwrap_or(1.0));
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.succeed(&request)?;
        let blob = desk.blob(Recipe::Sound(sound));
        Ok(Made::file(form.media_type(), blob).after(desk.course.work))
    }))
}
