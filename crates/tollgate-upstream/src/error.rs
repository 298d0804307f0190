//! Upstream errors of chats and tasks: [`UpstreamErrorKind`], and the table that states for each kind whether to retry, whether to fail over and what
//! goes into cooldown.

use std::borrow::Cow;
use std::time::Duration;

/// The error of a request to a provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    /// Decides on retry, failover and cooldown, see [`UpstreamErrorKind::policy`].
    pub kind: UpstreamErrorKind,
    /// A sentence for the client: the provider's own message without keys and host names, or the gateway's.
    pub message: String,
    /// The HTTP status that the provider sent. `None` if it sent none.
    pub status: Option<u16>,
    /// The provider's machine-readable name of the error. `None` if the provider sent none or the caller does not use it (tasks).
    pub code: Option<String>,
    /// The field that the error refers to, by its name in the provider's format. Set for chats only.
    pub param: Option<String>,
    /// The provider's machine-readable details (`error.details`), in its own format. Set for chats only.
    pub details: Option<Box<serde_json::Value>>,
    /// How long the provider wants to receive no more requests. `None` if it stated no time.
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// An error of `kind` with `message`, without an HTTP status.
    #[cold]
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

    /// The sentence for the client. The provider's messages about the gateway's keys, bills and limits, and about the provider's own faults (429,
    /// 402, 401, 403, 5xx), are meant for the operator: the client receives the gateway's own message, the log contains the provider's.
    pub fn client_message(&self) -> Cow<'_, str> {
        match (self.kind, self.status) {
            (UpstreamErrorKind::RateLimited, _) => {
                "the provider's rate limit is reached: try again later".into()
            }
            (UpstreamErrorKind::KeyRejected, _) => {
                "the provider rejected the gateway's own key".into()
            }
            (UpstreamErrorKind::QuotaExhausted, _) => {
                "the gateway's quota at the provider is used up".into()
            }
            (UpstreamErrorKind::ModelNotFound, _) => "the provider does not have this model".into(),
            (_, Some(status @ 500..)) => {
                format!("the provider failed with HTTP status {status}").into()
            }
            _ => self.message.as_str().into(),
        }
    }

    /// The error without the fields that have a meaning in the provider's own format only.
    pub fn without_field_names(self) -> Self {
        Self {
            param: None,
            details: None,
            ..self
        }
    }
}

/// The kind of an upstream error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamErrorKind {
    /// No connection could be opened. Only chats distinguish this from [`Self::Unavailable`].
    Connect,
    /// The response did not arrive within the timeout. Only chats distinguish this from [`Self::Unavailable`].
    TimedOut,
    /// A chat's response is larger than any response to the request should be. The request is not retried: the next response would be as large.
    TooLarge,
    /// A retry may succeed: 408, 409, 5xx, a broken connection, a response that is not of the expected kind.
    Unavailable,
    /// 429, or the provider's own concurrency limit: this key may not be used for a while.
    RateLimited,
    /// 401 or 403: the provider rejects this key.
    KeyRejected,
    /// 402, or another status with a corresponding message: this key's credit or quota is used up.
    QuotaExhausted,
    /// 404, or 400 with a corresponding message: the channel does not have this model or may not use it.
    ModelNotFound,
    /// The channel cannot do this job for another reason that is not the client's fault; another channel may.
    UnsupportedByChannel,
    /// The request itself is invalid: no other channel would accept it.
    Rejected,
    /// The provider's attempt failed permanently: another attempt would end the same way.
    Failed,
    /// The provider's safety system blocked the request or its result: no retry, no failover, no charge.
    Moderated,
    /// The request was sent and the response was lost: the provider may have accepted the request, so it must not be sent again blindly.
    OutcomeUnknown,
    /// The gateway itself cancelled the call.
    Interrupted,
}

/// The effect of an error on the state of the channel that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelEffect {
    /// The channel works: the error concerns the request. Closes an open circuit breaker.
    Works,
    /// No effect on the channel's state.
    Nothing,
    /// A failure of the channel: counts towards opening its circuit breaker.
    Failure,
    /// The key goes into cooldown for `retry_after`, or for the configured time.
    KeyRateLimited,
    /// The key goes into cooldown because the provider rejects it.
    KeyRejected,
    /// The key goes into a long cooldown because its credit or quota is used up.
    KeyQuotaExhausted,
    /// The model goes into cooldown on this channel.
    ModelNotFound,
}

/// How attempts proceed after an error of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorPolicy {
    /// Another attempt may be made, on another key or channel, as long as attempts are left.
    pub failover: bool,
    /// If there is no other channel, sending the same request to the same channel at once may help.
    pub retry_at_once: bool,
    /// The effect on the state of the channel.
    pub effect: ChannelEffect,
}

impl UpstreamErrorKind {
    /// The policy of the kind: the table that decides on cooldown, failover and retry.
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

    /// The name under which a chat's attempt is recorded (`outcome` of its attempts). Clients read it, so it must not change when a variant is
    /// renamed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_providers_failure_says_nothing_about_the_charge() {
        let error = ProviderError {
            status: Some(503),
            ..ProviderError::new(UpstreamErrorKind::Unavailable, "disk 7 is full")
        };
        let expected = "the provider failed with HTTP status 503";
        assert_eq!(error.client_message(), expected);
    }
}
