//! Names of the format: its own name, words of its objects, ids that this gateway mints, and small JSON helpers.

use serde_json::{Map, Value};

use crate::hub::Own;

/// The format's name in [`Own`], [`crate::hub::Request::client`] and `Kind::Foreign`.
pub(super) const NAME: &str = "responses";

/// Marks an item id as minted here: `msg_tg1_SEED_0`. No upstream knows such an item, so requests never carry the id on.
pub(super) const MINTED: &str = "_tg1_";

/// What every mark of ours in a request holds, ids and wrapped signatures alike: bytes without it may go to an upstream as they are.
pub(super) const OUR_MARK: &[u8] = b"tg1";

/// Media types that `input_image` takes (SPEC.md).
pub(super) const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The largest picture (SPEC.md › Limits), in bytes.
pub(super) const IMAGE_MAX: u64 = 20 * 1024 * 1024;

/// `include` entries that hold for every reply of ours, or that the hub has a field for.
pub(super) const INCLUDE_REASONING: &str = "reasoning.encrypted_content";
/// See [`INCLUDE_REASONING`].
pub(super) const INCLUDE_LOGPROBS: &str = "message.output_text.logprobs";

/// What a JSON value is, for error messages.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A note of form: a member of the wire that nobody misses in another format (see [`Own`]).
pub(super) fn note(name: &str) -> String {
    format!(".{name}")
}

/// A note that is no member of the wire at all.
pub(super) const NOTE_INSTRUCTIONS: &str = "..instructions";
/// The whole input was one string.
pub(super) const NOTE_INPUT: &str = "..input";

/// Puts the members that `own` kept for this format back, notes of form included.
pub(super) fn put_back(own: &Own, into: &mut Map<String, Value>) {
    for (name, value) in own.for_format(NAME).into_iter().flatten() {
        if name.starts_with("..") || is_minted_id(name, value) {
            continue;
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        into.insert(name.to_owned(), value.clone());
    }
}

fn is_minted_id(name: &str, value: &Value) -> bool {
    name == ".id" && value.as_str().is_some_and(|id| id.contains(MINTED))
}

/// Whether `own` holds that note.
pub(super) fn has_note(own: &Own, name: &str) -> bool {
    own.for_format(NAME)
        .is_some_and(|own| own.contains_key(name))
}
