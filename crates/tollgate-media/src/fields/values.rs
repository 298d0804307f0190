//! Validates the value of one field by its declared kind.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::draft::Draft;
use super::duration::Durations;
use super::field::{Field, FieldKind};
use super::image_inputs;
use super::spec::RequestSpec;
use crate::input::url::check_url;
use crate::text::{self, invalid_value};

/// The longest webhook URL, in bytes.
const MAX_WEBHOOK_URL: usize = 2048;

/// Validates `value` (not null) and stores it in the draft. `path` is the field as the client wrote it, for errors.
pub(super) fn parse_field(
    spec: &RequestSpec,
    draft: &mut Draft<'_>,
    field: &Field,
    path: &str,
    value: &Value,
) -> Result<(), ApiError> {
    match field.kind {
        FieldKind::ImageUrls => image_inputs::parse_image_urls(draft, path, value),
        FieldKind::MaskUrl => image_inputs::parse_mask_url(draft, path, value),
        FieldKind::Image => image_inputs::parse_image(draft, path, value),
        FieldKind::Images => image_inputs::parse_images(draft, path, value),
        _ => {
            let (parsed, adjusted) = parse_plain(spec, field, path, value)?;
            draft.set_requested(field.name, path, parsed);
            draft.adjustments.extend(adjusted);
            if let FieldKind::Object(members) = field.kind {
                let is_sent = |name| value.get(name).is_some_and(|value| !value.is_null());
                for member in members.iter().filter(|member| is_sent(member.name)) {
                    draft.set_member_requested(field.name, member.name);
                }
            }
            Ok(())
        }
    }
}

/// Validates a value of a kind that does not depend on other fields; returns the value to store and the adjustments. `path` is the field's name in
/// error messages.
fn parse_plain(
    spec: &RequestSpec,
    field: &Field,
    path: &str,
    value: &Value,
) -> Result<(Value, Vec<Adjustment>), ApiError> {
    let mut adjusted = Vec::new();
    let parsed = match field.kind {
        FieldKind::Text { max_chars } => bounded_text(path, max_chars, value)?,
        FieldKind::Choice(values) => choice(path, values, value)?.into(),
        FieldKind::Int { min, max, clamp } => {
            let number = integer(path, min, max, clamp, value)?;
            if value.as_i64() != Some(number) {
                let why = format!("`{path}` is from {min} to {max}");
                adjusted.push(Adjustment::new(path, value.clone(), number, why));
            }
            number.into()
        }
        FieldKind::Number { min, max } => number(path, min, max, value)?,
        FieldKind::Duration { durations, text } => duration(path, durations, text, value)?.into(),
        FieldKind::Flag if value.is_boolean() => value.clone(),
        FieldKind::Flag => return Err(invalid_value(path, "true or false", value)),
        FieldKind::Size if value.is_string() => value.clone(),
        FieldKind::Ratio => choice(path, &spec.sizes.ratios(), value)?.into(),
        FieldKind::Tier => tier(spec.sizes.tiers().0, path, value)?.into(),
        FieldKind::Object(members) => {
            let object = object(spec, members, path, value, &mut adjusted)?;
            Value::Object(object)
        }
        FieldKind::Custom(custom) => (custom.parse)(path, value)?,
        FieldKind::WebhookUrl => webhook_url(path, value)?,
        FieldKind::Size
        | FieldKind::ImageUrls
        | FieldKind::MaskUrl
        | FieldKind::Image
        | FieldKind::Images => {
            return Err(invalid_value(path, "a string", value));
        }
    };
    Ok((parsed, adjusted))
}

