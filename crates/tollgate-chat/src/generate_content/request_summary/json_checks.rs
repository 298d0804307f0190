//! Type checks of members that are still raw JSON text.

use serde_json::value::RawValue;

use crate::error::InvalidRequest;

pub(crate) type RawMember<'a> = Option<&'a RawValue>;

pub(crate) fn is_number(raw: &RawValue) -> bool {
    raw.get()
        .bytes()
        .next()
        .is_some_and(|b| b == b'-' || b.is_ascii_digit())
}

pub(crate) fn check_bool(raw: RawMember<'_>, field: &str) -> Result<(), InvalidRequest> {
    match raw.map(RawValue::get) {
        None | Some("true" | "false") => Ok(()),
        Some(_) => Err(InvalidRequest::new(field, "must be true or false")),
    }
}

pub(crate) fn parse_string(
    raw: RawMember<'_>,
    field: &str,
) -> Result<Option<String>, InvalidRequest> {
    raw.map(|raw| serde_json::from_str(raw.get()))
        .transpose()
        .map_err(|_| InvalidRequest::new(field, "must be a string"))
}

pub(crate) fn check_object(raw: &RawValue, field: &str) -> Result<(), InvalidRequest> {
    match raw.get().as_bytes().first() {
        Some(b'{') => Ok(()),
        _ => Err(InvalidRequest::new(field, "must be an object")),
    }
}

/// Checks that a value is an array. Returns whether it has items.
pub(crate) fn check_array(raw: &RawValue, field: &str) -> Result<bool, InvalidRequest> {
    let inner = raw
        .get()
        .strip_prefix('[')
        .ok_or_else(|| InvalidRequest::new(field, "must be a list"))?;
    Ok(!inner.trim_ascii_start().starts_with(']'))
}
