//! [`Clock`], the current time in milliseconds since 1970, with three implementations: the system clock, a clock that absorbs short steps of the
//! system clock, and a clock that tests set.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01T00:00:00Z.
pub type Millis = i64;

/// One second in [`Millis`].
pub const SECOND: Millis = 1_000;
/// One minute in [`Millis`].
pub const MINUTE: Millis = 60 * SECOND;
/// One hour in [`Millis`].
pub const HOUR: Millis = 3_600 * SECOND;
/// One day in [`Millis`].
pub const DAY: Millis = 24 * HOUR;

/// A source of the current time.
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Millis;
}

/// The system clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Differences up to this are drift and are corrected at once; larger ones are steps.
const MAX_DRIFT: Millis = 500;
/// How long a step of the reference must last before the clock follows it.
const STEP_CONFIRMED_AFTER: Duration = Duration::from_secs(60);

/// A clock that advances with the time elapsed since its start, regardless of steps of the system clock. [`SteadyClock::observe`] compares it with a
/// reference clock: it follows drift at once, and a step only if the step lasts a minute.
#[derive(Debug)]
pub struct SteadyClock {
    started: Instant,
    /// The time that the clock showed at its start; corrections by [`SteadyClock::observe`] change it.
    origin: AtomicI64,
    step: Mutex<Option<Step>>,
}

/// A step of the reference clock that is not confirmed yet: the clock does not follow it.
#[derive(Debug, Clone, Copy)]
struct Step {
    by: Millis,
    /// When the step was first observed, as the time elapsed since the clock's start.
    seen_at: Duration,
}

impl SteadyClock {
    /// A clock that shows `now`.
    pub fn new(now: Millis) -> Self {
        Self {
            started: Instant::now(),
            origin: AtomicI64::new(now),
            step: Mutex::new(None),
        }
    }

    /// Compares the clock with a reference clock that shows `reference`. Returns the step if the clock followed one, negative if the time was set
    /// back; otherwise `None`.
    pub fn observe(&self, reference: Millis) -> Option<Millis> {
        self.observe_at(reference, self.started.elapsed())
    }

    fn observe_at(&self, reference: Millis, elapsed: Duration) -> Option<Millis> {
        let by = reference - self.at(elapsed);
        let mut step = self.step.lock().unwrap_or_else(PoisonError::into_inner);
        if by.abs() <= MAX_DRIFT {
            *step = None;
            self.origin.fetch_add(by, Ordering::SeqCst);
            return None;
        }
        match *step {
            Some(seen) if (by - seen.by).abs() <= MAX_DRIFT => {
                if elapsed.saturating_sub(seen.seen_at) < STEP_CONFIRMED_AFTER {
                    return None;
                }
                *step = None;
                self.origin.fetch_add(by, Ordering::SeqCst);
                Some(by)
            }
            _ => {
                *step = Some(Step {
                    by,
                    seen_at: elapsed,
                });
                None
            }
        }
    }

    fn at(&self, elapsed: Duration) -> Millis {
        let elapsed = Millis::try_from(elapsed.as_millis()).unwrap_or(Millis::MAX);
        self.origin.load(Ordering::SeqCst).saturating_add(elapsed)
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Millis {
        self.at(self.started.elapsed())
    }
}

/// A clock that only moves when [`advance`](Self::advance) is called, for tests of expiry and leases.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Millis) -> Self {
        Self(AtomicI64::new(now))
    }

    /// Moves the clock forward by `by` milliseconds.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_clock_follows_drift_at_once_and_steps_only_if_they_last() {
        const T: Millis = 1_000_000;
        let clock = SteadyClock::new(T);
        // Per row: seconds since the start, the time of the reference clock, the step that the clock follows, the time that the clock then shows.
        let observations = [
            (5, T + 5_300, None, T + 5_300),
            (10, T + 10_200, None, T + 10_200),
            // The reference steps an hour ahead, and back within a minute.
            (15, T + HOUR + 15_200, None, T + 15_200),
            (70, T + HOUR + 70_200, None, T + 70_200),
            (74, T + 74_200, None, T + 74_200),
            // The reference steps an hour back and stays there; then it steps two hours ahead.
            (80, T - HOUR + 80_200, None, T + 80_200),
            (135, T - HOUR + 135_300, None, T + 135_200),
            (140, T - HOUR + 140_200, Some(-HOUR), T - HOUR + 140_200),
            (145, T + 145_200, None, T - HOUR + 145_200),
            (150, T + HOUR + 150_200, None, T - HOUR + 150_200),
            (206, T + HOUR + 206_200, None, T - HOUR + 206_200),
            (210, T + HOUR + 210_200, Some(2 * HOUR), T + HOUR + 210_200),
        ];
        for (seconds, reference, step, shows) in observations {
            let elapsed = Duration::from_secs(seconds);
            assert_eq!(clock.observe_at(reference, elapsed), step, "{seconds}");
            assert_eq!(clock.at(elapsed), shows, "{seconds}");
        }
    }
}
