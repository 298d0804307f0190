//! JSON values taken apart with errors that name the path.

use serde_json::{Map, Value};

use crate::error::Bad;

/// An object's members.
pub(super) fn object(value: Value, path: &str) -> Result<Map<String, Value>, Bad> {
    match value {
        Value::Object(map) => Ok(map),
        _ => Err(Bad::new(path, "must be an object")),
    }
}

/// A list.
pub(super) fn list(value: Value, path: &str) -> Result<Vec<Value>, Bad> {
    match value {
        Value::Array(list) => Ok(list),
        _ => Err(Bad::new(path, "must be a list")),
    }
}

/// Text.
pub(super) fn text(value: Value, path: &str) -> Result<String, Bad> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(Bad::new(path, "must be a string")),
    }
}

/// A member taken out of its object, none where it is missing or `null`.
pub(super) fn take(map: &mut Map<String, Value>, name: &str) -> Option<Value> {
    map.shift_remove(name).filter(|value| !value.is_null())
}

/// A member that must be text, if it is there.
pub(super) fn take_text(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Option<String>, Bad> {
    take(map, name)
        .map(|value| text(value, &format!("{path}.{name}")))
        .transpose()
}

/// A member that must be there and be text.
pub(super) fn need_text(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<String, Bad> {
    take_text(map, name, path)?.ok_or_else(|| Bad::new(format!("{path}.{name}"), "is required"))
}

/// A member that must be there and be an object.
pub(super) fn need_object(
    map: &mut Map<String, Value>,
    name: &str,
    path: &str,
) -> Result<Map<String, Value>, Bad> {
    let path = format!("{path}.{name}");
    match take(map, name) {
        Some(value) => object(value, &path),
        None => Err(Bad::new(path, "is required")),
    }
}

/// What is left of an object once the known members were taken out, without `null`s.
pub(super) fn left(mut map: Map<String, Value>) -> Map<String, Value> {
    map.retain(|_, value| !value.is_null());
    map
}
