//! Cooldowns: how long a key, or a model on a channel, is not used after a failure.

use std::time::Duration;

use tokio::time::Instant;

/// Cooldown of a rate-limited key if the upstream sent no `Retry-After`.
pub(super) const RATE_LIMITED: Duration = Duration::from_secs(5);
/// Cooldown of a key that the upstream rejected (401 or 403).
pub(super) const KEY_REJECTED: Duration = Duration::from_secs(60);
/// Cooldown of a key, or of a model on a channel without keys, whose quota is used up.
pub(super) const QUOTA_EXHAUSTED: Duration = Duration::from_secs(300);
/// Cooldown of a model that the upstream does not have.
pub(super) const MODEL_NOT_FOUND: Duration = Duration::from_secs(300);
/// Upper bound on any cooldown, whatever `Retry-After` an upstream sends.
const MAX: Duration = Duration::from_secs(3_600);

/// The time until which something is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cooldown {
    pub(super) until: Instant,
    /// Whether the upstream itself asked for the pause: then the key is not tried earlier even as a last resort.
    pub(super) is_requested: bool,
}

impl Cooldown {
    /// A cooldown that the gateway chose itself.
    pub(super) fn new(until: Instant) -> Self {
        Self {
            until,
            is_requested: false,
        }
    }

    /// The cooldown of a rate-limited key; `retry_after` is the pause that the upstream asked for, if it did.
    pub(super) fn rate_limited(now: Instant, retry_after: Option<Duration>) -> Self {
        Self {
            until: now + retry_after.unwrap_or(RATE_LIMITED).min(MAX),
            is_requested: retry_after.is_some(),
        }
    }
}
