//! Operations of the expressions on JSON values.

use serde_json::{Value, json};

/// Whether a value is neither null nor false.
pub(crate) fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// A value as text: a string without quotes, null as an empty text.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    }
}

/// A number as JSON; an integer if it is whole.
pub(crate) fn number(n: f64) -> Value {
    if n.fract() == 0.0 && n.abs() < 9e15 {
        json!(n as i64)
    } else {
        json!(n)
    }
}

/// The elements of a list. A single value is treated as a list of one, null as an empty list.
pub(crate) fn elements(value: &Value) -> &[Value] {
    match value {
        Value::Array(list) => list,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// The texts of a list.
pub(crate) fn strings(value: &Value) -> Vec<&str> {
    elements(value).iter().filter_map(Value::as_str).collect()
}

/// An argument that is a text; empty if it is not a text.
pub(crate) fn text_at<'a>(values: &[&'a Value], at: usize) -> &'a str {
    values
        .get(at)
        .and_then(|value| value.as_str())
        .unwrap_or_default()
}

/// Whether the text consists of letters, digits, `_` and `-`, at least one of them.
pub(crate) fn is_name(text: &str) -> bool {
    consists_of(text, "_-")
}

/// Whether the text consists of letters, digits and `others`, at least one of them.
pub(crate) fn consists_of(text: &str, others: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    !text.is_empty() && text.chars().all(legal)
}
