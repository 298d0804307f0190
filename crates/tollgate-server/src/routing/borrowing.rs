//! A channel's `max_concurrency` over several nodes with Redis: a node has as many permits there as it needs, up to what the
//! others do not have.
//!
//! Permits follow the calls: a node that needs more takes a few at once, and what it has not needed for a second it gives back.
//! So most calls find a permit on their node, and no call makes more than one to Redis. While Redis is lost, each node has its share
//! of the limit.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::channel::OpenChannel;
use crate::cluster::live_nodes::LiveNodes;
use crate::fair_permits::{FairPermits, PermitUse};
use crate::redis::{ChannelPermits, GrantedPermits, PermitRequest, RedisUnavailable};

/// How often one that has more than its share asks whether another node wants its own.
const BORROWED_INTERVAL: Duration = Duration::from_millis(250);
/// How long permits that are not needed are kept: between one and two of it.
const KEPT_FOR: Duration = Duration::from_millis(750);
/// How long a node that left permits to others takes no new ones.
const YIELD_FOR: Duration = Duration::from_millis(150);
/// How long a call that found no permit counts as one that wants one.
const WANTED_FOR: Duration = Duration::from_secs(1);
/// After Redis had no permit, how long calls do not ask for themselves, and how long the channel counts as full.
const DENIED_FOR: Duration = Duration::from_millis(20);
const FULL_FOR: Duration = Duration::from_millis(300);
/// Pause after a call to Redis that failed.
const FAILED_PAUSE: Duration = Duration::from_millis(100);

/// A channel's permits on this node.
#[derive(Default)]
pub(super) struct Borrowing {
    /// `None` without Redis, or if this node is alone.
    permits: OnceLock<Arc<ChannelPermits>>,
    state: Mutex<State>,
    /// Held while Redis is asked, so that calls which need a permit at the same time ask once.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    share: usize,
    kept: usize,
    /// What this node has. `None` while it has its share because Redis is lost.
    granted: Option<GrantedPermits>,
    /// The calls in flight of a request to Redis that has no reply yet.
    requested_with: Option<usize>,
    /// When Redis answered last, and when it did not.
    answered_at: Option<Instant>,
    failed_at: Option<Instant>,
    /// When Redis had less than was needed.
    denied_at: Option<Instant>,
    wanted_at: Option<Instant>,
    yielded_at: Option<Instant>,
    /// The most calls at the same time since `peak_since`, and in the time before.
    peaks: [usize; 2],
    peak_since: Option<Instant>,
}

impl Borrowing {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenChannel {
    /// Takes permits from Redis from now on.
    pub fn share_permits(&self, permits: &Arc<ChannelPermits>) {
        // Set before, if the channel was kept by a reload.
        let _ = self.borrowing.permits.set(Arc::clone(permits));
    }

    /// Says how many of the channel's `max_concurrency` calls this node may make without Redis.
    pub fn set_share(&self, live_nodes: &LiveNodes) {
        let Some((permits, limit)) = self.limited() else {
            return;
        };
        let share = live_nodes.share(limit);
        let is_less_than_one = limit < live_nodes.count() as usize;
        let mut state = self.borrowing.lock();
        (state.share, state.kept) = (share, if is_less_than_one { 0 } else { share });
        drop(state);
        permits.set_max(share);
    }

    /// Whether another node's unused permits may be had.
    pub(super) fn may_borrow(&self) -> bool {
        let state = self.borrowing.lock();
        let has_more = state
            .granted
            .is_some_and(|g| self.limited().is_some_and(|(_, limit)| g.count < limit));
        has_more && !is_within(state.denied_at, FULL_FOR) && !is_within(state.yielded_at, YIELD_FOR)
    }

    /// Asks Redis for a permit, once, for a call that found none. Returns whether there may be one now.
    pub(super) async fn borrow(&self) -> bool {
        let (Some((permits, limit)), Some(redis)) = (self.limited(), self.borrowing.permits.get())
        else {
            return false;
        };
        let is_shared = {
            let mut state = self.borrowing.lock();
            state.wanted_at = Some(Instant::now());
            state.granted.is_some()
        };
        if !is_shared {
            return false;
        }
        let _asking = self.borrowing.asking.lock().await;
        let request = {
            let mut state = self.borrowing.lock();
            state.settle_cancelled();
            let needed = needed(&permits.usage(), true).min(limit);
            let Some(granted) = state.granted else {
                return false;
            };
            let may_request = !is_within(state.denied_at, DENIED_FOR)
                && !is_within(state.yielded_at, YIELD_FOR)
                && !is_within(state.failed_at, FAILED_PAUSE);
            // Others that asked meanwhile may have got enough.
            if granted.count >= needed || !may_request {
                return permits.free() > 0;
            }
            state.request(permits, limit, with_slack(needed))
        };
        self.request_more(redis, permits, request).await
    }

    /// Compares the permits with what is needed, and asks Redis if they differ, or if it is time to.
    pub(super) async fn adjust_permits(&self) {
        let (Some((permits, limit)), Some(redis)) = (self.limited(), self.borrowing.permits.get())
        else {
            return;
        };
        if !redis.is_connected() {
            self.borrowing.lock().granted = None;
            permits.set_granted(None, limit);
            return;
        }
        let Ok(_asking) = self.borrowing.asking.try_lock() else {
            return;
        };
        let request = {
            let mut state = self.borrowing.lock();
            state.settle_cancelled();
            let usage = permits.usage();
            state.note_peak(usage.in_use);
            let wanted = state.due(&usage, limit, redis.lease());
            wanted.map(|wanted| state.request(permits, limit, wanted))
        };
        if let Some(request) = request {
            self.request_more(redis, permits, request).await;
        }
    }

