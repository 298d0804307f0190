//! A Bloom filter over the request ids of a block, as text: two characters, which are twelve bits, for each id. It finds every id that was added, and
//! about one in 300 ids that were not.

use super::layout::BLOCK_ROWS;
use crate::stable_hash::hash_text;

/// Bits in a character, from [`FIRST_CHARACTER`] on.
const BITS: usize = 6;
const FIRST_CHARACTER: u8 = b'0';
const CHARACTERS_PER_ID: usize = 2;
/// Bits that are set for an id.
const PROBES: u64 = 8;

/// The filter over `ids`; empty if there are none.
pub(super) fn write<'a>(ids: impl Iterator<Item = &'a str> + Clone) -> String {
    let mut cells = vec![0_u8; ids.clone().count() * CHARACTERS_PER_ID];
    let bits = cells.len() * BITS;
    for id in ids {
        for at in positions(id, bits) {
            cells[at / BITS] |= 1 << (at % BITS);
        }
    }
    let characters = cells
        .into_iter()
        .map(|cell| char::from(FIRST_CHARACTER + cell));
    characters.collect()
}

/// Whether the filter may have been written with this id.
pub(super) fn may_contain(filter: &str, id: &str) -> bool {
    let cells = filter.as_bytes();
    let is_set = |at: usize| {
        let cell = cells[at / BITS].wrapping_sub(FIRST_CHARACTER);
        cell & (1 << (at % BITS)) != 0
    };
    !cells.is_empty() && positions(id, cells.len() * BITS).all(is_set)
}

/// The length of the filter over a complete block whose rows all have ids.
pub(super) const FULL_LENGTH: usize = BLOCK_ROWS * CHARACTERS_PER_ID;

/// The positions of an id's bits in a filter of [`FULL_LENGTH`]: the characters, from 0, and in each the bit, whose value is that of the character
/// minus `'0'`.
pub(super) fn bit_positions(id: &str) -> Vec<(i64, i64)> {
    let bit_positions = positions(id, FULL_LENGTH * BITS);
    let bit_positions = bit_positions.map(|at| ((at / BITS) as i64, 1 << (at % BITS)));
    bit_positions.collect()
}

/// The positions that an id sets, out of `bits`.
fn positions(id: &str, bits: usize) -> impl Iterator<Item = usize> {
    let hash = hash_text(id);
    let (first, step) = (hash & 0xffff_ffff, (hash >> 32) | 1);
    let bits = bits.max(1) as u64;
    (0..PROBES).map(move |probe| {
        let at = first.wrapping_add(probe.wrapping_mul(step)) % bits;
        usize::try_from(at).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_ids_are_found_with_few_false_positives() {
        let ids: Vec<_> = (0..1024).map(|n| format!("req_{n}")).collect();
        let filter = write(ids.iter().map(String::as_str));
        assert_eq!(filter.len(), FULL_LENGTH);
        let is_set =
            |(at, bit): (i64, i64)| (i64::from(filter.as_bytes()[at as usize]) - 48) & bit != 0;
        assert!(bit_positions("req_7").into_iter().all(is_set));
        assert!(!bit_positions("other_7").into_iter().all(is_set));
        assert!(ids.iter().all(|id| may_contain(&filter, id)));
        let others = (0..10_000).filter(|n| may_contain(&filter, &format!("other_{n}")));
        assert!(others.count() < 100);
    }

    #[test]
    fn a_filter_of_no_ids_contains_nothing() {
        assert_eq!(write(std::iter::empty()), "");
        assert!(!may_contain("", "req_1"));
    }

    #[test]
    fn stored_filters_stay_readable() {
        assert_eq!(write(["req_a", "req_b"].into_iter()), STORED);
        assert!(may_contain(STORED, "req_a") && may_contain(STORED, "req_b"));
    }

    const STORED: &str = "iI=[";
}
