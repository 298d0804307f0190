//! A checksum over a row of `charges` or `chats` (column `seal`).
//!
//! Most cells are checked by sums over other cells. If a price is 0, or so small that the cost is rounded to 0, there are cells that no sum depends
//! on; the checksum covers those. It protects against accidents, not against somebody who can recompute it.

/// Offset basis and prime of 64-bit FNV-1a.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The checksum of a row: id, user and key, then its numbers in the order of the table. An open row has fewer numbers than a
/// closed one.
pub(crate) fn row_checksum(ids: [&str; 3], numbers: &[i64]) -> i64 {
    // 0xff separates the ids: no UTF-8 text contains it.
    let ids = ids.iter().flat_map(|id| id.bytes().chain([u8::MAX]));
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    ids.chain(numbers)
        .fold(BASIS, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(PRIME)
        })
        .cast_signed()
}

/// The numbers that a refund adds to a row's checksum: none as long as nothing was refunded, so that older rows keep their checksum.
pub(crate) fn sealed_refund(refunded: i64) -> impl Iterator<Item = i64> {
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
