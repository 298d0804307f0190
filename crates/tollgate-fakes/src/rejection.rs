//! Rejected requests, and the errors that a scenario asks for.

use serde_json::Value;

/// Why a request is rejected, in the provider's words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    /// The provider's word for the kind of error.
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// A name for the rule that was broken: shown in the header `x-fake-rule`.
    pub(crate) rule: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) details: Vec<Value>,
    /// How the work went, and nothing that the request did wrong.
    pub(crate) is_outcome: bool,
}

impl Rejection {
    pub(crate) fn new(
        status: u16,
        kind: &'static str,
        rule: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            kind,
            rule,
            message: message.into(),
            ..Self::default()
        }
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }

    pub(crate) fn about_work(mut self) -> Self {
        self.is_outcome = true;
        self
    }

    pub(crate) fn detail(mut self, detail: Value) -> Self {
        self.details.push(detail);
        self
    }
}

impl ProviderError {
    /// What work is answered with that ended so; `None` if it succeeded.
    pub(crate) fn of_outcome(outcome: &str) -> Option<Self> {
        match outcome {
            "blocked" => Some(Self::Blocked),
            "filtered" => Some(Self::Filtered),
            "failed" => Some(Self::Status(500)),
            "expired" => Some(Self::Status(504)),
            _ => None,
        }
    }
}

/// Either nothing is wrong, or this.
pub(crate) type Checked = Result<(), Box<Rejection>>;

/// A value, or why there is none.
pub(crate) type OrRejected<T> = Result<T, Box<Rejection>>;

/// An error that a scenario asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProviderError {
    Status(u16),
    RateLimited {
        retry_after: u64,
    },
    QuotaExhausted,
    KeyRefused,
    ModelMissing,
    Overloaded,
    /// Moderation does not let in what was asked for.
    Blocked,
    /// Moderation does not let out what was made.
    Filtered,
}
