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
/// When clients may retry if every channel is paused.
const PAUSED: Duration = Duration::from_secs(1);
/// The longest cooldown, whatever `Retry-After` an upstream sends.
const MAX: Duration = Duration::from_secs(3_600);

/// The users whose requests are the evidence of failures.
///
/// Requests of one user can fail because of their content. So they count for that user only, until a request of another user fails too, or the same
/// request succeeds on another channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Evidence {
    /// All failed requests are of this user.
    OneUser(Box<str>),
    /// The failures are not those of a single user only: they count for all.
    Confirmed,
}

impl Evidence {
    /// The evidence of a failed request of a user.
    pub(super) fn one_user(user_id: &str) -> Self {
        Self::OneUser(user_id.into())
    }

    /// Adds a failed request of a user.
    pub(super) fn add(&mut self, user_id: &str) {
        if !self.counts_for(user_id) {
            *self = Self::Confirmed;
        }
    }

    /// Adds the evidence that another node has of failed requests.
    pub(super) fn add_all(&mut self, other: &Self) {
        if self != other {
            *self = Self::Confirmed;
        }
    }

    /// The only user whose requests are the evidence. `None` if it counts for all.
    pub(super) fn into_only_user(self) -> Option<String> {
        match self {
            Self::OneUser(user) => Some(user.into_string()),
            Self::Confirmed => None,
        }
    }

    /// Records that a request of the user, which failed here, succeeded on another channel.
    pub(super) fn confirm(&mut self, user_id: &str) {
        if self.counts_for(user_id) {
            *self = Self::Confirmed;
        }
    }

    /// Whether the failures count for requests of a user.
    pub(super) fn counts_for(&self, user_id: &str) -> bool {
        match self {
            Self::OneUser(user) => **user == *user_id,
            Self::Confirmed => true,
        }
    }
}

/// The time until which something is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cooldown {
    pub(super) until: Instant,
    /// Whether the upstream requested the pause: then the key is not used earlier even as a last resort.
    pub(super) is_requested: bool,
}

impl Cooldown {
    /// A cooldown that the gateway chose.
    pub(super) fn new(until: Instant) -> Self {
        Self {
            until,
            is_requested: false,
        }
    }

    /// The cooldown of a paused channel, which is not used even as a last resort; it is short, so that the channel is checked again soon.
    pub(super) fn of_paused_channel(now: Instant) -> Self {
        Self {
            until: now + PAUSED,
            is_requested: true,
        }
    }

    /// The cooldown of a rate-limited key; `retry_after` is the pause that the upstream requested. `None` if it requested none.
    pub(super) fn rate_limited(now: Instant, retry_after: Option<Duration>) -> Self {
        Self {
            until: now + retry_after.unwrap_or(RATE_LIMITED).min(MAX),
            is_requested: retry_after.is_some(),
        }
    }
}
