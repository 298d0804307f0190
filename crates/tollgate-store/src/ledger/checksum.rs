//! A checksum over a row of `charges` or `chats` (column `seal`).
//!
//! Most cells are checked by sums over other cells. If a price is 0, or so small that the cost is rounded to 0, there are cells that no sum depends
//! on; the checksum covers those. It protects against accidents, not against somebody who can recompute it.

use std::hash::Hasher as _;

use fnv::FnvHasher;

/// The checksum of a row, by 64-bit FNV-1a: id, user and key, then its numbers in the order of the table. An open row has fewer
/// numbers than a closed one.
pub(crate) fn row_checksum(ids: [&str; 3], numbers: &[i64]) -> i64 {
    let mut hasher = FnvHasher::default();
    for id in ids {
        hasher.write(id.as_bytes());
        // Separates the ids: no UTF-8 text contains 0xff.
        hasher.write(&[u8::MAX]);
    }
    for number in numbers {
        hasher.write(&number.to_le_bytes());
    }
    hasher.finish().cast_signed()
}

/// The numbers that a refund adds to a row's checksum: none as long as nothing was refunded, so that older rows keep their checksum.
pub(crate) fn refund_checksum_numbers(refunded: i64) -> impl Iterator<Item = i64> {
    [0, refunded].into_iter().filter(move |_| refunded != 0)
}

#[cfg(test)]
mod tests {
    use super::row_checksum;

    #[test]
    fn every_cell_changes_the_checksum() {
        let ids = ["task", "user", "key"];
        let original = row_checksum(ids, &[1, 2, 3, 4]);
        assert_eq!(original, row_checksum(ids, &[1, 2, 3, 4]));
        for other in [[2, 2, 3, 4], [1, 1, 3, 4], [1, 2, 4, 4], [1, 2, 3, 3]] {
            assert_ne!(original, row_checksum(ids, &other));
        }
        assert_ne!(original, row_checksum(ids, &[1, 2, 3, 4, 0]));
        assert_ne!(
            original,
            row_checksum(["tas", "kuser", "key"], &[1, 2, 3, 4])
        );
    }
}
