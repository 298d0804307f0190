//! Error types: invalid requests of clients, malformed responses and errors of upstreams, and errors as sent to clients.

use serde_json::Value;
use tollgate_core::ApiError;

/// A request that is rejected with HTTP status 400. Names the field and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct InvalidRequest {
    /// JSON path of the field, such as `messages[2].content[0].image_url.url`; empty if the whole body is invalid.
    pub field: String,
    /// One sentence that names the field.
    pub message: String,
}

impl InvalidRequest {
    /// `field` is invalid. `problem` continues the sentence "`field` …", such as "must be a string".
    #[cold]
    pub fn new(field: impl Into<String>, problem: impl AsRef<str>) -> Self {
        let field = field.into();
        let message = format!("`{field}` {}", problem.as_ref());
        Self { field, message }
    }

    /// The body as a whole is invalid.
    #[cold]
    pub fn body(message: impl Into<String>) -> Self {
        Self {
            field: String::new(),
            message: message.into(),
        }
    }
}

impl From<InvalidRequest> for ApiError {
    fn from(error: InvalidRequest) -> Self {
        Self::invalid(error.message)
    }
}

/// An upstream's response that breaks its format: truncated, not JSON, a stream without an end, or an error inside a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MalformedResponse {
    /// The bytes do not follow the format. The text is for the log and contains nothing of the conversation.
    #[error("the upstream's response is malformed: {0}")]
    Invalid(String),
    /// The stream ended without the format's end marker.
    #[error("the upstream's stream broke off")]
    Truncated,
    /// The response or stream contains an error object.
    #[error("{}", .0.message)]
    Upstream(UpstreamError),
    /// One event is larger than this many bytes.
    #[error("an event of the upstream is larger than {0} bytes")]
    EventTooLarge(usize),
}

/// An upstream's error, whatever its format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UpstreamError {
    /// The HTTP status that the error is equivalent to. `None` if its code or type does not determine one (`rate_limit_error` is 429,
    /// `overloaded_error` 529).
    pub status: Option<u16>,
    /// Its machine-readable code, such as `insufficient_quota`, `model_not_found` or `RESOURCE_EXHAUSTED`.
    pub code: String,
    /// Its error message.
    pub message: String,
    /// Seconds to wait before a retry (Google's `RetryInfo`). `None` if the body has no such field.
    pub retry_after: Option<u32>,
    /// The request field at fault, by its name in the upstream's format.
    pub param: Option<String>,
    /// The vendor's machine-readable details (`error.details`): Anthropic's object, Google's list.
    pub details: Option<Box<Value>>,
}

/// An error on its way to a client, to be written in the client's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorBody {
    /// The HTTP status; inside a stream, the status that it would have had.
    pub status: u16,
    /// One sentence.
    pub message: String,
    /// JSON path of the invalid field (`param` of OpenAI's error object).
    pub param: Option<String>,
    /// A machine-readable code beside the type, such as `context_length_exceeded`, `insufficient_quota`, `model_not_found`.
    pub code: Option<String>,
    /// `error.details`, only for a client of the format in which they are written: Anthropic's object, Google's list.
    pub details: Option<Value>,
    /// Whether the error is sent on a path without envelope, with the vendor's own error types. On paths with the
    /// `{code, data}` envelope only the types in docs/errors.md are used.
    pub bare: bool,
}
