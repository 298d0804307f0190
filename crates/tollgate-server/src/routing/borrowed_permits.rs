//! A node's permits on a channel in Redis, and what the node requests next. Nothing here waits or calls Redis.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::fair_permits::{FairPermits, PermitUse};
use crate::redis::{ChannelPermits, GrantedPermits, PermitRequest, RedisUnavailable};

/// How often a node with more than its share checks whether another node wants its own.
const BORROWED_INTERVAL: Duration = Duration::from_millis(250);
/// How long unneeded permits are kept: between one and two times this.
const KEPT_FOR: Duration = Duration::from_millis(750);
/// How long a node that left permits to others requests no new ones.
pub(super) const YIELD_FOR: Duration = Duration::from_millis(150);
/// How long a call that found no permit counts as waiting for one.
const WANTED_FOR: Duration = Duration::from_secs(1);
/// After Redis had no permit: how long calls make no requests themselves, and how long the channel counts as full.
pub(super) const DENIED_FOR: Duration = Duration::from_millis(20);
const FULL_FOR: Duration = Duration::from_millis(300);
/// Pause after a call to Redis that failed.
pub(super) const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// The permits on a channel that this node has.
#[derive(Default)]
pub(super) struct Borrowing {
    /// `None` without Redis, or if this node is alone.
    pub(super) permits: OnceLock<Arc<ChannelPermits>>,
    state: Mutex<State>,
    /// Locked during a request to Redis, so that calls which need a permit at the same time cause one request.
    pub(super) requesting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(super) struct State {
    /// This node's share of the limit.
    pub(super) share: usize,
    /// The permits that this node keeps if another node wants its own share: 0 if the limit is below the number of nodes.
    pub(super) kept: usize,
    /// The permits in Redis. `None` while the node uses its share, because Redis is unreachable.
    pub(super) granted: Option<GrantedPermits>,
    /// The number of calls in flight at the time of a request to Redis that has no reply yet.
    pub(super) requested_with: Option<usize>,
    /// When Redis last replied, and when a request last got no reply.
    pub(super) replied_at: Option<Instant>,
    pub(super) failed_at: Option<Instant>,
    /// When Redis last had fewer permits than were needed.
    pub(super) denied_at: Option<Instant>,
    /// When a call last found no permit.
    pub(super) wanted_at: Option<Instant>,
    /// When this node last had to leave permits to others.
    pub(super) yielded_at: Option<Instant>,
    /// The maximum number of calls at the same time since `peak_since`, and in the period before.
    pub(super) peaks: [usize; 2],
    pub(super) peak_since: Option<Instant>,
}

impl Borrowing {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// A request for `wanted` permits. Until its reply is applied, no further call begins, unless this node uses its share.
    pub(super) fn request(
        &mut self,
        permits: &FairPermits,
        limit: usize,
        wanted: usize,
    ) -> PermitRequest {
        let in_flight = permits.freeze();
        self.requested_with = Some(in_flight);
        PermitRequest {
            limit,
            in_flight,
            wanted: wanted.min(limit),
            share: self.share,
            kept: self.kept,
        }
    }

    /// Whether unused permits of other nodes may be available. False while Redis is not used.
    pub(super) fn may_borrow(&self, limit: usize) -> bool {
        self.granted.is_some_and(|granted| granted.count < limit)
            && !is_within(self.denied_at, FULL_FOR)
            && !is_within(self.yielded_at, YIELD_FOR)
    }

    /// Handles a request to Redis whose future was dropped: it counts as one without a reply.
    pub(super) fn apply_dropped_request(&mut self) {
        if let (Some(in_flight), Some(granted)) = (self.requested_with.take(), &mut self.granted) {
            granted.count = in_flight;
            self.replied_at = None;
        }
    }

