//! Ids of messages and tool calls.

use sha2::{Digest as _, Sha256};
use tollgate_core::id::hex;

use super::constants::is_name_character;
use crate::hub::sanitize_id;

/// Maximum length of a tool call's id; the ids of all vendors are shorter.
const MAX_ID_LENGTH: usize = 128;

/// The upstream's id if it is in this format's form, else a generated one.
pub(super) fn message_id(upstream: &str, seed: &str) -> String {
    match upstream.starts_with("msg_") {
        true => upstream.to_owned(),
        false => format!("msg_{seed}"),
    }
}

/// The id with only characters that the API accepts. The same id always gives the same result.
pub(in crate::messages) fn sanitize_call_id(id: &str) -> String {
    match id {
        "" => sanitize_id("?", MAX_ID_LENGTH, is_name_character).into_owned(),
        id => sanitize_id(id, MAX_ID_LENGTH, is_name_character).into_owned(),
    }
}

/// A call's id for a client. It contains only characters that the API accepts when the client sends it back.
pub(super) fn client_call_id(id: &str, index: usize) -> String {
    match id {
        "" => format!("toolu_{index}"),
        id => sanitize_call_id(id),
    }
}

/// An id for a tool call without one: always the same for the same call of the same response.
pub(super) fn generate_call_id(message: &str, index: u64) -> String {
    let digest = Sha256::digest(format!("{message}/{index}"));
    format!("toolu_{}", hex(&digest[..12]))
}
