//! Converts a speech request in any layout into a [`SpeechJob`].

use serde_json::{Map, Value};
use tollgate_core::ApiError;

use super::family::Family;
use super::job::SpeechJob;
use crate::endpoint::RequestLayout;
use crate::fields::draft::Draft;
use crate::fields::parse::{apply_rules, parse_fields};
use crate::submission::{CommonParts, Submission};

/// Validates `body`, a request in that layout for the model `name` of `family`, which follows the rules of
/// `base_model`. With `strict`, fields that would be ignored are an error.
///
/// # Errors
/// 400 that names the field, the value received and the values allowed.
pub(crate) fn parse_request(
    name: &str,
    base_model: &'static str,
    family: &'static Family,
    layout: RequestLayout,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission<SpeechJob>, ApiError> {
    let spec = family.request_spec(layout);
    let mut draft = Draft::new(name, base_model, spec.input_limits);
    parse_fields(&spec, &mut draft, body, strict)?;
    apply_rules(spec.rules, &mut draft)?;
    let parts = CommonParts::take(&mut draft);
    let job = into_job(draft, family);
    Ok(Submission::new(parts, job, String::new(), None))
}

/// The job. Each layout has only one name for a value, so the first name that is present is used.
fn into_job(mut draft: Draft<'_>, family: &Family) -> SpeechJob {
    let mut values = draft.take_object("metadata");
    draft.remove("task_type");
    let model = draft.model.to_owned();
    values.extend(draft.into_remaining());
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
        speed: take(["speed", "voice_speed"]).as_f64().map(round_to_micro),
        language: text(take(["language", "voice_language"])),
        instructions: text(take(["instructions", "instructions"])),
        external_task_id: text(take(["external_task_id", "external_task_id"])),
        extra: values,
    }
}

/// Rounds `speed` to six decimals, so that it is unchanged when the stored JSON is read back. The fast float parser of serde_json may change numbers
/// with more digits.
fn round_to_micro(speed: f64) -> f64 {
    (speed * 1e6).round() / 1e6
}
