//! The one reader of request bodies: every field by its declaration, the rest listed or refused.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::field::{Field, Kind};
use super::values::read_field;
use super::{Draft, Form};
use crate::input::InputRole;
use crate::text;

/// How many ignored fields are listed one by one.
const LISTED: usize = 20;
/// The object of extension fields, which every family takes for what any family takes.
const METADATA: &str = "metadata";

/// Reads every field of `body` into `draft`. With `strict`, fields that would be ignored are an error.
///
/// `null` counts as absent everywhere. Errors are 400 and name the field as the client wrote it, what came and what is
/// allowed.
pub(crate) fn read_fields(
    draft: &mut Draft<'_>,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<(), ApiError> {
    let form = draft.form;
    for field in form.every_field() {
        match sent(body, field)? {
            Some((written, value)) => read_field(draft, field, &written, value)?,
            None => {
                if let Some(default) = field.default {
                    draft.set(field.name, default.value());
                }
            }
        }
        require(draft, field)?;
    }
    ignore_the_rest(draft, body, strict)
}

/// Applies the family's rules in order.
pub(crate) fn apply_rules(draft: &mut Draft<'_>) -> Result<(), ApiError> {
    draft
        .form
        .rules
        .iter()
        .try_for_each(|rule| (rule.apply)(draft))
}

/// What the client sent for `field`, under whichever of its names, and that name.
fn sent<'b>(
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
                    text::show(other),
                    text::show(value)
                )));
            }
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    Ok(found)
}

/// 400 when a required field, or a required member of an object, is absent, blank or empty.
fn require(draft: &Draft<'_>, field: &Field) -> Result<(), ApiError> {
    if let Kind::Object(members) = field.kind {
        let object = draft.value(field.name);
        return members
            .iter()
            .filter(|member| member.required)
            .try_for_each(|member| {
                let value = object.and_then(|object| object.get(member.name));
                present(&format!("{}.{}", field.name, member.name), value)
            });
    }
    let is_reference = |role| matches!(role, InputRole::Reference(_));
    match field.kind {
        _ if !field.required => Ok(()),
        Kind::References if draft.inputs.iter().any(|input| is_reference(input.role)) => Ok(()),
        _ => present(field.name, draft.value(field.name)),
    }
}

/// 400 unless `value` is a text that is not blank.
fn present(path: &str, value: Option<&Value>) -> Result<(), ApiError> {
    let text = value.and_then(Value::as_str);
    if text.is_some_and(|text| !text.trim().is_empty()) {
        return Ok(());
    }
    let came = value.map_or_else(|| "none".to_owned(), text::show);
    Err(ApiError::invalid(format!(
        "`{path}` is required and must not be empty, got {came}"
    )))
}

/// Lists the fields that have no effect as adjustments; with `strict` they are an error.
fn ignore_the_rest(
    draft: &mut Draft<'_>,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<(), ApiError> {
    let form = draft.form;
    let idle = idle_fields(&form, body);
    if strict && !idle.is_empty() {
        let mut names: Vec<String> = idle
            .iter()
            .take(3)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if idle.len() > names.len() {
            names.push(format!("{} more", idle.len() - names.len()));
        }
        return Err(ApiError::invalid(format!(
            "{} would have no effect on {} (x-tollgate-strict is set)",
            names.join(", "),
            form.title
        )));
    }
    for (name, value) in idle.iter().take(LISTED) {
        let why = form
            .ignored
            .iter()
            .find(|(ignored, _)| ignored == name)
            .map_or("not a field of this model", |(_, why)| why);
        let asked = text::clip(value);
        draft
            .adjustments
            .push(Adjustment::new(name, asked, Value::Null, why));
    }
    if idle.len() > LISTED {
        let more = format!("{} more fields", idle.len() - LISTED);
        let why = "not fields of this model";
        draft
            .adjustments
            .push(Adjustment::new("…", more, Value::Null, why));
    }
    Ok(())
}

/// The fields of a body, and the members of its objects, that the form does not have; their names
/// fit to be shown.
fn idle_fields<'b>(form: &Form, body: &'b Map<String, Value>) -> Vec<(String, &'b Value)> {
    let mut idle = Vec::new();
    for (name, value) in body.iter().filter(|(_, value)| !value.is_null()) {
        let known = form.every_field().find(|field| field.is_called(name));
        let members = match known.map(|field| field.kind) {
            Some(Kind::Object(members)) => members,
            Some(_) => continue,
            None if name == form.model_field => continue,
            None if name == METADATA && value.is_object() => &[],
            None => {
                idle.push((text::name(name), value));
                continue;
            }
        };
        let is_shared = |member: &str| {
            name == METADATA
                && form
                    .every_field()
                    .any(|field| field.in_metadata && field.name == member)
        };
        let given = value.as_object().into_iter().flatten();
        let unknown = given.filter(|(member, value)| {
            let known = members.iter().any(|field| field.name == *member);
            !value.is_null() && !known && !is_shared(member)
        });
        idle.extend(
            unknown.map(|(member, value)| (format!("{name}.{}", text::name(member)), value)),
        );
    }
    idle
}
