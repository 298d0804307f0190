//! JSON helpers: taking members out of objects, decoding strings, errors that name the expected
//! type.

use std::borrow::Cow;

use memchr::memchr;
use serde_json::{Map, Value};

use crate::error::InvalidRequest;

/// Takes a member out of an object; `null` counts as absent.
pub(super) fn take_member(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    members.shift_remove(name).filter(|value| !value.is_null())
}

pub(super) fn required_string(
    part: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<String, InvalidRequest> {
    match take_member(part, name).unwrap_or(Value::Null) {
        Value::String(text) => Ok(text),
        odd => Err(invalid_value(&format!("{path}.{name}"), "a string", &odd)),
    }
}

pub(super) fn optional_string(
    part: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<String>, InvalidRequest> {
    match take_member(part, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(odd) => Err(invalid_value(&format!("{path}.{name}"), "a string", &odd)),
    }
}

/// The error "`field` must be `what`, not …"; a missing value gives "is required".
pub(super) fn invalid_value(field: &str, what: &str, value: &Value) -> InvalidRequest {
    let shown = match value {
        Value::Null => return InvalidRequest::new(field, format!("is required: {what}")),
        Value::String(word) if word.len() <= 40 => format!("\"{word}\""),
        Value::Number(number) => number.to_string(),
        other => json_type_name(other).to_owned(),
    };
    InvalidRequest::new(field, format!("must be {what}, not {shown}"))
}

/// The JSON type of a value, for error messages.
pub(super) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Decodes a JSON string, borrowed if it has no escapes. `None` if it is not a valid JSON string.
pub(super) fn decode_json_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Whether `url` is an http or https URL.
pub(super) fn is_web_url(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme) && url.len() > scheme.len())
    })
}
