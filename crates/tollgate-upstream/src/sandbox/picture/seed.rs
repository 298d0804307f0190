//! Randomness that is the same for the same request, on every machine and in every version.

use sha2::{Digest, Sha256};

/// A stream of numbers from a seed (SplitMix64, whose output is fixed by its definition; the
/// generators of the `rand` crate may change between versions).
#[derive(Debug, Clone)]
pub(super) struct Dice(u64);

impl Dice {
    /// Dice that roll the same for the same `parts`.
    pub(super) fn of(parts: &[&str]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            // Lengths keep ("ab", "c") and ("a", "bc") apart.
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
        // 24 bits are what an f32 holds exactly.
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
