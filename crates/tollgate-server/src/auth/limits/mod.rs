//! Rate limits of keys, of users over all their keys, and of the gateway over all users: POST requests and tokens per
//! minute (sliding window), requests in flight. A request over a limit is rejected with 429, never queued.
//!
//! Every node counts what it admits itself. With Redis, a request must also be within the limits by the counts of all nodes there; without Redis, or
//! while it is unreachable, each node's own counts decide as `limits.on_redis_loss` states (docs/redis.md).

mod rate_limiter;
mod redis_counting;
mod redis_counts;
mod sliding_window;

#[cfg(test)]
mod tests;

pub use rate_limiter::{RateLimiter, RemainingRequests, RequestPermit};
