//! Ids for tool calls that come without one.
//!
//! Minted ids are told by their form and left out when they go back to an upstream of this format, which never gave them.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

const PREFIX: &str = "call_tg";
/// Hexadecimal digits behind the prefix.
const DIGITS: usize = 24;

/// The id of call `n` of what `seed` names: the same for the same, so that histories keep their ids.
pub(super) fn mint(seed: &str, n: usize) -> String {
    let mut hash = Sha256::new();
    hash.update(seed);
    hash.update([0]);
    hash.update(n.to_le_bytes());
    let mut id = PREFIX.to_owned();
    for byte in &hash.finalize()[..DIGITS / 2] {
        // Writing to a String does not fail.
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// Whether an id was made here.
pub(super) fn is_minted(id: &str) -> bool {
    id.strip_prefix(PREFIX).is_some_and(|digits| {
        digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minted_ids_are_stable_distinct_and_known_again() {
        assert_eq!(mint("a", 0), mint("a", 0));
        assert_ne!(mint("a", 0), mint("a", 1));
        assert_ne!(mint("a", 0), mint("b", 0));
        assert!(is_minted(&mint("a", 0)) && mint("a", 0).len() <= 40);
        assert!(!is_minted("call_1") && !is_minted("call_tgx"));
    }
}
