//! Speech: answered at once, unless the request is told to take several polls.

use std::sync::Arc;

use serde_json::{Value, json};

use super::check;
use super::task::{self, Kind as Task};
use super::words::invalid;
use crate::desk::{Made, Media};
use crate::incoming::Seen;
use crate::refusal::Judged;
use crate::shape::{Kind, Shape, field, text_of};
use crate::tasks::Phase;

const REQUEST: Shape = Shape {
    fields: &[
        ("text", Kind::Text(1000)),
        ("voice_id", Kind::Str),
        ("voice_language", Kind::OneOf(&["zh", "en"])),
        ("voice_speed", Kind::Num(0.8, 2.0)),
    ],
    required: &["text", "voice_id", "voice_language"],
};

pub(super) fn read(request: &Arc<Seen>) -> Judged<Media> {
    check(request, &REQUEST)?;
    let body = &request.body;
    let text = text_of(body, "text").unwrap_or_default().to_owned();
    if text.trim().is_empty() {
        return Err(Box::new(invalid("empty-text", "text is empty")));
    }
    let voice = text_of(body, "voice_id").unwrap_or_default();
    let language = text_of(body, "voice_language").unwrap_or_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_known = !voice.is_empty() && voice.chars().all(legal) && !voice.starts_with("unknown");
    if !is_known || (voice.starts_with("oversea_") && language != "en") {
        let message = format!("voice_id {voice} does not exist for {language}");
        return Err(Box::new(invalid("voice", message)));
    }
    let speed = field(body, "voice_speed").and_then(Value::as_f64);
    let speed = (speed.unwrap_or(1.0) * 10.0).round() / 10.0;
    let facts = json!({"kind": Task::Speech.name(), "text": text, "speed": speed});
    let request = Arc::clone(request);
    Ok(Media::submit(text, move |desk| {
        desk.moderate(&request)?;
        let id = desk.digits();
        desk.begin(&id, facts);
        let at_once = desk.course.polls <= 1;
        let state = desk.look(&id, |task, phase| {
            let phase = match at_once {
                true => Phase::Ended(desk.course.verdict),
                false => phase,
            };
            task::record_older(desk, task, phase)
        });
        let made = Made::json(task::envelope(desk, state.unwrap_or(Value::Null)));
        Ok(match at_once {
            true => made.after(desk.course.work),
            false => made,
        })
    }))
}
