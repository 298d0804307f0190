//! Parses the fields that contain input images: `image_urls`, `mask_url`, and `image` and `images` of video requests.

use serde_json::Value;
use tollgate_core::{Adjustment, ApiError};

use super::draft::Draft;
use crate::input::input_image::{Input, InputRole, InputSource};
use crate::input::limits::InputLimits;
use crate::input::{data_uri, url};
use crate::text::{clip_json, invalid_value};

/// Members of an image object that contain the image, in the order of preference.
const URL_MEMBERS: &[&str] = &["url", "image_url"];

/// Parses `image_urls`, an array of URLs, each a string or in an object. An empty one counts as absent.
pub(super) fn parse_image_urls(
    draft: &mut Draft<'_>,
    path: &str,
    value: &Value,
) -> Result<(), ApiError> {
    let limits = draft.input_limits;
    let Value::Array(items) = value else {
        return Err(invalid_value(path, "an array of URLs", value));
    };
    if items.len() > limits.max_count {
        return Err(ApiError::invalid(format!(
            "`{path}` takes at most {} images, got {}",
            limits.max_count,
            items.len()
        )));
    }
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let source = parse_url_value(&limits, &path, item)?;
        add_reference(draft, path, item, source);
    }
    Ok(())
}

/// Parses `mask_url`.
pub(super) fn parse_mask_url(
    draft: &mut Draft<'_>,
    path: &str,
    value: &Value,
) -> Result<(), ApiError> {
    let source = parse_url_value(&draft.input_limits, path, value)?;
    draft.inputs.push(Input {
        field: path.to_owned(),
        role: InputRole::Mask,
        source,
    });
    Ok(())
}

/// Parses `image`, one image in any form.
pub(super) fn parse_image(
    draft: &mut Draft<'_>,
    path: &str,
    value: &Value,
) -> Result<(), ApiError> {
    check_count(draft, path, 1)?;
    let source = parse_any_form(&draft.input_limits, path, value)?;
    add_reference(draft, path.to_owned(), value, source);
    Ok(())
}

/// Parses `images`, an array of images in any form. An empty one counts as absent. A first element equal to `image` is
/// skipped, because clients often fill in both fields.
pub(super) fn parse_images(
    draft: &mut Draft<'_>,
    path: &str,
    value: &Value,
) -> Result<(), ApiError> {
    let Value::Array(items) = value else {
        return Err(invalid_value(path, "an array of images", value));
    };
    let single = draft.inputs.first().map(|input| input.source.clone());
    let mut sources = Vec::new();
    check_count(draft, path, items.len().saturating_sub(1))?;
    for (index, item) in items.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let source = parse_any_form(&draft.input_limits, &path, item)?;
        if index > 0 || single.as_ref() != Some(&source) {
            sources.push((path, item, source));
        }
    }
    check_count(draft, path, sources.len())?;
    for (path, item, source) in sources {
        add_reference(draft, path, item, source);
    }
    Ok(())
}

/// Adds the reference image `item` to the draft, or only an adjustment if the model uses just the first reference.
fn add_reference(draft: &mut Draft<'_>, path: String, item: &Value, source: InputSource) {
    let index = draft.references();
    if draft.input_limits.first_only && index > 0 {
        let why = "only the first image is used as the reference";
        draft
            .adjustments
            .push(Adjustment::new(path, clip_json(item), Value::Null, why));
        return;
    }
    draft.inputs.push(Input {
        field: path,
        role: InputRole::Reference(index),
        source,
    });
}

/// Returns a 400 error if `more` images of the field `path` would exceed the model's limit.
fn check_count(draft: &Draft<'_>, path: &str, more: usize) -> Result<(), ApiError> {
    let (count, max) = (draft.references() + more, draft.input_limits.max_count);
    if count <= max {
        return Ok(());
    }
    let other = draft.inputs.first().filter(|_| more > 0);
    Err(ApiError::invalid(match other {
        Some(other) => format!(
            "`{}` and `{path}` take at most {max} images together, got {count}",
            other.field
        ),
        None => format!("`{path}` takes at most {max} images, got {count}"),
    }))
}

/// Parses an image that must be a URL or a data URI: a string, or an object that contains one.
fn parse_url_value(
    limits: &InputLimits,
    path: &str,
    value: &Value,
) -> Result<InputSource, ApiError> {
    let (path, text) = url_text(
        path,
        value,
        "an image's URL as a string, or an object {\"url\": …}",
    )?;
    if data_uri::is_base64(text) && !limits.data_uris.is_empty() {
        return Err(ApiError::invalid(format!(
            "`{path}` is base64 without its head: send it as data:image/png;base64,…"
        )));
    }
    parse_url(limits, &path, text)
}

/// A URL, or a data URI.
fn parse_url(limits: &InputLimits, path: &str, text: &str) -> Result<InputSource, ApiError> {
    if data_uri::is_data_uri(text) || data_uri::is_base64(text) {
        return data_uri::parse_data_uri(limits, path, text);
    }
    url::check_url(path, text, url::MAX_URL)?;
    Ok(InputSource::Url(text.to_owned()))
}

/// Parses an image in any form: a URL, a data URI or base64, as a string or in an object.
fn parse_any_form(
    limits: &InputLimits,
    path: &str,
    value: &Value,
) -> Result<InputSource, ApiError> {
    const FORMS: &str = "an image: its http or https URL, a data URI or base64 as a string, or an object {\"url\": …}";
    let (path, text) = url_text(path, value, FORMS)?;
    if data_uri::is_base64(text) {
        return data_uri::parse_base64(limits, &path, text);
    }
    let has_scheme = text.contains("://") || data_uri::is_data_uri(text);
    if !has_scheme {
        return Err(invalid_value(&path, FORMS, &text.into()));
    }
    parse_url(limits, &path, text)
}

/// The string of an image that is one, or an object that contains one (`{url}`, `{image_url}`, `{image_url: {url}}`), with
/// its path.
fn url_text<'v>(
    path: &str,
    value: &'v Value,
    expected: &str,
) -> Result<(String, &'v str), ApiError> {
    let members = match value {
        Value::String(text) => return Ok((path.to_owned(), text)),
        Value::Object(members) => members,
        _ => return Err(invalid_value(path, expected, value)),
    };
    let inner = URL_MEMBERS.iter().find_map(|name| {
        let value = members.get(*name).filter(|value| !value.is_null())?;
        Some((format!("{path}.{name}"), value))
    });
    match inner {
        Some((path, Value::String(text))) => Ok((path, text)),
        // One more level of nesting: `{type: "image_url", image_url: {url}}`.
        Some((path, Value::Object(members))) => match members.get("url") {
            Some(Value::String(text)) => Ok((format!("{path}.url"), text)),
            _ => Err(invalid_value(&path, expected, value)),
        },
        _ => Err(invalid_value(path, expected, value)),
    }
}
