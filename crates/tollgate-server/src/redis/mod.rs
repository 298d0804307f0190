//! Redis or Valkey (docs/redis.md): what several nodes know together and may lose at any time. Money and tasks are never in it.

use std::sync::Arc;

mod channel_permits;
mod connection;
mod messages;
mod rate_limits;

pub use channel_permits::{ChannelPermits, GrantedPermits, PermitRequest};
pub use connection::{RedisClient, RedisUnavailable};
pub use messages::{
    CooldownName, CooldownSubject, NodeInbox, NodeMessage, NodeMessages, SharedCooldown,
};
pub use rate_limits::{
    CountedPosts, LimitedScope, ReachedLimit, Rejection, SharedLimits, SharedPermit,
};

/// What this process shares with the other nodes of the database; clones are the same.
#[derive(Clone)]
pub struct NodeLinks {
    /// What nodes tell each other.
    pub messages: Arc<NodeMessages>,
    /// What each may do of the channels' `max_concurrency`.
    pub permits: Arc<ChannelPermits>,
}

impl NodeLinks {
    /// Those of the node of that name, through `redis`; what it has there lasts for `lease` without renewal.
    pub fn new(redis: &Arc<RedisClient>, node: &str, lease: tollgate_core::Millis) -> Self {
        let (redis, node) = (|| Arc::clone(redis), || node.to_owned());
        Self {
            messages: Arc::new(NodeMessages::new(redis(), node())),
            permits: Arc::new(ChannelPermits::new(redis(), node(), lease)),
        }
    }
}
