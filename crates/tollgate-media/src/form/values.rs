//! Reading one field's value by its declared kind.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::field::{Field, Kind};
use super::length::Lengths;
use super::{Draft, Form, pictures};
use crate::{input, text};

/// The longest callback URL, in bytes.
const CALLBACK_MAX: usize = 2048;

/// 400: `field` must be `wants`, something else came.
pub(crate) fn wrong(field: &str, wants: &str, got: &Value) -> ApiError {
    ApiError::invalid(format!(
        "`{field}` must be {wants}, got {}",
        text::show(got)
    ))
}

/// Reads `value` (not null), which came as the field `written`, into the draft.
pub(crate) fn read_field(
    draft: &mut Draft<'_>,
    field: &Field,
    written: &str,
    value: &Value,
) -> Result<(), ApiError> {
    match field.kind {
        Kind::References => input::read_references(draft, written, value),
        Kind::Mask => input::read_mask(draft, written, value),
        Kind::Picture => pictures::read_one(draft, written, value),
        Kind::Pictures => pictures::read_all(draft, written, value),
        _ => {
            let (value, adjusted) = plain(&draft.form, field, written, value)?;
            draft.give(field.name, value);
            draft.adjustments.extend(adjusted);
            Ok(())
        }
    }
}

/// A value of the kinds that need nothing but themselves, and what reading it changed. `path` is the
/// field as messages name it.
fn plain(
    form: &Form,
    field: &Field,
    path: &str,
    value: &Value,
) -> Result<(Value, Vec<Adjustment>), ApiError> {
    let mut adjusted = Vec::new();
    let read = match field.kind {
        Kind::Text { max_chars } => bounded_text(path, max_chars, value)?,
        Kind::Choice(values) => choice(path, values, value)?.into(),
        Kind::Int { min, max, clamp } => {
            let number = whole(path, min, max, clamp, value)?;
            if value.as_i64() != Some(number) {
                let why = format!("`{path}` is from {min} to {max}");
                adjusted.push(Adjustment::new(path, value.clone(), number, why));
            }
            number.into()
        }
        Kind::Number { min, max } => number(path, min, max, value)?,
        Kind::Length { lengths, text } => length(path, lengths, text, value)?.into(),
        Kind::Flag if value.is_boolean() => value.clone(),
        Kind::Flag => return Err(wrong(path, "true or false", value)),
        Kind::Size if value.is_string() => value.clone(),
        Kind::Ratio => choice(path, &form.sizes.ratios(), value)?.into(),
        Kind::Tier => tier(form.sizes.tiers().0, path, value)?.into(),
        Kind::Object(members) => {
            let object = object(form, members, path, value, &mut adjusted)?;
            Value::Object(object)
        }
        Kind::Special(special) => (special.read)(path, value)?,
        Kind::Callback => callback(path, value)?,
        Kind::Size | Kind::References | Kind::Mask | Kind::Picture | Kind::Pictures => {
            return Err(wrong(path, "a string", value));
        }
    };
    Ok((read, adjusted))
}

fn bounded_text(path: &str, max_chars: Option<usize>, value: &Value) -> Result<Value, ApiError> {
    let Some(text) = value.as_str() else {
        return Err(wrong(path, "a string", value));
    };
    if let Some(max) = max_chars {
        let chars = text.chars().count();
        if chars > max {
            return Err(ApiError::invalid(format!(
                "`{path}` must be at most {max} characters, got {chars}"
            )));
        }
    }
    Ok(value.clone())
}

pub(crate) fn choice(
    path: &str,
    values: &[&'static str],
    value: &Value,
) -> Result<&'static str, ApiError> {
    let found = value
        .as_str()
        .and_then(|asked| values.iter().copied().find(|v| *v == asked));
    found.ok_or_else(|| wrong(path, &one_of(values), value))
}

