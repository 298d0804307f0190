//! Random choices that can be made again: a small generator with a seed (SplitMix64).

use std::time::{SystemTime, UNIX_EPOCH};

/// A sequence of choices.
pub(crate) struct Dice(u64);

impl Dice {
    /// The same seed gives the same choices.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that no run had before.
    pub(crate) fn seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.map_or(0, |since| {
            since.as_secs() * 1_000_003 + u64::from(since.subsec_nanos())
        })
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A place below `limit`.
    pub(crate) fn at(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap_or(0)
    }

    /// True once in `times` times.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let at = self.below(items.len() as u64);
        &items[usize::try_from(at).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_choices() {
        let choices = |seed| {
            let mut dice = Dice::new(seed);
            (0..8).map(|_| dice.below(100)).collect::<Vec<_>>()
        };
        assert_eq!(choices(1), choices(1));
        assert_ne!(choices(1), choices(2));
        assert!(choices(3).iter().all(|n| *n < 100));
    }
}
