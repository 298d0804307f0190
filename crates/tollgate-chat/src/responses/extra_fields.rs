//! Members of the Responses JSON that the hub has no field for: kept in [`ExtraFields`] when a request is
//! read and written back unchanged.

use serde_json::{Map, Value};

use super::constants::{GENERATED_ID_MARK, NAME};
use crate::hub::ExtraFields;

/// The name under which a member is kept that other formats need not report as dropped (a leading
/// dot, see [`ExtraFields`]).
pub(super) fn spelling_note(name: &str) -> String {
    format!(".{name}")
}

/// Marks the turn that came as `instructions`; two leading dots: it is not a member of the JSON.
pub(super) const NOTE_INSTRUCTIONS: &str = "..instructions";
/// Marks the turn of an `input` that was one string.
pub(super) const NOTE_INPUT: &str = "..input";

/// Writes the members that `own` holds for this format into `into`; ids that the gateway generated
/// are left out.
pub(super) fn write_extra_fields(extra: &ExtraFields, into: &mut Map<String, Value>) {
    for (name, value) in extra.for_format(NAME).into_iter().flatten() {
        if name.starts_with("..") || is_generated_id(name, value) {
            continue;
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        into.insert(name.to_owned(), value.clone());
    }
}

fn is_generated_id(name: &str, value: &Value) -> bool {
    name == ".id"
        && value
            .as_str()
            .is_some_and(|id| id.contains(GENERATED_ID_MARK))
}

/// Whether `own` holds the mark `name`.
pub(super) fn has_note(extra: &ExtraFields, name: &str) -> bool {
    extra
        .for_format(NAME)
        .is_some_and(|extra| extra.contains_key(name))
}
