//! Random numbers that depend only on the request, and are the same on every machine and in every version.

use sha2::{Digest, Sha256};

/// SplitMix64 (<https://prng.di.unimi.it/splitmix64.c>). The generators of `rand` may change between versions. `rand_xoshiro` has this one, with the
/// same numbers, but would replace only the five lines of `next`.
#[derive(Debug, Clone)]
pub(super) struct Rng(u64);

impl Rng {
    /// A generator seeded with a hash of `parts`.
    pub(super) fn from_parts(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            // With lengths, ("ab", "c") and ("a", "bc") hash differently.
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part.as_bytes());
        }
        let digest = hash.finalize();
        let mut seed = [0; 8];
        seed.copy_from_slice(&digest[..8]);
        Self(u64::from_le_bytes(seed))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` (included) to `high` (not included).
    pub(super) fn between(&mut self, low: f32, high: f32) -> f32 {
        // An f32 represents 24 bits exactly.
        let unit = (self.next() >> 40) as f32 / (1u64 << 24) as f32;
        low + (high - low) * unit
    }

    /// A whole number from 0 to `count` - 1; `count` must not be 0.
    pub(super) fn below(&mut self, count: usize) -> usize {
        (self.next() % count as u64) as usize
    }

    /// True with probability `share`, 0 to 1.
    pub(super) fn chance(&mut self, share: f32) -> bool {
        self.between(0.0, 1.0) < share
    }
}
