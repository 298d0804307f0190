//! Reads JSON objects field by field, with errors that name the JSON path.

use serde_json::{Map, Value};

use crate::error::InvalidRequest;

/// The members of `value`, which must be an object.
pub(super) fn expect_object(
    value: Value,
    path: &str,
) -> Result<Map<String, Value>, InvalidRequest> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(InvalidRequest::new(path, "must be an object")),
    }
}

/// The items of `value`, which must be an array.
pub(super) fn expect_array(value: Value, path: &str) -> Result<Vec<Value>, InvalidRequest> {
    match value {
        Value::Array(list) => Ok(list),
        _ => Err(InvalidRequest::new(path, "must be a list")),
    }
}

/// The text of `value`, which must be a string.
pub(super) fn expect_string(value: Value, path: &str) -> Result<String, InvalidRequest> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(InvalidRequest::new(path, "must be a string")),
    }
}

/// Takes a member out of an object. `None` if it is missing or `null`.
pub(super) fn take_field(map: &mut Map<String, Value>, name: &str) -> Option<Value> {
    map.shift_remove(name).filter(|value| !value.is_null())
}

/// Takes an optional string member.
pub(super) fn take_string(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<String>, InvalidRequest> {
    take_field(map, name)
        .map(|value| expect_string(value, &format!("{path}.{name}")))
        .transpose()
}

/// Takes a required string member.
pub(super) fn require_string(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<String, InvalidRequest> {
    take_string(map, name, path)?
        .ok_or_else(|| InvalidRequest::new(format!("{path}.{name}"), "is required"))
}

/// Takes a required object member.
pub(super) fn require_object(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Map<String, Value>, InvalidRequest> {
    let path = format!("{path}.{name}");
    match take_field(map, name) {
        Some(value) => expect_object(value, &path),
        None => Err(InvalidRequest::new(path, "is required")),
    }
}

/// The members that were not taken, without `null`s.
pub(super) fn remaining_fields(mut map: Map<String, Value>) -> Map<String, Value> {
    map.retain(|_, value| !value.is_null());
    map
}

/// Inserts a member if it has a value.
pub(super) fn insert_some(
    map: &mut Map<String, Value>,
    name: &str,
    value: Option<impl Into<Value>>,
) {
    if let Some(value) = value {
        map.insert(name.to_owned(), value.into());
    }
}
