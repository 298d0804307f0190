//! A sliding window of one minute: sums what was counted in it.

use std::collections::VecDeque;

use tollgate_core::Millis;
use tollgate_core::clock::SECOND;

/// The length of the window.
pub(super) const MINUTE: Millis = 60 * SECOND;
/// Entries that are stored individually.
const MAX_EXACT_ENTRIES: usize = 1_024;
/// If there are more, amounts within this time of each other share one entry with the latest time: memory stays bounded, and no amount leaves the
/// window early.
const MERGE_WITHIN: Millis = 50;

/// Amounts with their times, oldest first.
#[derive(Debug, Default)]
pub(super) struct SlidingWindow {
    entries: VecDeque<Entry>,
    sum: u64,
}

#[derive(Debug)]
struct Entry {
    first_at: Millis,
    last_at: Millis,
    amount: u64,
}

impl SlidingWindow {
    /// Counts `amount`.
    pub(super) fn add(&mut self, amount: u64, now: Millis) {
        if amount == 0 {
            return;
        }
        self.remove_old(now);
        self.sum = self.sum.saturating_add(amount);
        let is_full = self.entries.len() >= MAX_EXACT_ENTRIES;
        match self.entries.back_mut() {
            Some(last) if is_full && now < last.first_at + MERGE_WITHIN => {
                last.last_at = last.last_at.max(now);
                last.amount = last.amount.saturating_add(amount);
            }
            _ => self.entries.push_back(Entry {
                first_at: now,
                last_at: now,
                amount,
            }),
        }
    }

    /// Puts back amounts that were taken out earlier, with their times.
    pub(super) fn restore(&mut self, mut earlier: Self) {
        earlier.sum = earlier.sum.saturating_add(self.sum);
        earlier.entries.append(&mut self.entries);
        *self = earlier;
    }

    /// The sum of the minute that ends now.
    pub(super) fn sum(&mut self, now: Millis) -> u64 {
        self.remove_old(now);
        self.sum
    }

    /// How long it takes until the sum is at most `allowed`, if nothing else is counted. 0 if it is already.
    pub(super) fn time_until_at_most(&self, allowed: u64, now: Millis) -> Millis {
        let mut left = self.sum;
        for entry in &self.entries {
            if left <= allowed {
                break;
            }
            left = left.saturating_sub(entry.amount);
            if left <= allowed {
                return (entry.last_at + MINUTE - now).clamp(1, MINUTE);
            }
        }
        0
    }

    fn remove_old(&mut self, now: Millis) {
        while let Some(oldest) = self.entries.front()
            && oldest.last_at <= now - MINUTE
        {
            self.sum = self.sum.saturating_sub(oldest.amount);
            self.entries.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_leave_after_a_minute_to_the_millisecond() {
        let mut window = SlidingWindow::default();
        window.add(5, 0);
        window.add(7, 10_000);
        window.add(0, 20_000);
        assert_eq!((window.sum(59_999), window.sum(60_000)), (12, 7));
        assert_eq!((window.sum(69_999), window.sum(70_000)), (7, 0));
        assert!(window.entries.is_empty());
    }

    #[test]
    fn restored_amounts_leave_at_their_own_times() {
        let mut window = SlidingWindow::default();
        window.add(5, 0);
        for now in [10_000, 30_000, 59_000] {
            let taken = std::mem::take(&mut window);
            window.add(1, now);
            window.restore(taken);
        }
        assert_eq!((window.sum(59_999), window.sum(60_000)), (8, 3));
        assert_eq!(window.sum(119_000), 0);
    }

    #[test]
    fn the_wait_lasts_until_enough_amounts_have_left() {
        let mut window = SlidingWindow::default();
        for (amount, at) in [(5, 0), (7, 10_000), (1, 10_500)] {
            window.add(amount, at);
        }
        for (allowed, wait) in [(13, 0), (12, 40_000), (8, 40_000), (7, 50_000), (0, 50_500)] {
            assert_eq!(
                window.time_until_at_most(allowed, 20_000),
                wait,
                "{allowed}"
            );
        }
    }

    #[test]
    fn many_amounts_take_bounded_memory_and_never_leave_early() {
        let mut window = SlidingWindow::default();
        for at in 0..240_000 {
            window.add(1, at);
            let sum = window.sum(at);
            let exact = (at + 1).min(MINUTE).unsigned_abs();
            assert!(
                (exact..=exact + MERGE_WITHIN.unsigned_abs()).contains(&sum),
                "{at}: {sum}"
            );
            assert!(window.entries.len() <= 2 * MAX_EXACT_ENTRIES + 200);
        }
        assert_eq!(window.sum(240_000 + MINUTE), 0);
    }

    #[test]
    fn a_clock_that_goes_back_breaks_nothing() {
        let mut window = SlidingWindow::default();
        window.add(3, 100_000);
        window.add(4, 50_000);
        assert_eq!(window.sum(50_000), 7);
        assert_eq!(window.time_until_at_most(0, 50_000), MINUTE);
        assert_eq!(window.sum(160_000), 0);
    }
}
