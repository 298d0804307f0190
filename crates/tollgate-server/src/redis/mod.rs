//! Redis or Valkey (docs/redis.md): what several nodes know together and may lose at any time. Money and tasks are never in it.

mod connection;
mod messages;
mod rate_limits;

pub use connection::{RedisClient, RedisUnavailable, check_url};
pub use messages::{
    CooldownName, CooldownSubject, NodeInbox, NodeMessage, NodeMessages, SharedCooldown,
};
pub use rate_limits::{
    CountedPosts, LimitedScope, ReachedLimit, Rejection, SharedLimits, SharedPermit,
};
