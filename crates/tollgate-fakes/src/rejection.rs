//! Rejected requests.

use serde_json::Value;

/// Why a request is rejected, as the provider puts it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    /// The provider's name for the kind of error.
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// A name for the broken rule: shown in the header `x-fake-rule`.
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
}

pub(crate) type Checked = Result<(), Box<Rejection>>;

pub(crate) type OrRejected<T> = Result<T, Box<Rejection>>;
