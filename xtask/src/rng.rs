//! Random choices that can be repeated with the same seed.

use std::time::{SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};

/// A seeded generator: the same seed makes the same choices.
pub(crate) struct Rng(StdRng);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A new seed: the time in nanoseconds.
    pub(crate) fn fresh_seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| {
            since.as_secs() * 1_000_003 + u64::from(since.subsec_nanos())
        })
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.random()
    }

    /// A number from 0 to `limit - 1`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.random_range(0..limit.max(1))
    }

    /// True with a probability of 1 in `times`.
    pub(crate) fn one_in(&mut self, times: u32) -> bool {
        self.0.random_ratio(1, times)
    }

    /// One of `items`, which must not be empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        items.choose(&mut self.0).unwrap_or(&items[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let choices = |seed| {
            let mut rng = Rng::new(seed);
            (0..8).map(|_| rng.below(100)).collect::<Vec<_>>()
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
        assert!(choices(3).iter().all(|n| *n < 100));
    }
}
