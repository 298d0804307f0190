//! Determines which fields of a job the client set to values other than the defaults.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::endpoint::RequestLayout;
use crate::family::AnyFamily;
use crate::fields::field::{Field, FieldKind};
use crate::media_job::MediaJob;

/// The fields of `job` that differ from their defaults, by name, without the prompt, the size and the quantity (see [`MediaJob`] for those). If a
/// provider does not support one of them, the client receives something else than it requested.
pub fn non_default_fields<J: MediaJob + Serialize>(job: &J) -> Map<String, Value> {
    let Some(family) = AnyFamily::by_name(job.family()) else {
        return Map::new();
    };
    let Ok(Value::Object(mut fields)) = serde_json::to_value(job) else {
        return Map::new();
    };
    if let Some(Value::Object(extra)) = fields.remove("extra") {
        fields.extend(extra);
    }
    let declared = family.fields(RequestLayout::Standard);
    fields.retain(|name, value| {
        !SEPARATE.contains(&name.as_str())
            && find_field(declared, name).is_some_and(|field| {
                !value.is_null() && default_value(field).as_ref() != Some(value)
            })
    });
    fields
}

/// The value that a job has for a field that the request omits. `None` if it has no value.
fn default_value(field: &Field) -> Option<Value> {
    match field.kind {
        FieldKind::Object(members) => {
            let preset = |member: &Field| Some((member.name.to_owned(), member.default?.value()));
            let presets: Map<_, _> = members.iter().filter_map(preset).collect();
            Some(presets.into())
        }
        _ => field.default.map(|default| default.value()),
    }
}

/// Fields that have methods of their own in [`MediaJob`].
const SEPARATE: &[&str] = &["model", "prompt", "n", "seconds", "size", "images"];

/// The declaration of the job field `name`, at the top level or in an object. Some are declared in camel case.
fn find_field<'f>(declared: &'f [Field], name: &str) -> Option<&'f Field> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let wanted = plain(name);
    declared.iter().find_map(|field| match field.kind {
        _ if plain(field.name) == wanted => Some(field),
        FieldKind::Object(members) => find_field(members, name),
        _ => None,
    })
}
