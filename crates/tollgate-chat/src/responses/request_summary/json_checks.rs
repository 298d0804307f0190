//! Type and range checks of members that are still raw JSON text.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::InvalidRequest;
use crate::responses::json::decode_json_string;

pub(crate) fn expect_start<'a>(
    value: Option<&'a RawValue>,
    field: &str,
    start: u8,
    what: &str,
) -> Result<Option<&'a RawValue>, InvalidRequest> {
    match value {
        Some(value) if value.get().as_bytes().first() != Some(&start) => {
            Err(invalid_value(field, what, value))
        }
        other => Ok(other),
    }
}

pub(crate) fn boolean(
    value: Option<&RawValue>,
    field: &str,
) -> Result<Option<bool>, InvalidRequest> {
    match value.map(RawValue::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(invalid_value(
            field,
            "true or false",
            value.unwrap_or(RawValue::NULL),
        )),
    }
}

pub(crate) fn string<'a>(
    value: Option<&'a RawValue>,
    field: &str,
) -> Result<Option<Cow<'a, str>>, InvalidRequest> {
    let Some(value) = expect_start(value, field, b'"', "a string")? else {
        return Ok(None);
    };
    decode_json_string(value.get())
        .map(Some)
        .ok_or_else(|| invalid_value(field, "a string of valid Unicode characters", value))
}

pub(crate) fn required_string<'a>(
    value: Option<&'a RawValue>,
    field: &str,
) -> Result<Cow<'a, str>, InvalidRequest> {
    match string(value, field)? {
        None => Err(InvalidRequest::new(field, "is required: a string")),
        Some(text) if text.trim().is_empty() => {
            Err(InvalidRequest::new(field, "must not be empty or blank"))
        }
        Some(text) => Ok(text),
    }
}

pub(crate) fn number(
    value: Option<&RawValue>,
    field: &str,
    min: f64,
    max: f64,
) -> Result<Option<f64>, InvalidRequest> {
    let Some(value) = value else { return Ok(None) };
    let what = format!("a number from {min} to {max}");
    let is_number = matches!(value.get().as_bytes().first(), Some(b'-' | b'0'..=b'9'));
    match value.get().parse::<f64>() {
        Ok(number) if is_number && (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(invalid_value(field, &what, value)),
    }
}

pub(crate) fn integer(
    value: Option<&RawValue>,
    field: &str,
    min: u64,
    max: Option<u64>,
) -> Result<Option<u64>, InvalidRequest> {
    let Some(value) = value else { return Ok(None) };
    let is_complete = value.get().bytes().all(|b| b.is_ascii_digit());
    match value.get().parse::<u64>() {
        Ok(number) if is_complete && number >= min && max.is_none_or(|max| number <= max) => {
            Ok(Some(number))
        }
        _ => {
            let what = match max {
                Some(max) => format!("a whole number from {min} to {max}"),
                None => format!("a whole number of at least {min}"),
            };
            Err(invalid_value(field, &what, value))
        }
    }
}

/// The error "`field` must be `what`, not …": short values are shown, longer ones only by their
/// type.
pub(crate) fn invalid_value(field: &str, what: &str, value: &RawValue) -> InvalidRequest {
    let raw = value.get();
    let found = match raw.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ if raw.len() <= 32 => raw,
        _ => "a number",
    };
    InvalidRequest::new(field, format!("must be {what}, not {found}"))
}

/// Whether a JSON string holds only white space.
pub(crate) fn is_blank(json: &str) -> bool {
    // Most strings begin with a letter or digit: no need to decode them.
    !json
        .as_bytes()
        .get(1)
        .is_some_and(u8::is_ascii_alphanumeric)
        && decode_json_string(json).is_none_or(|text| text.trim().is_empty())
}

/// Parses JSON that is known to be valid; the default if it has another type.
pub(super) fn parse_or_default<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
    serde_json::from_str(raw.get()).unwrap_or_default()
}
