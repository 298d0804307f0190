//! Reference images in any of the forms that video clients use.

use serde_json::Value;
use tollgate_core::ApiError;

use super::Draft;
use super::values::wrong;
use crate::input::{self, InputRules, InputSource, data_uri};

/// Members that hold the picture of an object, in the order in which they are looked for.
const MEMBERS: &[&str] = &["url", "image_url"];

/// Reads `image`.
pub(super) fn read_one(draft: &mut Draft<'_>, path: &str, value: &Value) -> Result<(), ApiError> {
    check_count(draft, 1)?;
    let source = read_source(&draft.form.inputs, path, value)?;
    input::add_reference(draft, path.to_owned(), value, source);
    Ok(())
}

/// Reads `images`. An empty list counts as absent. A picture that came as `image` already is not taken twice: clients
/// often fill in both fields.
pub(super) fn read_all(draft: &mut Draft<'_>, path: &str, value: &Value) -> Result<(), ApiError> {
    let Value::Array(items) = value else {
        return Err(wrong(path, "an array of images", value));
    };
    let single = draft.inputs.first().map(|input| input.source.clone());
    let mut sources = Vec::new();
    check_count(draft, items.len().saturating_sub(1))?;
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let source = read_source(&draft.form.inputs, &path, item)?;
        if index > 0 || single.as_ref() != Some(&source) {
            sources.push((path, item, source));
        }
    }
    check_count(draft, sources.len())?;
    for (path, item, source) in sources {
        input::add_reference(draft, path, item, source);
    }
    Ok(())
}

/// 400 when `more` pictures are more than the model takes.
fn check_count(draft: &Draft<'_>, more: usize) -> Result<(), ApiError> {
    let (count, max) = (draft.references() + more, draft.form.inputs.max_count);
    if count > max {
        return Err(ApiError::invalid(format!(
            "`image` and `images` take at most {max} images together, got {count}"
        )));
    }
    Ok(())
}

/// One picture: text, or an object that holds it.
fn read_source(rules: &InputRules, path: &str, value: &Value) -> Result<InputSource, ApiError> {
    let wants = "an image: its URL, data URI or base64 as a string, or an object {\"url\": …}";
    match value {
        Value::String(text) if data_uri::is_bare(text) => data_uri::read_bare(rules, path, text),
        Value::String(text) => input::read_text(rules, path, text),
        Value::Object(members) => {
            let inner = MEMBERS.iter().find_map(|name| {
                let value = members.get(*name).filter(|value| !value.is_null())?;
                Some((format!("{path}.{name}"), value))
            });
            match inner {
                // One more level: `{type: "image_url", image_url: {url}}`.
                Some((path, Value::Object(members))) => match members.get("url") {
                    Some(Value::String(text)) => {
                        input::read_text(rules, &format!("{path}.url"), text)
                    }
                    _ => Err(wrong(&path, wants, value)),
                },
                Some((path, Value::String(text))) => input::read_text(rules, &path, text),
                _ => Err(wrong(path, wants, value)),
            }
        }
        _ => Err(wrong(path, wants, value)),
    }
}
