//! The parser of request bodies: validates the declared fields, and reports or rejects the others.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::draft::Draft;
use super::field::{Field, FieldKind};
use super::spec::{RequestSpec, Rule};
use super::values::parse_field;
use crate::input::input_image::InputRole;
use crate::text;

/// The maximum number of ignored fields that are reported in adjustments of their own; one more adjustment reports the number of the others.
const MAX_LISTED: usize = 20;
/// The object that may contain the fields allowed in `metadata`; every family accepts it.
const METADATA: &str = "metadata";

/// Validates the fields of `body` into `draft`. With `strict`, fields that would be ignored are an error. `null` counts
/// as absent everywhere.
///
/// # Errors
/// 400 that names the field as the client wrote it, the value received and the values allowed.
pub(crate) fn parse_fields(
    spec: &RequestSpec,
    draft: &mut Draft<'_>,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<(), ApiError> {
    for field in spec.every_field() {
        match find_value(body, field)? {
            Some((path, value)) => parse_field(spec, draft, field, &path, value)?,
            None => {
                if let Some(default) = field.default {
                    draft.set(field.name, default.value());
                }
            }
        }
        check_required(draft, field)?;
    }
    report_ignored_fields(spec, draft, body, strict)
}

/// Applies the family's rules in order.
pub(crate) fn apply_rules(rules: &[Rule], draft: &mut Draft<'_>) -> Result<(), ApiError> {
    rules.iter().try_for_each(|rule| (rule.apply)(draft))
}

/// The value that the client sent for `field`, with the name it used. `None` if the client sent none.
///
/// # Errors
/// 400 if two names of the field have different values.
fn find_value<'b>(
    body: &'b Map<String, Value>,
    field: &Field,
) -> Result<Option<(String, &'b Value)>, ApiError> {
    let names = std::iter::once(&field.name).chain(field.aliases);
    let direct = names.map(|name| ((*name).to_owned(), body.get(*name)));
    let nested = field.in_metadata.then(|| {
        let value = body
            .get(METADATA)
            .and_then(|metadata| metadata.get(field.name));
        (format!("{METADATA}.{}", field.name), value)
    });
    let mut found: Option<(String, &Value)> = None;
    for (name, value) in direct.chain(nested) {
        let Some(value) = value.filter(|value| !value.is_null()) else {
            continue;
        };
        match &found {
            Some((first, other)) if *other != value => {
                return Err(ApiError::invalid(format!(
                    "`{first}` and `{name}` are one field but differ: {} and {}; send one of them",
                    text::show_json(other),
                    text::show_json(value)
                )));
            }
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    Ok(found)
}

/// Returns a 400 error if a required field, or a required member of an object, is absent, blank or empty.
fn check_required(draft: &Draft<'_>, field: &Field) -> Result<(), ApiError> {
    if let FieldKind::Object(members) = field.kind {
        let object = draft.value(field.name);
        return members
            .iter()
            .filter(|member| member.required)
            .try_for_each(|member| {
                let value = object.and_then(|object| object.get(member.name));
                check_not_blank(&format!("{}.{}", field.name, member.name), value)
            });
    }
    let is_reference = |role| matches!(role, InputRole::Reference(_));
    match field.kind {
        _ if !field.required => Ok(()),
        FieldKind::ImageUrls if draft.inputs.iter().any(|input| is_reference(input.role)) => Ok(()),
        _ => check_not_blank(field.name, draft.value(field.name)),
    }
}

/// Returns a 400 error unless `value` is a string that is not blank.
fn check_not_blank(path: &str, value: Option<&Value>) -> Result<(), ApiError> {
    let text = value.and_then(Value::as_str);
    if text.is_some_and(|text| !text.trim().is_empty()) {
        return Ok(());
    }
    let got = value.map_or_else(|| "none".to_owned(), text::show_json);
    Err(ApiError::invalid(format!(
        "`{path}` is required and must not be empty, got {got}"
    )))
}

/// Records the fields without effect as adjustments; with `strict` they are an error.
fn report_ignored_fields(
    spec: &RequestSpec,
    draft: &mut Draft<'_>,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<(), ApiError> {
    let ignored_fields = ignored_fields(spec, body);
    if strict && !ignored_fields.is_empty() {
        let mut names: Vec<String> = ignored_fields
            .iter()
            .take(3)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if ignored_fields.len() > names.len() {
            names.push(format!("{} more", ignored_fields.len() - names.len()));
        }
        return Err(ApiError::invalid(format!(
            "{} would have no effect on {} (x-tollgate-strict is set)",
            names.join(", "),
            spec.title
        )));
    }
    for (name, value) in ignored_fields.iter().take(MAX_LISTED) {
        let why = spec
            .ignored
            .iter()
            .find(|(ignored, _)| ignored == name)
            .map_or("not a field of this model", |(_, why)| why);
        let requested = text::clip_json(value);
        draft
            .adjustments
            .push(Adjustment::new(name, requested, Value::Null, why));
    }
    if ignored_fields.len() > MAX_LISTED {
        let more = format!("{} more fields", ignored_fields.len() - MAX_LISTED);
        let why = "not fields of this model";
        draft
            .adjustments
            .push(Adjustment::new("…", more, Value::Null, why));
    }
    Ok(())
}

/// The fields of a body, and the members of its objects, that are not declared, with names escaped for messages.
fn ignored_fields<'b>(
    spec: &RequestSpec,
    body: &'b Map<String, Value>,
) -> Vec<(String, &'b Value)> {
    let mut ignored_fields = Vec::new();
    for (name, value) in body.iter().filter(|(_, value)| !value.is_null()) {
        let known = spec.every_field().find(|field| field.has_name(name));
        let members = match known.map(|field| field.kind) {
            Some(FieldKind::Object(members)) => members,
            Some(_) => continue,
            None if name == spec.model_field => continue,
            None if name == METADATA && value.is_object() => &[],
            None => {
                ignored_fields.push((text::show_name(name), value));
                continue;
            }
        };
        let is_shared = |member: &str| {
            name == METADATA
                && spec
                    .every_field()
                    .any(|field| field.in_metadata && field.name == member)
        };
        let given = value.as_object().into_iter().flatten();
        let unknown = given.filter(|(member, value)| {
            let known = members.iter().any(|field| field.name == *member);
            !value.is_null() && !known && !is_shared(member)
        });
        ignored_fields.extend(
            unknown.map(|(member, value)| (format!("{name}.{}", text::show_name(member)), value)),
        );
    }
    ignored_fields
}
