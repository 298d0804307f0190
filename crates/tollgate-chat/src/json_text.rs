//! Writes JSON values as `serde_json::to_vec` does, but copies strings that need no escapes, as most do, in one piece.

use std::io::Write as _;

use serde_json::{Map, Value};

use crate::lazy_json;

/// The JSON text of `value`.
pub(crate) fn value_to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    push(&mut out, value);
    out
}

/// The JSON text of an object.
pub(crate) fn object_to_vec(object: &Map<String, Value>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1024);
    push_object(&mut out, object);
    out
}

fn push(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        // Writing to a Vec cannot fail.
        Value::Number(number) => drop(write!(out, "{number}")),
        Value::String(text) => push_string(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                push(out, item);
            }
            out.push(b']');
        }
        Value::Object(object) => push_object(out, object),
    }
}

fn push_object(out: &mut Vec<u8>, object: &Map<String, Value>) {
    out.push(b'{');
    for (at, (name, value)) in object.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push_string(out, name);
        out.push(b':');
        push(out, value);
    }
    out.push(b'}');
}

fn push_string(out: &mut Vec<u8>, text: &str) {
    if lazy_json::needs_no_escape(text) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        // Writing to a Vec cannot fail.
        drop(serde_json::to_writer(out, text));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn output_equals_serde_json() {
        let long = "plain ".repeat(20);
        for value in [
            json!(null),
            json!([true, false, 0, -1, u64::MAX, 1.5, 1e300, -0.0]),
            json!({}),
            json!([]),
            json!({ "a\"b": ["\\", "\n", "\u{1}", "\u{7f}", "é猫😀", ""], "c": { "d": [[]] } }),
            json!([
                long,
                format!("{long}\"{long}"),
                format!("{long}\n{long}"),
                format!("\u{1f}{long}")
            ]),
        ] {
            assert_eq!(value_to_vec(&value), serde_json::to_vec(&value).unwrap());
        }
        let object = json!({ "b": 1, "a": "x" });
        let map = object.as_object().unwrap();
        assert_eq!(object_to_vec(map), serde_json::to_vec(&object).unwrap());
    }

    proptest! {
        #[test]
        fn strings_are_escaped_as_by_serde_json(text in "[ -~\\n\\t\\x01\"\\\\é猫]{0,80}") {
            let value = Value::from(text);
            prop_assert_eq!(value_to_vec(&value), serde_json::to_vec(&value).unwrap());
        }
    }
}
