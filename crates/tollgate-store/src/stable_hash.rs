//! Hashes that are the same in all versions of this program: some are stored, and nodes of different versions compare them.

use std::hash::Hasher as _;

use fnv::FnvHasher;

/// The hash of a text: FNV-1a with mixed bits.
pub(crate) fn hash_text(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    mix_bits(hasher.finish())
}

/// Distributes the bits of a number, as the last step of `SplitMix64` (<https://prng.di.unimi.it/splitmix64.c>). It is not taken from a crate of random
/// generators, because stored filters and shards depend on it, so it must never change.
pub(crate) fn mix_bits(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_never_change() {
        assert_eq!(mix_bits(0x9e37_79b9_7f4a_7c15), 0xe220_a839_7b1d_cdaf);
        assert_eq!(hash_text("user_1"), 0xe49e_1dd6_e92e_836f);
    }
}
