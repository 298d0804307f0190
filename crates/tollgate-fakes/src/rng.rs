//! Pseudo-random numbers that depend only on the seed.

use std::hash::Hasher as _;

use fnv::FnvHasher;

/// A SplitMix64 generator. The generators of `rand` may change between versions, but a seed must always split streams in the same way. `rand_xoshiro`
/// has this one, but does not export its last step, [`mix`], which is also used alone.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number from 0 to `end` - 1; 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        (self.next() % end) as usize
    }
}

/// Mixes the bits of a number.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash of a text that is the same in every run (FNV-1a, mixed).
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = FnvHasher::default();
    hasher.write(text.as_bytes());
    mix(hasher.finish())
}
