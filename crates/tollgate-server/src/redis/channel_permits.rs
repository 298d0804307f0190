//! How many calls each node may make at the same time on a channel with a `max_concurrency`. All nodes agree on this in Redis.
//!
//! A node keeps its permits there until it returns them or its lease on them ends. The sum of all permits never exceeds the limit, except for calls
//! that are already running. If a node is denied its share, that is recorded, and nodes with more than their share leave permits to it as their calls
//! end. Keys begin with the version of the script ([`PREFIX`]).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ::redis::Script;
use tokio::time::Instant;
use tollgate_core::Millis;

use super::connection::{RedisClient, RedisUnavailable};

/// The prefix of all keys. Its number is raised when the meaning of a key changes.
const PREFIX: &str = "{tollgate:permits:1}";
/// How long a node counts as waiting for its share after it was denied it.
const WANTS_FOR_MS: Millis = 1_000;

static PERMITS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("permits.lua")));

/// A node's request for permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitRequest {
    /// The channel's `max_concurrency`.
    pub limit: usize,
    /// Calls that are running: they keep their permits in any case.
    pub in_flight: usize,
    /// The permits that the node can use.
    pub wanted: usize,
    /// The node's share of the limit.
    pub share: usize,
    /// The permits that the node keeps if another node wants its own share: 0 if the limit is below the number of nodes, so that they take turns.
    pub kept: usize,
}

/// The permits that a node gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedPermits {
    /// The number of permits until `until`.
    pub count: usize,
    /// Whether those beyond [`PermitRequest::kept`] must be left to other nodes as calls end.
    pub yields: bool,
    /// When the lease on them ends.
    pub until: Instant,
}

/// Requests the permits of this process.
pub struct ChannelPermits {
    redis: Arc<RedisClient>,
    /// This process's name.
    node: String,
    lease: Millis,
}

impl ChannelPermits {
    /// Requests the permits of the node with that name, for `lease` at a time.
    pub fn new(redis: Arc<RedisClient>, node: String, lease: Millis) -> Self {
        Self { redis, node, lease }
    }

    /// How long permits are kept without renewal.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease.unsigned_abs())
    }

    /// Whether Redis is connected.
    pub fn is_connected(&self) -> bool {
        self.redis.is_connected()
    }

    /// Requests permits of a channel, or returns them.
    ///
    /// # Errors
    /// [`RedisUnavailable`], at the latest after `limits.redis_timeout_ms`.
    pub async fn request(
        &self,
        channel: &str,
        request: PermitRequest,
    ) -> Result<GrantedPermits, RedisUnavailable> {
        // Measured before the call: the lease in Redis begins later.
        let until = Instant::now() + self.lease();
        let key = |what: &str| format!("{PREFIX}:{channel}:{what}");
        let mut call = PERMITS.key(key("permits"));
        call.key(key("nodes")).key(key("wanting"));
        call.arg(&self.node).arg(request.limit);
        call.arg(request.in_flight).arg(request.wanted);
        call.arg(request.share).arg(request.kept);
        call.arg(self.lease).arg(WANTS_FOR_MS);
        let (count, yields): (usize, u8) = self.redis.run_script(&call).await?;
        Ok(GrantedPermits {
            count,
            yields: yields == 1,
            until,
        })
    }
}
