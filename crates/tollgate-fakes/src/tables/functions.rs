//! The functions of the expressions, by name. Functions that evaluate an expression for each element of a list are in [`super::eval`]: in them,
//! `item` and `at` are the element and its number.

use serde_json::{Value, json};

use super::media_functions::{call_media_function, call_size_function, recipe};
use super::path::{camel, in_camel_case};
use super::scope::Scope;
use super::values::{consists_of, elements, equal, is_name, number, strings, text_at};
use crate::chat_output::pieces;
use crate::clock;
use crate::encoding;
use crate::rng::hash;
use crate::tokens::tokens;

/// Calls a function with values. The result is null if the function is unknown, or if it does not take arguments of these types.
pub(super) fn call(name: &str, values: &[&Value], scope: &Scope<'_>) -> Value {
    call_value_function(name, values)
        .or_else(|| call_object_function(name, values))
        .or_else(|| call_size_function(name, values))
        .or_else(|| call_media_function(name, values))
        .or_else(|| call_request_function(name, values, scope))
        .or_else(|| call_context_function(name, values, scope))
        .unwrap_or_default()
}

/// Functions of texts, numbers and lists.
fn call_value_function(name: &str, values: &[&Value]) -> Option<Value> {
    let text = |at: usize| text_at(values, at);
    let first = *values.first()?;
    Some(match (name, values) {
        ("given", _) => json!(!first.is_null()),
        ("len", [Value::String(text)]) => json!(text.chars().count()),
        ("len", [Value::Array(list)]) => json!(list.len()),
        ("len", _) => json!(0),
        ("list", _) => json!(elements(first)),
        ("blank", _) => json!(text(0).trim().is_empty()),
        ("lower", _) => json!(text(0).to_lowercase()),
        ("lines", _) => json!(text(0).lines().collect::<Vec<_>>()),
        ("number", [Value::String(text)]) => text.parse().map_or(Value::Null, number),
        ("integer", [Value::String(text)]) => json!(text.parse::<u64>().ok()),
        ("integer", _) => json!(first.as_u64()),
        ("json_object", _) => {
            json!(serde_json::from_str::<Value>(text(0)).is_ok_and(|value| value.is_object()))
        }
        ("text", [Value::String(_)]) => first.clone(),
        ("text", _) => json!(first.to_string()),
        ("type", _) => json!(type_of(first)),
        ("trim_end", _) => json!(text(0).trim_end()),
        ("camel", _) => json!(camel(text(0))),
        ("upper", _) => json!(text(0).to_uppercase()),
        ("bytes", _) => json!(text(0).as_bytes()),
        ("cut", [_, count]) => json!(text(0).get(..count.as_u64()? as usize)?),
        ("consists_of", _) => json!(consists_of(text(0), text(1))),
        ("hash", _) => json!(format!("{:016x}", hash(text(0)))),
        ("encode", _) => json!(encoding::encode(text(0).as_bytes())),
        ("pieces", [_, count]) => json!(pieces(text(0), count.as_u64()? as usize)),
        // Rounds to tenths.
        ("round", _) => number((first.as_f64()? * 10.0).round() / 10.0),
        ("ceil", _) => number(first.as_f64()?.ceil()),
        ("floor", _) => number(first.as_f64()?.floor()),
        ("min", [a, b]) => number(a.as_f64()?.min(b.as_f64()?)),
        ("max", [a, b]) => number(a.as_f64()?.max(b.as_f64()?)),
        ("range", _) => (0..first.as_u64()?).map(Value::from).collect(),
        ("starts", [_, with]) => json!(strings(with).iter().any(|p| text(0).starts_with(p))),
        ("ends", [_, with]) => json!(strings(with).iter().any(|p| text(0).ends_with(p))),
        ("contains", [_, parts]) => json!(strings(parts).iter().any(|p| text(0).contains(p))),
        ("after", _) => json!(
            text(0)
                .split_once(text(1))
                .map_or(text(0), |(_, rest)| rest)
        ),
        ("after_last", _) => json!(text(0).rsplit(text(1)).next()),
        ("flatten", [Value::Array(lists)]) => lists.iter().flat_map(elements).cloned().collect(),
        ("last", [Value::Array(list)]) => list.last().cloned()?,
        ("slice", [Value::Array(list), from, to @ ..]) => {
            let to = to.first().and_then(|to| to.as_u64());
            let to = to.map_or(list.len(), |to| list.len().min(to as usize));
            json!(list.get(from.as_u64()? as usize..to).unwrap_or_default())
        }
        ("sorted", _) => {
            let mut names = strings(first);
            names.sort_unstable();
            json!(names)
        }
        ("before", _) => json!(text(0).split(text(1)).next()),
        ("split", _) => json!(text(0).split(text(1)).collect::<Vec<_>>()),
        ("join", [list, _]) => json!(strings(list).join(text(1))),
        ("sum", _) => number(first.as_array()?.iter().filter_map(Value::as_f64).sum()),
        ("unique", [Value::Array(list)]) => {
            let repeated = |at: usize| list[..at].iter().any(|one| equal(one, &list[at]));
            json!(!(0..list.len()).any(repeated))
        }
        ("is_name", _) => json!(is_name(text(0))),
        ("is_hex", [_, length]) => {
            let digits = text(0).bytes().all(|byte| byte.is_ascii_hexdigit());
            json!(digits && Some(text(0).len() as u64) == length.as_u64())
        }
        ("hundredths", _) => json!(hundredths(text(0))),
        ("web", _) => json!(encoding::is_web(text(0))),
        ("tokens", _) => json!(tokens(text(0), 0, false).input),
        ("seconds_of", _) => json!(first.as_u64()? / 1000),
        ("iso", _) => json!(clock::formatted(first.as_u64()?, "%Y-%m-%dT%H:%M:%S%.3fZ")),
        ("plain_time", _) => json!(clock::formatted(first.as_u64()?, "%Y-%m-%d %H:%M:%S%.3f")),
        _ => return None,
    })
}

