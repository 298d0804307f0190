//! From a request body in any of its shapes to a speech job.

use serde_json::{Map, Value};
use tollgate_core::ApiError;

use super::family::Family;
use super::job::SpeechJob;
use crate::form::{self, Draft};
use crate::submission::Found;
use crate::{RequestShape, Submission};

/// Reads a request for the model `name` of `family`, whose rules are those of `like`.
pub(crate) fn read_for(
    name: &str,
    like: &'static str,
    family: &'static Family,
    shape: RequestShape,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission<SpeechJob>, ApiError> {
    let mut draft = Draft::new(name, like, family.form(shape));
    form::read_fields(&mut draft, body, strict)?;
    form::apply_rules(&mut draft)?;
    let found = Found::take(&mut draft);
    Ok(Submission::new(
        found,
        job(draft, family),
        String::new(),
        None,
    ))
}

/// The job. No two shapes' names for one value are ever read together, so whichever is there is it.
fn job(mut draft: Draft<'_>, family: &Family) -> SpeechJob {
    let mut values = draft.take_object("metadata");
    draft.remove("task_type");
    let model = draft.model.to_owned();
    values.extend(draft.rest());
    let mut take = |names: [&str; 2]| {
        let found = names.iter().find_map(|name| values.remove(*name));
        found.unwrap_or_default()
    };
    let text = |value: Value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    SpeechJob {
        model,
        family: family.name.to_owned(),
        text: text(take(["input", "text"])).unwrap_or_default(),
        voice: text(take(["voice", "voice_id"])),
        speed: take(["speed", "voice_speed"]).as_f64(),
        language: text(take(["language", "voice_language"])),
        instructions: text(take(["instructions", "instructions"])),
        external_task_id: text(take(["external_task_id", "external_task_id"])),
        extra: values,
    }
}