fn tier(tiers: &[&'static str], path: &str, value: &Value) -> Result<&'static str, ApiError> {
    let found = value.as_str().and_then(|asked| {
        tiers
            .iter()
            .copied()
            .find(|t| t.eq_ignore_ascii_case(asked))
    });
    found.ok_or_else(|| wrong(path, &one_of(tiers), value))
}

fn one_of(values: &[&str]) -> String {
    match values {
        [only] => format!("{only}, the only value"),
        _ => format!("one of {}", values.join(", ")),
    }
}

/// A whole number within bounds, or clamped to them.
pub(crate) fn whole(
    path: &str,
    min: i64,
    max: i64,
    clamp: bool,
    value: &Value,
) -> Result<i64, ApiError> {
    let wants = if min == max {
        format!("{min}, the only value")
    } else if clamp {
        "a whole number".to_owned()
    } else {
        format!("a whole number from {min} to {max}")
    };
    let number = match value {
        Value::Number(n) => n.as_i64().or_else(|| n.as_u64().map(|_| i64::MAX)),
        Value::String(_) => {
            let shown = text::show(value);
            return Err(ApiError::invalid(format!(
                "`{path}` must be {wants}, sent as a JSON number without quotes, got {shown}"
            )));
        }
        _ => None,
    };
    match number {
        Some(n) if clamp => Ok(n.clamp(min, max)),
        Some(n) if (min..=max).contains(&n) => Ok(n),
        _ => Err(wrong(path, &wants, value)),
    }
}

/// An http or https URL to call back.
fn callback(path: &str, value: &Value) -> Result<Value, ApiError> {
    let Some(url) = value.as_str() else {
        return Err(wrong(path, "an http or https URL, as a string", value));
    };
    input::check_url(path, url, CALLBACK_MAX)?;
    Ok(value.clone())
}

/// A number within bounds.
fn number(path: &str, min: f64, max: f64, value: &Value) -> Result<Value, ApiError> {
    let quotes = if value.is_string() {
        ", sent as a JSON number without quotes"
    } else {
        ""
    };
    match value {
        Value::Number(n) if n.as_f64().is_some_and(|n| (min..=max).contains(&n)) => {
            Ok(value.clone())
        }
        _ => {
            let wants = format!("a number from {min} to {max}{quotes}");
            Err(wrong(path, &wants, value))
        }
    }
}

/// A film's length in whole seconds; as a string of digits only where `text` says so.
fn length(path: &str, lengths: &Lengths, text: bool, value: &Value) -> Result<i64, ApiError> {
    let plain = |digits: &str| {
        let digits_only = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        digits.parse().ok().filter(|_| digits_only)
    };
    let seconds = match value {
        Value::Number(n) => n.as_i64(),
        Value::String(digits) if text => plain(digits),
        _ => None,
    };
    if let Some(seconds) = seconds.filter(|seconds| lengths.allow(*seconds)) {
        return Ok(seconds);
    }
    let form = match value {
        Value::String(_) if !text => ", sent as a JSON number without quotes",
        _ => "",
    };
    let wants = format!("{}, in whole seconds{form}", lengths.words());
    Err(wrong(path, &wants, value))
}

fn object(
    form: &Form,
    members: &'static [Field],
    path: &str,
    value: &Value,
    adjusted: &mut Vec<Adjustment>,
) -> Result<Map<String, Value>, ApiError> {
    let Value::Object(given) = value else {
        return Err(wrong(path, "an object", value));
    };
    let mut read = Map::new();
    for member in members {
        match given.get(member.name) {
            None | Some(Value::Null) => {
                if let Some(default) = member.default {
                    read.insert(member.name.to_owned(), default.value());
                }
            }
            Some(value) => {
                let path = format!("{path}.{}", member.name);
                let (value, more) = plain(form, member, &path, value)?;
                read.insert(member.name.to_owned(), value);
                adjusted.extend(more);
            }
        }
    }
    Ok(read)
}