fn bounded_text(path: &str, max_chars: Option<usize>, value: &Value) -> Result<Value, ApiError> {
    let Some(text) = value.as_str() else {
        return Err(invalid_value(path, "a string", value));
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

fn choice(path: &str, values: &[&'static str], value: &Value) -> Result<&'static str, ApiError> {
    let found = value
        .as_str()
        .and_then(|requested| values.iter().copied().find(|v| *v == requested));
    found.ok_or_else(|| invalid_value(path, &one_of(values), value))
}

fn tier(tiers: &[&'static str], path: &str, value: &Value) -> Result<&'static str, ApiError> {
    let found = value.as_str().and_then(|requested| {
        tiers
            .iter()
            .copied()
            .find(|t| t.eq_ignore_ascii_case(requested))
    });
    found.ok_or_else(|| invalid_value(path, &one_of(tiers), value))
}

fn one_of(values: &[&str]) -> String {
    match values {
        [only] => format!("{only}, the only value"),
        _ => format!("one of {}", values.join(", ")),
    }
}

/// A whole number from `min` to `max`, or clamped to them.
fn integer(path: &str, min: i64, max: i64, clamp: bool, value: &Value) -> Result<i64, ApiError> {
    let expected = if min == max {
        format!("{min}, the only value")
    } else if clamp {
        "a whole number".to_owned()
    } else {
        format!("a whole number from {min} to {max}")
    };
    let number = match value {
        Value::Number(n) => n
            .as_i64()
            .or_else(|| n.as_u64().map(|_| i64::MAX))
            .or_else(|| n.as_f64().and_then(saturated)),
        Value::String(_) => {
            let shown = text::show_json(value);
            return Err(ApiError::invalid(format!(
                "`{path}` must be {expected}, sent as a JSON number without quotes, got {shown}"
            )));
        }
        _ => None,
    };
    match number {
        Some(n) if clamp => Ok(n.clamp(min, max)),
        Some(n) if (min..=max).contains(&n) => Ok(n),
        _ => Err(invalid_value(path, &expected, value)),
    }
}

/// The nearest `i64` of a number beyond its range; every such number is whole. `None` for a number within the range, which was written with a decimal
/// point or an exponent.
fn saturated(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2^63
    (number.abs() >= LIMIT).then_some(if number > 0.0 { i64::MAX } else { i64::MIN })
}

/// The http or https URL of a webhook.
fn webhook_url(path: &str, value: &Value) -> Result<Value, ApiError> {
    let Some(url) = value.as_str() else {
        return Err(invalid_value(
            path,
            "an http or https URL, as a string",
            value,
        ));
    };
    check_url(path, url, MAX_WEBHOOK_URL)?;
    Ok(value.clone())
}

/// A number from `min` to `max`.
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
            let expected = format!("a number from {min} to {max}{quotes}");
            Err(invalid_value(path, &expected, value))
        }
    }
}

/// A video's duration in whole seconds; a string of digits is accepted if `text` is true.
fn duration(path: &str, durations: &Durations, text: bool, value: &Value) -> Result<i64, ApiError> {
    let plain = |digits: &str| {
        let digits_only = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        digits.parse().ok().filter(|_| digits_only)
    };
    let seconds = match value {
        Value::Number(n) => n.as_i64(),
        Value::String(digits) if text => plain(digits),
        _ => None,
    };
    if let Some(seconds) = seconds.filter(|seconds| durations.contains(*seconds)) {
        return Ok(seconds);
    }
    let hint = match value {
        Value::String(_) if !text => ", sent as a JSON number without quotes",
        _ => "",
    };
    let expected = format!("{}, in whole seconds{hint}", durations.describe());
    Err(invalid_value(path, &expected, value))
}

fn object(
    spec: &RequestSpec,
    members: &'static [Field],
    path: &str,
    value: &Value,
    adjusted: &mut Vec<Adjustment>,
) -> Result<Map<String, Value>, ApiError> {
    let Value::Object(given) = value else {
        return Err(invalid_value(path, "an object", value));
    };
    let mut parsed = Map::new();
    for member in members {
        match given.get(member.name) {
            None | Some(Value::Null) => {
                if let Some(default) = member.default {
                    parsed.insert(member.name.to_owned(), default.value());
                }
            }
            Some(value) => {
                let path = format!("{path}.{}", member.name);
                let (value, more) = parse_plain(spec, member, &path, value)?;
                parsed.insert(member.name.to_owned(), value);
                adjusted.extend(more);
            }
        }
    }
    Ok(parsed)
}
