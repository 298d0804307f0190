//! A channel's `max_concurrency` over several nodes with Redis: a node has as many permits there as it needs, up to what the
//! others do not have.
//!
//! Permits follow the calls: a node that needs more takes a few at once, and what it has not needed for a second it gives back.
//! So most calls find a permit on their node, and no call makes more than one to Redis. While Redis is lost, each node has its share
//! of the limit.

use std::sync::Arc;

use tokio::time::Instant;

use super::borrowed_permits::{
    DENIED_FOR, FAILED_PAUSE, FULL_FOR, YIELD_FOR, is_within, needed, with_slack,
};
use super::channel::OpenChannel;
use crate::cluster::live_nodes::LiveNodes;
use crate::fair_permits::FairPermits;
use crate::redis::{ChannelPermits, PermitRequest};

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
