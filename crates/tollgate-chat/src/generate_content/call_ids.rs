//! Generates ids for tool calls without one, and keeps track of the calls that have no result yet.
//!
//! Generated ids are recognized by their form and left out of requests to an upstream of this format, because the upstream never assigned them.

use sha2::{Digest as _, Sha256};
use tollgate_core::id::hex;

use crate::hub::Role;

const PREFIX: &str = "call_tg";
/// Hexadecimal digits after the prefix.
const DIGITS: usize = 24;

/// The id of call number `n` of the content or response that `seed` names. The same input gives the
/// same id, so a conversation that is sent again keeps its ids.
pub(crate) fn generate_id(seed: &str, n: usize) -> String {
    let mut hash = Sha256::new();
    hash.update(seed);
    hash.update([0]);
    hash.update(n.to_le_bytes());
    format!("{PREFIX}{}", hex(&hash.finalize()[..DIGITS / 2]))
}

/// Whether [`generate_id`] generated this id.
pub(crate) fn is_generated(id: &str) -> bool {
    id.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

/// The calls of a conversation, so that results without an id find their call.
#[derive(Debug, Default)]
pub(crate) struct CallIds {
    /// Input for generated ids, distinct for each content or response.
    seed: String,
    contents: usize,
    generated: usize,
    /// Id and name of the calls of the last model turn that have no result yet.
    open_calls: Vec<(String, String)>,
}

impl CallIds {
    /// The calls of the response with that id.
    pub(crate) fn for_response(id: &str) -> Self {
        Self {
            seed: format!("reply {id}"),
            ..Self::default()
        }
    }

    /// A content of `role` begins.
    pub(crate) fn begin_content(&mut self, role: Role) {
        self.contents += 1;
        self.seed = format!("content {}", self.contents);
        self.generated = 0;
        if role == Role::Assistant {
            self.open_calls.clear();
        }
    }

    pub(super) fn next_id(&mut self) -> String {
        self.generated += 1;
        generate_id(&self.seed, self.generated)
    }

    pub(super) fn call_id(&mut self, id: Option<String>, name: &str) -> String {
        let id = id.unwrap_or_else(|| self.next_id());
        self.open_calls.push((id.clone(), name.to_owned()));
        id
    }

    /// The id of the call that a result belongs to: its own id if such a call is open, otherwise
    /// that of the first open call with its name. SDKs that run functions themselves leave ids out,
    /// even if the calls had them.
    pub(super) fn result_id(&mut self, id: Option<String>, name: &str) -> String {
        let by_id = |call: &(String, String)| Some(&call.0) == id.as_ref();
        let takes_any = |call: &(String, String)| id.is_none() || is_generated(&call.0);
        let by_name = |call: &(String, String)| takes_any(call) && call.1 == name;
        let at = self
            .open_calls
            .iter()
            .position(by_id)
            .or_else(|| self.open_calls.iter().position(by_name));
        match at {
            Some(at) => self.open_calls.remove(at).0,
            None => id.unwrap_or_else(|| self.next_id()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_deterministic_distinct_and_recognized() {
        assert_eq!(generate_id("a", 0), generate_id("a", 0));
        assert_ne!(generate_id("a", 0), generate_id("a", 1));
        assert_ne!(generate_id("a", 0), generate_id("b", 0));
        assert!(is_generated(&generate_id("a", 0)) && generate_id("a", 0).len() <= 40);
        assert!(!is_generated("call_1") && !is_generated("call_tgx"));
    }
}
