//! Redis or Valkey (docs/redis.md): state that several nodes share and may lose at any time. It never contains money or tasks.

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

/// State that this process shares with the other nodes of the database; clones share it.
#[derive(Clone)]
pub struct NodeLinks {
    /// Messages between nodes.
    pub messages: Arc<NodeMessages>,
    /// Each node's permits on channels with a `max_concurrency`.
    pub permits: Arc<ChannelPermits>,
}

impl NodeLinks {
    /// The links of the node with that name, through `redis`; its entries there expire after `lease` without renewal.
    pub fn new(redis: &Arc<RedisClient>, node: &str, lease: tollgate_core::Millis) -> Self {
        let (redis, node) = (|| Arc::clone(redis), || node.to_owned());
        Self {
            messages: Arc::new(NodeMessages::new(redis(), node())),
            permits: Arc::new(ChannelPermits::new(redis(), node(), lease)),
        }
    }
}
