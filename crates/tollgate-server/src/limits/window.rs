//! How much was counted in the last minute.

use std::collections::VecDeque;

use tollgate_core::Millis;
use tollgate_core::clock::SECOND;

/// The sliding window.
pub(super) const MINUTE: Millis = 60 * SECOND;
/// So many moments are remembered one by one.
const EXACT: usize = 1_024;
/// Beyond them, what comes within so long of each other shares a moment, the last of it: memory stays bounded, and
/// nothing leaves the window early.
const GRAIN: Millis = 50;

/// Amounts with the moments at which they came, oldest first.
#[derive(Debug, Default)]
pub(super) struct Window {
    moments: VecDeque<Moment>,
    sum: u64,
}

#[derive(Debug)]
struct Moment {
    begun: Millis,
    at: Millis,
    amount: u64,
}

impl Window {
    /// Counts `amount`.
    pub(super) fn add(&mut self, amount: u64, now: Millis) {
        if amount == 0 {
            return;
        }
        self.forget(now);
        self.sum = self.sum.saturating_add(amount);
        let is_full = self.moments.len() >= EXACT;
        match self.moments.back_mut() {
            Some(last) if is_full && now < last.begun + GRAIN => {
                last.at = last.at.max(now);
                last.amount = last.amount.saturating_add(amount);
            }
            _ => self.moments.push_back(Moment {
                begun: now,
                at: now,
                amount,
            }),
        }
    }

    /// What was counted in the minute that ends now.
    pub(super) fn sum(&mut self, now: Millis) -> u64 {
        self.forget(now);
        self.sum
    }

    /// How long it takes until no more than `allowed` is left in the window; nothing counted meanwhile.
    pub(super) fn wait(&self, allowed: u64, now: Millis) -> Millis {
        let mut left = self.sum;
        for moment in &self.moments {
            if left <= allowed {
                break;
            }
            left = left.saturating_sub(moment.amount);
            if left <= allowed {
                return (moment.at + MINUTE - now).clamp(1, MINUTE);
            }
        }
        0
    }

    fn forget(&mut self, now: Millis) {
        while let Some(oldest) = self.moments.front()
            && oldest.at <= now - MINUTE
        {
            self.sum = self.sum.saturating_sub(oldest.amount);
            self.moments.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_leave_after_a_minute_to_the_millisecond() {
        let mut window = Window::default();
        window.add(5, 0);
        window.add(7, 10_000);
        window.add(0, 20_000);
        assert_eq!((window.sum(59_999), window.sum(60_000)), (12, 7));
        assert_eq!((window.sum(69_999), window.sum(70_000)), (7, 0));
        assert!(window.moments.is_empty());
    }

    #[test]
    fn it_says_how_long_until_there_is_room() {
        let mut window = Window::default();
        for (amount, at) in [(5, 0), (7, 10_000), (1, 10_500)] {
            window.add(amount, at);
        }
        for (allowed, wait) in [(13, 0), (12, 40_000), (8, 40_000), (7, 50_000), (0, 50_500)] {
            assert_eq!(window.wait(allowed, 20_000), wait, "{allowed}");
        }
    }

    #[test]
    fn many_moments_take_little_memory_and_leave_never_early() {
        let mut window = Window::default();
        for at in 0..240_000 {
            window.add(1, at);
            let sum = window.sum(at);
            let exact = (at + 1).min(MINUTE).unsigned_abs();
            assert!(
                (exact..=exact + GRAIN.unsigned_abs()).contains(&sum),
                "{at}: {sum}"
            );
            assert!(window.moments.len() <= 2 * EXACT + 200);
        }
        assert_eq!(window.sum(240_000 + MINUTE), 0);
    }

    #[test]
    fn a_clock_that_goes_back_breaks_nothing() {
        let mut window = Window::default();
        window.add(3, 100_000);
        window.add(4, 50_000);
        assert_eq!(window.sum(50_000), 7);
        assert_eq!(window.wait(0, 50_000), MINUTE);
        assert_eq!(window.sum(160_000), 0);
    }
}
