//! Comparison of JSON with patterns.
//!
//! In a pattern, these strings match any value of their kind: `<string>`, `<integer>`, `<now>` (Unix seconds, within two minutes), `<now+N>` (N
//! seconds later).

use serde_json::Value;

/// The time in Unix seconds.
pub(crate) fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

/// `value` has the members of `pattern`, and perhaps others. Lists are compared item by item.
#[track_caller]
pub(crate) fn assert_has(value: &Value, pattern: Value) {
    if let Err(path) = matches(value, &pattern, false) {
        panic!("at `{path}`: {value}\nhas not {pattern}");
    }
}

/// `value` has the members of `pattern` and no others.
#[track_caller]
pub(crate) fn assert_shape(value: &Value, pattern: Value) {
    if let Err(path) = matches(value, &pattern, true) {
        panic!("at `{path}`: {value}\nis not {pattern}");
    }
}

/// `Err` with the path of the first difference.
fn matches(value: &Value, pattern: &Value, exactly: bool) -> Result<(), String> {
    let at = |step: String| move |path: String| format!("/{step}{path}");
    let is_equal = match (value, pattern) {
        (Value::Object(members), Value::Object(patterns)) => {
            for (name, pattern) in patterns {
                let value = members.get(name).ok_or(format!("/{name}"))?;
                matches(value, pattern, exactly).map_err(at(name.clone()))?;
            }
            let more = members.keys().find(|name| !patterns.contains_key(*name));
            match more.filter(|_| exactly) {
                Some(name) => return Err(format!("/{name}")),
                None => true,
            }
        }
        (Value::Array(items), Value::Array(patterns)) if items.len() == patterns.len() => {
            for (number, (value, pattern)) in items.iter().zip(patterns).enumerate() {
                matches(value, pattern, exactly).map_err(at(number.to_string()))?;
            }
            true
        }
        (_, Value::String(pattern)) => match pattern.as_str() {
            "<string>" => value.is_string(),
            "<integer>" => value.is_i64(),
            _ => match pattern
                .strip_prefix("<now")
                .map(|p| p.trim_matches(['+', '>']))
            {
                Some(later) => is_about(value, later.parse().unwrap_or(0)),
                None => value == pattern.as_str(),
            },
        },
        _ => value == pattern,
    };
    is_equal.then_some(()).ok_or_else(String::new)
}

fn is_about(value: &Value, later: i64) -> bool {
    value
        .as_i64()
        .is_some_and(|at| (at - now() - later).abs() < 120)
}
