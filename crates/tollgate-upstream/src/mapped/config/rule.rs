//! One rule of a model entry's `input`: where a job's field goes, and in what form.

use serde_json::{Map, Number, Value};

use super::super::convert::{Form, Rule, plain_text, ratio};
use super::super::order::{FILES, RESOLUTION, SIZE};
use super::known;

const RULE: &[&str] = &["to", "as", "of", "values", "between", "most"];

/// One target: the input's field alone, or a table that says more.
pub(super) fn rule(source: &str, target: &Value, place: &str) -> Result<Rule, String> {
    let nothing = Map::new();
    let (to, more) = match target {
        Value::String(to) => (to.as_str(), &nothing),
        Value::Object(more) => {
            known(more, RULE, place)?;
            (
                more.get("to").and_then(Value::as_str).unwrap_or_default(),
                more,
            )
        }
        _ => ("", &nothing),
    };
    let to: Vec<String> = to.split('.').map(str::to_owned).collect();
    if to.iter().any(String::is_empty) {
        return Err(format!(
            "`{place}` must be the name of one of the model's fields, or a table with it as `to`, got {target}"
        ));
    }
    let form = form(source, more.get("as"), place)?;
    if more.contains_key("most") && source != "n" && form != Form::List {
        return Err(format!("`{place}.most` is for `n` and lists of pictures"));
    }
    let values = values(source, &form, more, place)?;
    let between = match more.get("between") {
        Some(value) => Some(between(source, &form, value, place)?),
        None => None,
    };
    if between.is_some() && !values.is_empty() {
        return Err(format!(
            "`{place}` has both `between` and the model's values: one of them says it all"
        ));
    }
    Ok(Rule {
        source: source.to_owned(),
        to,
        form,
        values,
        between,
        most: usize::try_from(most_of(target, place)?).unwrap_or(usize::MAX),
    })
}

/// The least and the greatest number.
fn between(source: &str, form: &Form, value: &Value, place: &str) -> Result<[Number; 2], String> {
    let place = format!("{place}.between");
    let is_plain = matches!(form, Form::Plain | Form::Text(_));
    if !is_plain || ["n", SIZE, RESOLUTION].contains(&source) {
        return Err(format!("`{place}` goes with fields that are numbers only"));
    }
    match value.as_array().map(Vec::as_slice) {
        Some([Value::Number(least), Value::Number(greatest)])
            if least.as_f64() <= greatest.as_f64() =>
        {
            Ok([least.clone(), greatest.clone()])
        }
        _ => Err(format!(
            "`{place}` must be the least and the greatest number, such as [0.5, 2], got {value}"
        )),
    }
}

/// The form that `as` names, or the usual one of the source.
fn form(source: &str, given: Option<&Value>, place: &str) -> Result<Form, String> {
    let name = match given {
        None => "",
        Some(value) => value.as_str().unwrap_or("?"),
    };
    let is_file = FILES.contains(&source);
    let (form, allowed) = match source {
        SIZE => {
            let form = match name {
                "" | "ratio" => Some(Form::Ratio),
                "width" => Some(Form::Width),
                "height" => Some(Form::Height),
                "object" => Some(Form::Object),
                text if text.contains("{width}") || text.contains("{height}") => {
                    Some(Form::Text(text.to_owned()))
                }
                _ => None,
            };
            let allowed = "\"ratio\", \"width\", \"height\", \"object\" or a text with {width} and {height} such as \"{width}x{height}\"";
            (form, allowed)
        }
        _ if is_file => {
            let form = match name {
                "" if source == "references" => Some(Form::List),
                "" | "first" => Some(Form::First),
                "list" => Some(Form::List),
                _ => None,
            };
            (form, "\"list\" or \"first\"")
        }
        _ => {
            let form = match name {
                "" => Some(Form::Plain),
                text if text.contains("{}") => Some(Form::Text(text.to_owned())),
                _ => None,
            };
            (form, "a text with {} for the value, such as \"{}s\"")
        }
    };
    let got = given.unwrap_or(&Value::Null);
    form.ok_or_else(|| format!("`{place}.as` must be {allowed}, got {got}"))
}

/// The values of `of`, or of `values` with what they are called.
fn values(
    source: &str,
    form: &Form,
    more: &Map<String, Value>,
    place: &str,
) -> Result<Vec<(String, Value)>, String> {
    let (name, given): (_, Vec<(String, Value)>) = match (more.get("of"), more.get("values")) {
        (None, None) => return Ok(Vec::new()),
        (Some(_), Some(_)) => {
            return Err(format!(
                "`{place}` has both `of` and `values`: one of them says it all"
            ));
        }
        (Some(Value::Array(items)), None) => {
            let pairs = items.iter().map(|v| (plain_text(v), v.clone()));
            ("of", pairs.collect())
        }
        (None, Some(Value::Object(pairs))) => {
            let pairs = pairs.iter().map(|(k, v)| (k.clone(), v.clone()));
            ("values", pairs.collect())
        }
        (of, values) => {
            let got = of.or(values).unwrap_or(&Value::Null);
            return Err(format!(
                "`{place}` must have `of` as a list of the model's values, or `values` as a table from the client's to the model's, got {got}"
            ));
        }
    };
    let place = format!("{place}.{name}");
    if given.is_empty() {
        return Err(format!("`{place}` must not be empty"));
    }
    match form {
        _ if source == "n" => Err(format!("`{place}` goes with `most` only")),
        Form::Plain | Form::Text(_) if source != SIZE => Ok(given),
        Form::Ratio => match given.iter().find(|(name, _)| ratio(name).is_none()) {
            None => Ok(given),
            Some((name, _)) => Err(format!(
                "`{place}` must have ratios such as \"16:9\", got {name:?}"
            )),
        },
        _ => Err(format!("`{place}` goes with ratios and plain fields only")),
    }
}

/// The most results of one call, or the most pictures that it takes.
pub(super) fn most_of(target: &Value, place: &str) -> Result<u32, String> {
    let Some(value) = target.get("most") else {
        return Ok(u32::MAX);
    };
    let most = value.as_u64().and_then(|most| u32::try_from(most).ok());
    let most = most.filter(|most| *most > 0);
    most.ok_or_else(|| format!("`{place}.most` must be a whole number from 1, got {value}"))
}
