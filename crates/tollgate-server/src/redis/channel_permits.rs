//! How many calls on a channel with a `max_concurrency` each node may make at the same time, as all nodes agree in Redis.
//!
//! A node has permits there until it gives them back or its lease on them ends; together they are never more than the limit, but
//! for calls that run anyway. A node that is denied its share is noted, and those that have more than theirs leave it to it as
//! their calls end. Keys begin with the version of the script ([`PREFIX`]).

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use ::redis::Script;
use tokio::time::Instant;
use tollgate_core::Millis;

use super::{RedisClient, RedisUnavailable};

/// Of all keys. The number changes with the meaning of a key.
const PREFIX: &str = "{tollgate:permits:1}";
/// How long a node counts as one that wants its share after it was denied it.
const WANTS_FOR_MS: Millis = 1_000;

static PERMITS: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("permits.lua")));

/// What a node asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PermitRequest {
    /// The channel's `max_concurrency`.
    pub limit: usize,
    /// Calls that run: they have permits in any case.
    pub in_flight: usize,
    /// Permits that it can use.
    pub wanted: usize,
    /// Its share of the limit.
    pub share: usize,
    /// What it keeps of it if another node wants its own share: 0 if the limit is below the number of nodes, so that they take turns.
    pub kept: usize,
}

/// What it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantedPermits {
    /// Permits until `until`.
    pub count: usize,
    /// Whether those beyond [`PermitRequest::kept`] must be left to other nodes as calls end.
    pub yields: bool,
    /// When the lease on them ends.
    pub until: Instant,
}

/// The permits of this process.
pub struct ChannelPermits {
    redis: Arc<RedisClient>,
    /// This process's name.
    node: String,
    lease: Millis,
}

impl ChannelPermits {
    /// Those of the node of that name, for `lease` at a time.
    pub fn new(redis: Arc<RedisClient>, node: String, lease: Millis) -> Self {
        Self { redis, node, lease }
    }

    /// How long permits are kept without renewal.
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease.unsigned_abs())
    }

    /// Whether there is a Redis that can be asked.
    pub fn is_connected(&self) -> bool {
        self.redis.is_connected()
    }

    /// Takes permits of a channel, or gives them back.
    ///
    /// # Errors
    /// [`RedisUnavailable`], after 50 ms at most.
    pub async fn request(
        &self,
        channel: &str,
        request: PermitRequest,
    ) -> Result<GrantedPermits, RedisUnavailable> {
        // The server's lease begins later.
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
