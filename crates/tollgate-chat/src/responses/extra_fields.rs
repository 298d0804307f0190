//! Members of the Responses JSON that the hub has no field for: kept in [`ExtraFields`] when a request is
//! read and written back unchanged.

use serde_json::{Map, Value};

use super::constants::{GENERATED_ID_MARK, NAME};
use crate::hub::ExtraFields;

/// The name under which a member is kept if other formats need not report it as dropped (a leading dot, see [`ExtraFields`]).
pub(super) fn spelling_note(name: &str) -> String {
    format!(".{name}")
}

/// Marks the turn that was read from `instructions`; two leading dots, because it is not a member of the JSON.
pub(super) const NOTE_INSTRUCTIONS: &str = "..instructions";
/// Marks the turn of an `input` that was one string.
pub(super) const NOTE_INPUT: &str = "..input";

/// Writes the members of this format in `extra` into `into`, except ids that the gateway generated.
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

/// Whether `extra` contains the mark `name`.
pub(super) fn has_note(extra: &ExtraFields, name: &str) -> bool {
    extra
        .for_format(NAME)
        .is_some_and(|extra| extra.contains_key(name))
}
