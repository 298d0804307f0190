//! Ids that the gateway generates for responses and tool calls without one.

use sha2::{Digest as _, Sha256};
use tollgate_core::id::hex;

use crate::format::RenderOptions;

/// The upstream's id, or a generated one if it is empty.
pub(super) fn response_id(upstream: &str, options: &RenderOptions<'_>) -> String {
    match upstream {
        "" => format!("chatcmpl-{}", options.seed),
        id => id.to_owned(),
    }
}

/// An id for a tool call without one: always the same for the same call of the same response.
pub(super) fn generate_call_id(response: &str, choice: u32, call: u32, name: &str) -> String {
    let digest = Sha256::digest(format!("{response}\n{choice}\n{call}\n{name}"));
    format!("call_{}", hex(&digest[..12]))
}