    /// Records the number of calls that are running now.
    pub(super) fn record_peak(&mut self, in_use: usize) {
        if !is_within(self.peak_since, KEPT_FOR) {
            self.peaks = [0, self.peaks[0]];
            self.peak_since = Some(Instant::now());
        }
        self.peaks[0] = self.peaks[0].max(in_use);
    }

    /// How many permits to request now. `None` if no request is needed.
    pub(super) fn due(&self, usage: &PermitUse, limit: usize, lease: Duration) -> Option<usize> {
        if is_within(self.failed_at, FAILED_PAUSE) {
            return None;
        }
        let Some(granted) = self.granted else {
            // Redis is reachable again: this node's permits are counted there from now on.
            return Some(usage.in_use);
        };
        let is_wanted = usage.waiting > 0 || is_within(self.wanted_at, WANTED_FOR);
        let needed = needed(usage, is_wanted).min(limit);
        if needed > granted.count && !is_within(self.yielded_at, YIELD_FOR) {
            return Some(with_slack(needed));
        }
        let used = self.peaks[0].max(self.peaks[1]);
        let kept = match used + usage.waiting {
            0 => 0,
            used => with_slack(used + usage.reserve),
        };
        let is_old = |age: Duration| !is_within(self.replied_at, age);
        let is_needed = granted.count > kept.max(needed)
            || granted.yields
            || (granted.count > self.share && is_old(BORROWED_INTERVAL))
            || is_old(lease / 3);
        is_needed.then(|| granted.count.min(kept.max(needed)))
    }