/// Functions of objects.
fn call_object_function(name: &str, values: &[&Value]) -> Option<Value> {
    let first = *values.first()?;
    Some(match (name, values) {
        ("keys", [Value::Object(object)]) => object.keys().cloned().map(Value::from).collect(),
        ("entries", [Value::Object(object)]) => {
            let entries = object.iter();
            entries
                .map(|(key, value)| json!({"key": key, "value": value}))
                .collect()
        }
        ("without", [Value::Object(object), names]) => {
            let names = strings(names);
            let mut object = object.clone();
            object.retain(|name, _| !names.contains(&name.as_str()));
            Value::Object(object)
        }
        ("without", [Value::Array(list), others]) => {
            let others = elements(others);
            list.iter()
                .filter(|one| !others.contains(one))
                .cloned()
                .collect()
        }
        ("in_camel_case", [_, except]) => in_camel_case(first, except),
        // The number of fields with this name, not counting fields inside the excepted fields.
        ("count_fields", [_, Value::String(name), except]) => {
            json!(count_fields(first, name, &strings(except)))
        }
        ("images_of", [_, names]) => {
            let images = |name: &str| {
                let given = first.get(name).map_or(&[][..], elements);
                let image = |image| json!({"field": name, "image": image});
                given.iter().map(image).collect::<Vec<_>>()
            };
            strings(names).into_iter().flat_map(images).collect()
        }
        // The entry of a table whose name is a part of this text: if several are, that with the longest name.
        ("containing", [_, Value::String(key)]) => {
            let entries = first.as_object()?.iter();
            let found = entries.filter(|(part, _)| key.contains(part.as_str()));
            let found = found.max_by_key(|(part, _)| part.len());
            found.map_or(Value::Null, |(_, entry)| entry.clone())
        }
        // The names in a table whose lists contain this value.
        ("listing", [Value::Object(table), value]) => {
            let listing = table
                .iter()
                .filter(|(_, list)| elements(list).contains(value));
            listing
                .map(|(name, _)| Value::from(name.as_str()))
                .collect()
        }
        _ => return None,
    })
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn count_fields(value: &Value, name: &str, except: &[&str]) -> usize {
    match value {
        Value::Object(object) => {
            let own = object.get(name).is_some_and(|field| !field.is_null());
            let inner = object
                .iter()
                .filter(|(field, _)| !except.contains(&field.as_str()));
            let inner = inner.map(|(_, field)| count_fields(field, name, except));
            usize::from(own) + inner.sum::<usize>()
        }
        Value::Array(list) => list.iter().map(|one| count_fields(one, name, except)).sum(),
        _ => 0,
    }
}

/// Parses a percentage such as `25.00%` to hundredths of a percent.
fn hundredths(text: &str) -> Option<u32> {
    let (percent, part) = text.strip_suffix('%')?.split_once('.')?;
    let percent: u32 = percent.parse().ok().filter(|percent| *percent <= 100)?;
    let part: u32 = part.parse().ok().filter(|_| part.len() == 2)?;
    Some(percent * 100 + part)
}

/// Functions that read headers and query of the request.
fn call_request_function(name: &str, values: &[&Value], scope: &Scope<'_>) -> Option<Value> {
    let key = text_at(values, 0);
    let request = scope.request?;
    Some(match name {
        "header" => json!(request.header(key)),
        "query" => json!(request.query_value(key)),
        "queries" => json!(request.query_values(key)),
        // The token of the `Authorization` header, if it has this scheme.
        "authorization" => json!(request.authorization(key)),
        _ => return None,
    })
}

/// Functions of ids, generated files and the plan of the work. All except `good` and `id` are null while the request is checked.
fn call_context_function(name: &str, values: &[&Value], scope: &Scope<'_>) -> Option<Value> {
    match (name, values) {
        ("good", [requested]) => {
            let requested = requested.as_u64()? as usize;
            return Some(json!(
                scope.plan.map_or(requested, |plan| plan.good(requested))
            ));
        }
        // An id that depends on the request, its use and its number.
        ("id", [_, _, nth]) => {
            let (prefix, purpose) = (text_at(values, 0), text_at(values, 1));
            return Some(json!(numbered_id(prefix, purpose, nth, scope.number)));
        }
        _ => {}
    }
    let context = scope.context?;
    let file = || recipe(values.first()?, scope.number);
    Some(match name {
        "hex" => json!(context.hex()),
        "uuid" => json!(context.uuid()),
        "digits" => json!(context.digits()),
        "link" => json!(context.link(file()?)),
        "base64" => {
            let bytes = file()?.make(scope.plan?.bytes).bytes();
            json!(encoding::encode(&bytes))
        }
        "file_size" => json!(file()?.make(scope.plan?.bytes).len()),
        _ => return None,
    })
}

fn numbered_id(prefix: &str, purpose: &str, nth: &Value, number: u64) -> String {
    let first = hash(&format!("{purpose} {nth} of {number}"));
    let second = hash(&first.to_string());
    format!("{prefix}{first:016x}{:08x}", second >> 32)
}