    /// Returns whether there are as many as were needed.
    async fn request_more(
        &self,
        redis: &ChannelPermits,
        permits: &FairPermits,
        request: PermitRequest,
    ) -> bool {
        let granted = redis.request(&self.channel.name, request).await;
        let now_granted = self.borrowing.lock().note(request, granted);
        permits.set_granted(now_granted, request.limit);
        now_granted.is_some_and(|(count, _)| count > request.in_flight)
    }

    /// Gives all permits back: this node stops.
    pub(super) async fn return_permits(&self) {
        if let (Some((permits, limit)), Some(redis)) =
            (self.limited(), self.borrowing.permits.get())
        {
            let request = self.borrowing.lock().request(permits, limit, 0);
            let _ = redis.request(&self.channel.name, request).await;
        }
    }

    fn limited(&self) -> Option<(&FairPermits, usize)> {
        let limit = self.channel.max_concurrency? as usize;
        Some((self.permits.as_ref()?, limit))
    }
}

impl State {
    fn request(&mut self, permits: &FairPermits, limit: usize, wanted: usize) -> PermitRequest {
        // No call begins until the reply says how many may.
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

    /// A request to Redis that was dropped is one without reply.
    fn settle_cancelled(&mut self) {
        if let (Some(in_flight), Some(granted)) = (self.requested_with.take(), &mut self.granted) {
            granted.count = in_flight;
            self.answered_at = None;
        }
    }

    fn note_peak(&mut self, in_use: usize) {
        if !is_within(self.peak_since, KEPT_FOR) {
            self.peaks = [0, self.peaks[0]];
            self.peak_since = Some(Instant::now());
        }
        self.peaks[0] = self.peaks[0].max(in_use);
    }

    /// How many permits to ask for now. `None` if there is nothing to ask.
    fn due(&self, usage: &PermitUse, limit: usize, lease: Duration) -> Option<usize> {
        if is_within(self.failed_at, FAILED_PAUSE) {
            return None;
        }
        let Some(granted) = self.granted else {
            // Redis is back: what this node has counts there from now on.
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
        let is_old = |age: Duration| !is_within(self.answered_at, age);
        let asks = granted.count > kept.max(needed)
            || granted.yields
            || (granted.count > self.share && is_old(BORROWED_INTERVAL))
            || is_old(lease / 3);
        asks.then(|| granted.count.min(kept.max(needed)))
    }

    /// Takes a reply over. Returns how many calls may be made until when; `None` if it is the share.
    fn note(
        &mut self,
        request: PermitRequest,
        granted: Result<GrantedPermits, RedisUnavailable>,
    ) -> Option<(usize, Instant)> {
        let now = Instant::now();
        self.requested_with = None;
        let granted = match granted {
            Ok(granted) => granted,
            // Whatever Redis has noted, it is no less than the calls in flight.
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
        self.answered_at = Some(now);
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

/// Permits for the calls that run, those that wait, and the reserve for other users.
fn needed(usage: &PermitUse, is_wanted: bool) -> usize {
    let waiting = usage.waiting.max(usize::from(is_wanted));
    match usage.in_use + waiting {
        0 => 0,
        calls => calls + usage.reserve,
    }
}

fn with_slack(permits: usize) -> usize {
    permits + permits / 4 + 1
}

fn is_within(at: Option<Instant>, time: Duration) -> bool {
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

    fn request(in_flight: usize, wanted: usize) -> PermitRequest {
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
        assert_eq!(due(&state, 3, 0), Some(3), "what runs is told first");
        state.note(request(3, 3), granted(4, false));
        state.note_peak(3);
        assert_eq!(due(&state, 3, 0), None);
        assert_eq!(due(&state, 4, 1), Some(with_slack(5)));
        // What is borrowed may be wanted by others.
        tokio::time::advance(BORROWED_INTERVAL).await;
        assert_eq!(due(&state, 3, 0), Some(4));
        state.note(request(3, 4), granted(4, false));
        // What was not needed for a while is given back.
        for _ in 0..2 {
            tokio::time::advance(KEPT_FOR).await;
            state.note_peak(0);
        }
        assert_eq!(due(&state, 0, 0), Some(0));
        state.note(request(0, 0), granted(0, false));
        assert_eq!(due(&state, 0, 0), None);
        tokio::time::advance(LEASE / 3).await;
        assert_eq!(due(&state, 0, 0), Some(0), "its lease is renewed");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_reply_no_more_calls_begin_than_are_in_flight() {
        let mut state = state();
        let count = |noted: Option<(usize, Instant)>| noted.map(|(count, _)| count);
        let noted = state.note(request(5, 6), granted(6, false));
        assert_eq!(count(noted), Some(6));
        let noted = state.note(request(5, 6), granted(6, true));
        assert_eq!(count(noted), Some(2), "the others want theirs");
        assert_eq!(
            state.due(&usage(5, 3), 8, LEASE),
            Some(6),
            "it asks for no more"
        );
        let noted = state.note(request(3, 6), Err(RedisUnavailable::NoReply));
        assert_eq!(count(noted), Some(3));
        assert_eq!(state.due(&usage(3, 3), 8, LEASE), None, "not at once");
        tokio::time::advance(YIELD_FOR).await;
        assert_eq!(state.due(&usage(3, 3), 8, LEASE), Some(with_slack(6)));
        // One that was dropped is one without a reply.
        state.note(request(3, 7), granted(7, false));
        state.requested_with = Some(4);
        state.settle_cancelled();
        assert_eq!(state.due(&usage(4, 0), 8, LEASE), Some(4));
        let noted = state.note(request(4, 4), Err(RedisUnavailable::NotSent));
        assert_eq!(count(noted), None, "the share");
    }
}
