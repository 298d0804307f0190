//! Upstream errors of chats and tasks alike: [`UpstreamErrorKind`] and the one table that says for each kind whether to retry,
//! whether to fail over and what goes into cooldown.

use std::borrow::Cow;
use std::time::Duration;

/// Why a provider did not do what it was sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Decides what happens next.
    pub kind: UpstreamErrorKind,
    /// A sentence for the client: the provider's own without keys and host names, or ours.
    pub message: String,
    /// The provider's HTTP status. `None` if it sent none.
    pub status: Option<u16>,
    /// The provider's machine-readable name of the error. `None` if it gave none or the caller has no use for it (tasks).
    pub code: Option<String>,
    /// The field at fault, by its name in the provider's format. Only chats have it.
    pub param: Option<String>,
    /// What the provider adds for programs (`error.details`), in its own format. Only chats have it.
    pub details: Option<Box<serde_json::Value>>,
    /// How long the provider wants no more requests.
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// An error of `kind` with `message`, without a status of the provider's.
    pub fn new(kind: UpstreamErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            code: None,
            param: None,
            details: None,
            retry_after: None,
        }
    }

    /// The sentence for the client. What a provider says about the gateway's keys, bills and limits, and about its own faults
    /// (429, 402, 401, 403, 5xx), is meant for the operator: the client gets our words, the log has the provider's.
    pub fn client_message(&self) -> Cow<'_, str> {
        match (self.kind, self.status) {
            (UpstreamErrorKind::RateLimited, _) => {
                "the provider's rate limit is reached: try again later".into()
            }
            (UpstreamErrorKind::KeyRejected, _) => {
                "the provider refused the gateway's own key".into()
            }
            (UpstreamErrorKind::QuotaExhausted, _) => {
                "the gateway's quota at the provider is used up".into()
            }
            (UpstreamErrorKind::ModelNotFound, _) => "the provider does not have this model".into(),
            (_, Some(status @ 500..)) => {
                format!("the provider failed with HTTP status {status}; nothing was charged").into()
            }
            _ => self.message.as_str().into(),
        }
    }

    /// Without what means something in the provider's own format only.
    pub fn without_field_names(self) -> Self {
        Self {
            param: None,
            details: None,
            ..self
        }
    }
}

/// What kind of failure an upstream error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamErrorKind {
    /// No connection could be made. Only chats tell it apart from [`Self::Unavailable`].
    Connect,
    /// No answer in time. Only chats tell it apart from [`Self::Unavailable`].
    TimedOut,
    /// More than any answer to the request should have. It is not asked for again: the next would be as large.
    TooLarge,
    /// May go better later: 408, 409, 5xx, a broken connection, a response that is not of the expected kind.
    Unavailable,
    /// 429, or the provider's own concurrency limit: this key may not be used for a while.
    RateLimited,
    /// 401 or 403: the provider does not accept this key.
    KeyRejected,
    /// 402, or another status with a message that says so: this key's credit or quota is used up.
    QuotaExhausted,
    /// 404, or a 400 that says so: the channel does not have this model or may not use it.
    ModelNotFound,
    /// The channel cannot do this job for another reason that is not the client's fault; another channel may.
    UnsupportedByChannel,
    /// The request itself is invalid: no other channel would accept it.
    Rejected,
    /// The provider tried and failed for good: another attempt would end the same way.
    Failed,
    /// The provider's safety system blocked it: no retry, no failover, no charge.
    Moderated,
    /// The request was sent and the response was lost: it may have been accepted and must not be sent again blindly.
    OutcomeUnknown,
    /// The call was cancelled by our own side.
    Interrupted,
}

/// What an error says about the channel that it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelEffect {
    /// The channel works: the error is about the request. Closes an open circuit breaker.
    Works,
    /// Nothing, neither good nor bad.
    Nothing,
    /// A failure of the channel: counts towards opening its circuit breaker.
    Failure,
    /// The key goes into cooldown for `retry_after`, or for the configured time.
    KeyRateLimited,
    /// The key goes into cooldown because the provider does not accept it.
    KeyRejected,
    /// The key goes into a long cooldown because its credit or quota is used up.
    KeyQuotaExhausted,
    /// The model goes into cooldown on this channel.
    ModelNotFound,
}

/// What an error kind means for the attempts that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorPolicy {
    /// Another attempt may be made, on another key or channel, as long as attempts are left.
    pub failover: bool,
    /// If there is no other channel, sending the same request to the same channel at once may help.
    pub retry_at_once: bool,
    /// What the error says about the channel.
    pub effect: ChannelEffect,
}

impl UpstreamErrorKind {
    /// The table that cooldown, failover and retry are decided by.
    pub const fn policy(self) -> ErrorPolicy {
        use ChannelEffect as Effect;
        let (failover, retry_at_once, effect) = match self {
            Self::Connect => (true, true, Effect::Failure),
            Self::TimedOut => (true, false, Effect::Failure),
            Self::TooLarge => (false, false, Effect::Failure),
            Self::Unavailable => (true, true, Effect::Failure),
            Self::RateLimited => (true, false, Effect::KeyRateLimited),
            Self::KeyRejected => (true, false, Effect::KeyRejected),
            Self::QuotaExhausted => (true, false, Effect::KeyQuotaExhausted),
            Self::ModelNotFound => (true, false, Effect::ModelNotFound),
            Self::UnsupportedByChannel => (true, false, Effect::Nothing),
            Self::Rejected => (false, false, Effect::Works),
            Self::Failed => (false, false, Effect::Works),
            Self::Moderated => (false, false, Effect::Works),
            Self::OutcomeUnknown => (false, false, Effect::Failure),
            Self::Interrupted => (false, false, Effect::Nothing),
        };
        ErrorPolicy {
            failover,
            retry_at_once,
            effect,
        }
    }

    /// Whether another attempt may be made, as long as attempts are left.
    pub const fn is_retryable(self) -> bool {
        self.policy().failover
    }

    /// The name under which a chat's attempt is recorded (`outcome` of its attempts). Clients read it: it does not change with
    /// the names of the variants.
    pub const fn recorded_name(self) -> &'static str {
        match self {
            Self::Connect => "Connect",
            Self::TimedOut => "TimedOut",
            Self::TooLarge => "TooLarge",
            Self::Unavailable => "Unavailable",
            Self::RateLimited => "RateLimited",
            Self::KeyRejected => "KeyRefused",
            Self::QuotaExhausted => "QuotaExhausted",
            Self::ModelNotFound => "ModelMissing",
            Self::UnsupportedByChannel => "UnsupportedByChannel",
            Self::Rejected => "Rejected",
            Self::Failed => "Failed",
            Self::Moderated => "Moderated",
            Self::OutcomeUnknown => "OutcomeUnknown",
            Self::Interrupted => "Interrupted",
        }
    }
}
