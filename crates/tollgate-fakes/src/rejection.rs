//! [`Rejection`]: why a request is rejected.

use serde_json::Value;

/// Why a request is rejected, in the provider's terms.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    /// The provider's name for the kind of error.
    pub(crate) kind: &'static str,
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    /// The name of the broken rule: returned in the header `x-fake-rule`.
    pub(crate) rule: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) details: Vec<Value>,
    /// Whether the rejection reports the outcome of the work rather than an error in the request.
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