    /// Applies a reply. Returns how many calls may run and until when; `None` if the node's share applies.
    pub(super) fn apply_reply(
        &mut self,
        request: PermitRequest,
        granted: Result<GrantedPermits, RedisUnavailable>,
    ) -> Option<(usize, Instant)> {
        let now = Instant::now();
        self.requested_with = None;
        let granted = match granted {
            Ok(granted) => granted,
            // Whatever Redis has stored, it is at least the number of calls in flight.
            Err(RedisUnavailable::NoReply) => {
                self.failed_at = Some(now);
                let known = self.granted.as_mut()?;
                known.count = request.in_flight;
                return Some((known.count, known.until));
            }
            Err(RedisUnavailable::NotSent) => {
                self.granted = None;
                return None;
            }
        };
        self.granted = Some(granted);
        self.replied_at = Some(now);
        if granted.count < request.wanted && granted.count <= request.in_flight {
            self.denied_at = Some(now);
        }
        if granted.yields {
            self.yielded_at = Some(now);
            return Some((granted.count.min(self.kept), granted.until));
        }
        Some((granted.count, granted.until))
    }
}

/// The permits for running calls, waiting calls, and the reserve for other users. 0 if no call runs or waits.
pub(super) fn needed(usage: &PermitUse, is_wanted: bool) -> usize {
    let waiting = usage.waiting.max(usize::from(is_wanted));
    match usage.in_use + waiting {
        0 => 0,
        calls => calls + usage.reserve,
    }
}

/// `permits` and a quarter more, at least one more, so that the next calls need no request.
pub(super) fn with_slack(permits: usize) -> usize {
    permits + permits / 4 + 1
}

/// Whether `at` is less than `time` ago. False if `at` is `None`.
pub(super) fn is_within(at: Option<Instant>, time: Duration) -> bool {
    at.is_some_and(|at| at.elapsed() < time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);

    fn usage(in_use: usize, waiting: usize) -> PermitUse {
        PermitUse {
            in_use,
            waiting,
            reserve: 0,
        }
    }

    pub(super) fn request(in_flight: usize, wanted: usize) -> PermitRequest {
        PermitRequest {
            limit: 8,
            in_flight,
            wanted,
            share: 2,
            kept: 2,
        }
    }

    fn granted(count: usize, yields: bool) -> Result<GrantedPermits, RedisUnavailable> {
        Ok(GrantedPermits {
            count,
            yields,
            until: Instant::now() + LEASE,
        })
    }

    fn state() -> State {
        State {
            share: 2,
            kept: 2,
            ..State::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn permits_follow_what_is_needed() {
        let mut state = state();
        let due = |state: &State, in_use, waiting| state.due(&usage(in_use, waiting), 8, LEASE);
        assert_eq!(due(&state, 3, 0), Some(3), "what runs is reported first");
        state.apply_reply(request(3, 3), granted(4, false));
        state.record_peak(3);
        assert_eq!(due(&state, 3, 0), None);
        assert_eq!(due(&state, 4, 1), Some(with_slack(5)));
        // Another node may want the permits beyond this node's share.
        tokio::time::advance(BORROWED_INTERVAL).await;
        assert_eq!(due(&state, 3, 0), Some(4));
        state.apply_reply(request(3, 4), granted(4, false));
        // Permits that were not needed for a while are returned.
        for _ in 0..2 {
            tokio::time::advance(KEPT_FOR).await;
            state.record_peak(0);
        }
        assert_eq!(due(&state, 0, 0), Some(0));
        state.apply_reply(request(0, 0), granted(0, false));
        assert_eq!(due(&state, 0, 0), None);
        tokio::time::advance(LEASE / 3).await;
        assert_eq!(due(&state, 0, 0), Some(0), "its lease is renewed");
    }

    #[tokio::test(start_paused = true)]
    async fn more_permits_may_be_available_unless_redis_just_had_none() {
        let mut state = state();
        assert!(!state.may_borrow(8), "Redis has not replied yet");
        state.apply_reply(request(2, 2), granted(2, false));
        assert!(state.may_borrow(8));
        assert!(!state.may_borrow(2), "this node has all");
        for (yields, pause) in [(false, FULL_FOR), (true, YIELD_FOR)] {
            let wanted = if yields { 2 } else { 3 };
            state.apply_reply(request(2, wanted), granted(2, yields));
            assert!(!state.may_borrow(8));
            tokio::time::advance(pause).await;
            assert!(state.may_borrow(8));
        }
        let _ = state.apply_reply(request(2, 3), Err(RedisUnavailable::NotSent));
        assert!(!state.may_borrow(8), "the node uses its share");
    }

    #[tokio::test(start_paused = true)]
    async fn the_reserve_for_other_users_is_kept() {
        let mut state = state();
        state.apply_reply(request(2, 8), granted(8, false));
        state.record_peak(2);
        let usage = PermitUse {
            reserve: 1,
            ..usage(2, 0)
        };
        assert_eq!(state.due(&usage, 8, LEASE), Some(with_slack(3)));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_reply_no_more_calls_begin_than_are_in_flight() {
        let mut state = state();
        let count = |applied: Option<(usize, Instant)>| applied.map(|(count, _)| count);
        let applied = state.apply_reply(request(5, 6), granted(6, false));
        assert_eq!(count(applied), Some(6));
        let applied = state.apply_reply(request(5, 6), granted(6, true));
        assert_eq!(count(applied), Some(2), "the others want theirs");
        assert_eq!(
            state.due(&usage(5, 3), 8, LEASE),
            Some(6),
            "it requests no more"
        );
        let applied = state.apply_reply(request(3, 6), Err(RedisUnavailable::NoReply));
        assert_eq!(count(applied), Some(3));
        assert_eq!(state.due(&usage(3, 3), 8, LEASE), None, "not at once");
        tokio::time::advance(YIELD_FOR).await;
        assert_eq!(state.due(&usage(3, 3), 8, LEASE), Some(with_slack(6)));
        // A dropped request counts as one without a reply.
        state.apply_reply(request(3, 7), granted(7, false));
        state.requested_with = Some(4);
        state.apply_dropped_request();
        assert_eq!(state.due(&usage(4, 0), 8, LEASE), Some(4));
        let applied = state.apply_reply(request(4, 4), Err(RedisUnavailable::NotSent));
        assert_eq!(count(applied), None, "the share");
    }
}
