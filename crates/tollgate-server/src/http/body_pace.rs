//! The minimum rate at which a request body must be received.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

/// The longest time without a byte.
const STALL_TIMEOUT: Duration = Duration::from_secs(30);
/// The time before the rate is checked.
const GRACE: Duration = Duration::from_secs(30);
/// The average rate in bytes per second that a body must reach after that.
const MIN_RATE: u32 = 16 * 1024;

/// The rate of one body.
pub(super) struct BodyPace {
    started_at: Instant,
    received: usize,
}

/// Why a body is not read further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooSlow {
    #[error("the body did not come: nothing for 30 seconds")]
    Stalled,
    #[error(
        "the body came too slowly: after the first 30 seconds it must reach {MIN_RATE} bytes per second"
    )]
    Slow,
}

impl BodyPace {
    pub(super) fn start() -> Self {
        Self {
            started_at: Instant::now(),
            received: 0,
        }
    }

    /// Waits for the next piece as long as the limits allow.
    pub(super) async fn wait<T>(&self, next: impl Future<Output = T>) -> Result<T, TooSlow> {
        let stall = Instant::now() + STALL_TIMEOUT;
        let received = u32::try_from(self.received).unwrap_or(u32::MAX);
        let earned = Duration::from_secs(1) * received / MIN_RATE;
        let slow = self.started_at + GRACE + earned;
        let outcome = timeout_at(stall.min(slow), next).await;
        outcome.map_err(|_| match slow < stall && self.received > 0 {
            true => TooSlow::Slow,
            false => TooSlow::Stalled,
        })
    }

    /// Counts bytes that were received.
    pub(super) fn add(&mut self, bytes: usize) {
        self.received += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a body of `pieces` pieces of `bytes` bytes, one every `pause` seconds, is read, in seconds, and why reading ended.
    async fn read_paced(pieces: usize, bytes: usize, pause: u64) -> (u64, Option<TooSlow>) {
        let mut pace = BodyPace::start();
        for _ in 0..pieces {
            let next = tokio::time::sleep(Duration::from_secs(pause));
            if let Err(why) = pace.wait(next).await {
                return (pace.started_at.elapsed().as_secs(), Some(why));
            }
            pace.add(bytes);
        }
        (pace.started_at.elapsed().as_secs(), None)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_must_keep_a_minimum_rate_after_thirty_seconds() {
        let rate = MIN_RATE as usize;
        for (pieces, bytes, pause, expected) in [
            (1, 1, 29, (29, None)),
            (1, 1, 31, (30, Some(TooSlow::Stalled))),
            (100, 1, 10, (30, Some(TooSlow::Slow))),
            (100, rate, 1, (100, None)),
            (100, rate / 2, 1, (59, Some(TooSlow::Slow))),
            (20, 20 * rate, 20, (400, None)),
        ] {
            let got = read_paced(pieces, bytes, pause).await;
            assert_eq!(got, expected, "{pieces} pieces of {bytes} bytes");
        }
    }
}
