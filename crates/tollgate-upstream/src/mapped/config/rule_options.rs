//! Parses one rule of a model entry's `input`: the input field for a job field, and the form of its value.

use serde_json::{Map, Number, Value};

use crate::mapped::job_fields::{FILES, RESOLUTION, SIZE};
use crate::mapped::rule::{Rule, ValueForm, parse_ratio, plain_text};

const RULE: &[&str] = &["to", "as", "of", "values", "between", "most"];

/// Parses one rule from its target: the name of the input field, or a table with further options.
pub(super) fn parse_rule(source: &str, target: &Value, path: &str) -> Result<Rule, String> {
    let nothing = Map::new();
    let (to, more) = match target {
        Value::String(to) => (to.as_str(), &nothing),
        Value::Object(more) => {
            check_members(more, RULE, path)?;
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
            "`{path}` must be the name of one of the model's fields, or a table with it as `to`, got {target}"
        ));
    }
    let form = parse_form(source, more.get("as"), path)?;
    if more.contains_key("most") && source != "n" && form != ValueForm::List {
        return Err(format!("`{path}.most` is for `n` and lists of images"));
    }
    let values = parse_values(source, &form, more, path)?;
    let between = match more.get("between") {
        Some(value) => Some(parse_between(source, &form, value, path)?),
        None => None,
    };
    if between.is_some() && !values.is_empty() {
        return Err(format!(
            "`{path}` has both `between` and the model's values: use one of them"
        ));
    }
    Ok(Rule {
        source: source.to_owned(),
        to,
        form,
        values,
        between,
        max: usize::try_from(parse_max(target, path)?).unwrap_or(usize::MAX),
    })
}

/// Parses `between`, the minimum and the maximum number.
fn parse_between(
    source: &str,
    form: &ValueForm,
    value: &Value,
    path: &str,
) -> Result<[Number; 2], String> {
    let path = format!("{path}.between");
    let is_plain = matches!(form, ValueForm::Plain | ValueForm::Text(_));
    if !is_plain || ["n", SIZE, RESOLUTION].contains(&source) {
        return Err(format!("`{path}` goes with fields that are numbers only"));
    }
    match value.as_array().map(Vec::as_slice) {
        Some([Value::Number(min), Value::Number(max)]) if min.as_f64() <= max.as_f64() => {
            Ok([min.clone(), max.clone()])
        }
        _ => Err(format!(
            "`{path}` must be the minimum and the maximum, such as [0.5, 2], got {value}"
        )),
    }
}

/// The form that `as` names, or the default form of the job field.
fn parse_form(source: &str, given: Option<&Value>, path: &str) -> Result<ValueForm, String> {
    let name = match given {
        None => "",
        Some(value) => value.as_str().unwrap_or("?"),
    };
    let is_file = FILES.contains(&source);
    let (form, allowed) = match source {
        SIZE => {
            let form = match name {
                "" | "ratio" => Some(ValueForm::Ratio),
                "width" => Some(ValueForm::Width),
                "height" => Some(ValueForm::Height),
                "object" => Some(ValueForm::Object),
                text if text.contains("{width}") || text.contains("{height}") => {
                    Some(ValueForm::Text(text.to_owned()))
                }
                _ => None,
            };
            let allowed = "\"ratio\", \"width\", \"height\", \"object\" or a text with {width} and {height} such as \"{width}x{height}\"";
            (form, allowed)
        }
        _ if is_file => {
            let form = match name {
                "" if source == "references" => Some(ValueForm::List),
                "" | "first" => Some(ValueForm::First),
                "list" => Some(ValueForm::List),
                _ => None,
            };
            (form, "\"list\" or \"first\"")
        }
        _ => {
            let form = match name {
                "" => Some(ValueForm::Plain),
                text if text.contains("{}") => Some(ValueForm::Text(text.to_owned())),
                _ => None,
            };
            (form, "a text with {} for the value, such as \"{}s\"")
        }
    };
    let got = given.unwrap_or(&Value::Null);
    form.ok_or_else(|| format!("`{path}.as` must be {allowed}, got {got}"))
}

/// Parses the values of `of`, or of `values` with the model's names for them.
fn parse_values(
    source: &str,
    form: &ValueForm,
    more: &Map<String, Value>,
    path: &str,
) -> Result<Vec<(String, Value)>, String> {
    let (name, given): (_, Vec<(String, Value)>) = match (more.get("of"), more.get("values")) {
        (None, None) => return Ok(Vec::new()),
        (Some(_), Some(_)) => {
            return Err(format!(
                "`{path}` has both `of` and `values`: use one of them"
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
                "`{path}` must have `of` as a list of the model's values, or `values` as a table from the client's to the model's, got {got}"
            ));
        }
    };
    let path = format!("{path}.{name}");
    if given.is_empty() {
        return Err(format!("`{path}` must not be empty"));
    }
    match form {
        _ if source == "n" => Err(format!("`{path}` goes with `most` only")),
        ValueForm::Plain | ValueForm::Text(_) if source != SIZE => Ok(given),
        ValueForm::Ratio => match given.iter().find(|(name, _)| parse_ratio(name).is_none()) {
            None => Ok(given),
            Some((name, _)) => Err(format!(
                "`{path}` must have ratios such as \"16:9\", got {name:?}"
            )),
        },
        _ => Err(format!("`{path}` goes with ratios and plain fields only")),
    }
}

/// Parses the member `most`: the maximum number of results or images of one call.
pub(super) fn parse_max(target: &Value, path: &str) -> Result<u32, String> {
    let Some(value) = target.get("most") else {
        return Ok(u32::MAX);
    };
    let max = value.as_u64().and_then(|max| u32::try_from(max).ok());
    let max = max.filter(|max| *max > 0);
    max.ok_or_else(|| format!("`{path}.most` must be a whole number from 1, got {value}"))
}

/// Checks that all members of a table are among `names`.
pub(super) fn check_members(
    given: &Map<String, Value>,
    names: &[&str],
    path: &str,
) -> Result<(), String> {
    let unknown = given.keys().find(|name| !names.contains(&name.as_str()));
    unknown.map_or(Ok(()), |name| {
        let names = names.join(", ");
        Err(format!(
            "`{path}` has an unknown member {name:?}; it may have: {names}"
        ))
    })
}
