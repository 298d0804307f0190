//! A channel's `max_concurrency` over several nodes with Redis: a node has as many permits there as it needs, up to those that other nodes do not
//! use.
//!
//! The permits follow the calls: a node that needs more requests a few at once, and returns those that it has not needed for a second. So most calls
//! find a permit on their node, and no call makes more than one request to Redis. While Redis is unreachable, each node uses its share of the limit.

use std::sync::Arc;

use tokio::time::Instant;

use super::borrowed_permits::{DENIED_FOR, FAILED_PAUSE, YIELD_FOR, is_within, needed, with_slack};
use super::channel::OpenChannel;
use crate::cluster::live_nodes::LiveNodes;
use crate::fair_permits::FairPermits;
use crate::redis::{ChannelPermits, PermitRequest};

impl OpenChannel {
    /// From now on requests permits from Redis.
    pub fn share_permits(&self, permits: &Arc<ChannelPermits>) {
        // It is already set if a reload kept the channel.
        let _ = self.borrowing.permits.set(Arc::clone(permits));
    }

    /// Sets how many of the channel's `max_concurrency` calls this node may make without Redis.
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

    /// Whether unused permits of other nodes may be available. False while Redis is not used.
    pub(super) fn may_borrow(&self) -> bool {
        self.limited()
            .is_some_and(|(_, limit)| self.borrowing.lock().may_borrow(limit))
    }

    /// Requests a permit from Redis, once, for a call that found none. Returns whether one may be available now.
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
        let _requesting = self.borrowing.requesting.lock().await;
        let request = {
            let mut state = self.borrowing.lock();
            state.apply_dropped_request();
            let needed = needed(&permits.usage(), true).min(limit);
            let Some(granted) = state.granted else {
                return false;
            };
            let may_request = !is_within(state.denied_at, DENIED_FOR)
                && !is_within(state.yielded_at, YIELD_FOR)
                && !is_within(state.failed_at, FAILED_PAUSE);
            // A concurrent request may have obtained enough permits.
            if granted.count >= needed || !may_request {
                return permits.free() > 0;
            }
            state.request(permits, limit, with_slack(needed))
        };
        self.request_more(redis, permits, request).await
    }

    /// Compares the permits with what is needed, and sends a request to Redis if they differ, or if one is due.
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
        let Ok(_requesting) = self.borrowing.requesting.try_lock() else {
            return;
        };
        let request = {
            let mut state = self.borrowing.lock();
            state.apply_dropped_request();
            let usage = permits.usage();
            state.record_peak(usage.in_use);
            let wanted = state.due(&usage, limit, redis.lease());
            wanted.map(|wanted| state.request(permits, limit, wanted))
        };
        if let Some(request) = request {
            self.request_more(redis, permits, request).await;
        }
    }

    /// Requests permits. Returns whether more calls may run than are in flight.
    async fn request_more(
        &self,
        redis: &ChannelPermits,
        permits: &FairPermits,
        request: PermitRequest,
    ) -> bool {
        let granted = redis.request(&self.channel.name, request).await;
        let now_granted = self.borrowing.lock().apply_reply(request, granted);
        permits.set_granted(now_granted, request.limit);
        now_granted.is_some_and(|(count, _)| count > request.in_flight)
    }

    /// Returns all permits, because this node stops.
    pub(super) async fn return_permits(&self) {
        if let (Some((permits, limit)), Some(redis)) =
            (self.limited(), self.borrowing.permits.get())
        {
            let request = self.borrowing.lock().request(permits, limit, 0);
            let _ = redis.request(&self.channel.name, request).await;
        }
    }

    /// The channel's permits on this node, and its `max_concurrency`. `None` if that is not set.
    fn limited(&self) -> Option<(&FairPermits, usize)> {
        let limit = self.channel.max_concurrency? as usize;
        Some((self.permits.as_ref()?, limit))
    }
}
