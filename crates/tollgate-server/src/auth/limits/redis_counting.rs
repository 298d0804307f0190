//! Rate limits that nodes count together in Redis, and how they are enforced while it is unreachable (docs/redis.md).

use std::sync::Arc;

use tollgate_config::OnRedisLoss;
use tollgate_core::{ApiError, Millis};
use tollgate_store::{Key, RateLimits};

use super::rate_limiter::{
    RateLimiter, RequestPermit, Scope, limited_scopes, rejected, too_many_in_flight,
    too_many_posts, too_many_tokens,
};
use super::redis_counts::RedisCounting;
use super::sliding_window::SlidingWindow;
use crate::cluster::live_nodes::LiveNodes;
use crate::redis::{LimitedScope, ReachedLimit, RedisUnavailable, Rejection, SharedLimits};

impl RateLimiter {
    /// Counts requests together with the other nodes in `limits`. While Redis is unreachable, `on_loss` decides, with the number of `live_nodes`.
    pub fn with_redis(
        mut self,
        limits: Arc<SharedLimits>,
        on_loss: OnRedisLoss,
        live_nodes: Arc<LiveNodes>,
    ) -> Self {
        self.redis = Some(RedisCounting {
            limits,
            on_loss,
            live_nodes,
        });
        self
    }

    /// The counts of all nodes. `None` if this node counts by itself.
    pub fn shared(&self) -> Option<&Arc<SharedLimits>> {
        self.redis.as_ref().map(|redis| &redis.limits)
    }

    /// Admits a request if the counts of all nodes are below the limits. This node's own counts are checked first: they are a part of the others, and
    /// Redis may have lost its counts.
    pub(super) async fn admit_with_redis(
        &self,
        redis: &RedisCounting,
        key: &Arc<Key>,
        is_post: bool,
        now: Millis,
    ) -> Result<RequestPermit, ApiError> {
        let fair_permit = self.try_acquire_permit(key);
        self.check(
            &mut self.shared.lock(),
            key,
            is_post,
            now,
            1,
            fair_permit.as_ref(),
        )?;
        let scopes: Vec<(Scope<'_>, RateLimits)> = limited_scopes(key, self.gateway).collect();
        // A GET counts only as a request in flight: without such a limit no call to Redis is needed.
        let limits_flight = |(_, rates): &(Scope<'_>, RateLimits)| rates.max_concurrency.is_some();
        if !is_post && !scopes.iter().any(limits_flight) {
            return Ok(self.count(self.shared.lock(), key, is_post, now, fair_permit));
        }
        let mut taken: Vec<SlidingWindow> = {
            let mut table = self.shared.lock();
            let take = |(scope, _): &(Scope<'_>, RateLimits)| {
                std::mem::take(&mut table.usage(*scope, now).uncounted)
            };
            scopes.iter().map(take).collect()
        };
        let uncounted: Vec<u64> = taken.iter_mut().map(|window| window.sum(now)).collect();
        let permit = redis.limits.begin(scopes.iter().map(named).collect());
        let admitted = permit.admit(is_post, &uncounted).await;
        let mut table = self.shared.lock();
        match admitted {
            Ok((rejection, posts)) => {
                for ((scope, _), posts) in scopes.iter().zip(posts) {
                    table.usage(*scope, now).all_nodes = Some((posts, now));
                }
                if let Some((rejection, (scope, rates))) =
                    rejection.and_then(|r| Some((r, scopes.get(r.scope)?)))
                {
                    return Err(rejection.into_error(*scope, rates));
                }
            }
            Err(unavailable) => {
                for ((scope, _), window) in scopes.iter().zip(taken) {
                    table.usage(*scope, now).uncounted.restore(window);
                }
                let nodes = redis.nodes_to_divide_by()?;
                self.check(&mut table, key, is_post, now, nodes, fair_permit.as_ref())?;
                // A call that was sent has usually been counted in Redis, even without a reply.
                if is_post && unavailable == RedisUnavailable::NotSent {
                    for (scope, _) in scopes.iter().filter(|(_, rates)| rates.rpm.is_some()) {
                        table.usage(*scope, now).uncounted.add(1, now);
                    }
                }
            }
        }
        let mut admitted = self.count(table, key, is_post, now, fair_permit);
        admitted.redis = Some((redis.clone(), permit));
        Ok(admitted)
    }
}

impl Rejection {
    /// The error for a limit of `scope`.
    pub(super) fn into_error(self, scope: Scope<'_>, rates: &RateLimits) -> ApiError {
        let what = match self.limit {
            ReachedLimit::Concurrency => too_many_in_flight(rates.max_concurrency.unwrap_or(0)),
            ReachedLimit::Rpm => too_many_posts(rates.rpm.unwrap_or(0)),
            ReachedLimit::Tpm => too_many_tokens(rates.tpm.unwrap_or(0)),
        };
        rejected(scope, &what, self.wait)
    }
}

/// A scope, with its name in Redis.
fn named((scope, rates): &(Scope<'_>, RateLimits)) -> LimitedScope {
    LimitedScope {
        name: match scope {
            Scope::Key(id) => format!("key:{id}"),
            Scope::User(id) => format!("user:{id}"),
            Scope::Gateway => "gateway".to_owned(),
        },
        rpm: rates.rpm,
        tpm: rates.tpm,
        max_concurrency: rates.max_concurrency,
    }
}
