//! The last calls of a channel: how long they took and how many failed. Counting a call takes no lock.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

/// How many calls are kept.
const KEPT: usize = 64;
/// The bit that marks a failed call.
const FAILED: u32 = 1 << 31;

/// A ring buffer of calls. Each entry is the call's milliseconds plus one, with [`FAILED`] if it failed; 0 is an empty entry.
pub(super) struct RecentCalls {
    next: AtomicUsize,
    calls: [AtomicU32; KEPT],
}

impl Default for RecentCalls {
    fn default() -> Self {
        Self {
            next: AtomicUsize::new(0),
            calls: [const { AtomicU32::new(0) }; KEPT],
        }
    }
}

impl RecentCalls {
    /// Counts a call.
    pub(super) fn add(&self, took: Duration, has_failed: bool) {
        let ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
        let ms = ms.min(FAILED - 2) + 1;
        let at = self.next.fetch_add(1, Ordering::Relaxed) % KEPT;
        let failed = if has_failed { FAILED } else { 0 };
        self.calls[at].store(ms | failed, Ordering::Relaxed);
    }

    /// The median duration of the calls that did not fail, in milliseconds. `None` if there are none.
    pub(super) fn p50_ms(&self) -> Option<u32> {
        let calls = self.kept().into_iter();
        let mut succeeded: Vec<u32> = calls.filter(|call| call & FAILED == 0).collect();
        succeeded.sort_unstable();
        let middle = succeeded.len().checked_sub(1)? / 2;
        succeeded.get(middle).map(|call| call - 1)
    }

    /// The share of the calls that failed, 0 to 1. `None` if there are none.
    pub(super) fn error_rate(&self) -> Option<f64> {
        let calls = self.kept();
        let failed = calls.iter().filter(|call| **call & FAILED != 0).count();
        (!calls.is_empty()).then(|| failed as f64 / calls.len() as f64)
    }

    fn kept(&self) -> Vec<u32> {
        let calls = self.calls.iter().map(|call| call.load(Ordering::Relaxed));
        calls.filter(|call| *call != 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_calls_count() {
        let recent = RecentCalls::default();
        assert_eq!((recent.p50_ms(), recent.error_rate()), (None, None));
        for ms in [30, 0, 10] {
            recent.add(Duration::from_millis(ms), false);
        }
        recent.add(Duration::from_secs(60), true);
        assert_eq!(
            (recent.p50_ms(), recent.error_rate()),
            (Some(10), Some(0.25))
        );
        for _ in 0..KEPT {
            recent.add(Duration::MAX, true);
        }
        assert_eq!((recent.p50_ms(), recent.error_rate()), (None, Some(1.0)));
    }
}
