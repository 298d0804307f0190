//! A checksum over a charge's row. Most cells of the books prove each other, but a price of nothing, or one that
//! rounding swallows, leaves cells that no sum depends on; the seal covers those. It guards against accidents and
//! careless hands, not against somebody who can compute it anew.

/// FNV-1a's two numbers for 64 bits.
const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// The seal of a charge: its id, user and key, then its numbers in the order of the table, up to `held` while it
/// is open and up to `released` once it is closed.
pub(crate) fn seal(words: [&str; 3], numbers: &[i64]) -> i64 {
    let words = words.iter().flat_map(|word| word.bytes().chain([u8::MAX])); // which no UTF-8 text holds
    let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
    words
        .chain(numbers)
        .fold(BASIS, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(PRIME)
        })
        .cast_signed()
}

#[cfg(test)]
mod tests {
    use super::seal;

    #[test]
    fn every_cell_counts() {
        let words = ["task", "user", "key"];
        let sealed = seal(words, &[1, 2, 3, 4]);
        assert_eq!(sealed, seal(words, &[1, 2, 3, 4]));
        for other in [[2, 2, 3, 4], [1, 1, 3, 4], [1, 2, 4, 4], [1, 2, 3, 3]] {
            assert_ne!(sealed, seal(words, &other));
        }
        assert_ne!(sealed, seal(words, &[1, 2, 3, 4, 0]));
        assert_ne!(sealed, seal(["tas", "kuser", "key"], &[1, 2, 3, 4]));
    }
}
