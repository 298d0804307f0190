//! What can be wrong: with a client's request, with an upstream's answer; and errors on their way to a client.

use tollgate_core::ApiError;

/// A request that cannot be taken: 400. Names the field and what is allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Bad {
    /// The member at fault as a path, `messages[2].content[0].image_url.url`; empty where it is the whole body.
    pub field: String,
    /// One sentence for a person that names the field.
    pub message: String,
}

impl Bad {
    /// `field` is wrong; `why` continues the sentence "`field` …".
    pub fn new(field: impl Into<String>, why: impl AsRef<str>) -> Self {
        let field = field.into();
        let message = format!("`{field}` {}", why.as_ref());
        Self { field, message }
    }

    /// The body as a whole is wrong.
    pub fn body(message: impl Into<String>) -> Self {
        Self {
            field: String::new(),
            message: message.into(),
        }
    }
}

impl From<Bad> for ApiError {
    fn from(bad: Bad) -> Self {
        Self::invalid(bad.message)
    }
}

/// An upstream's answer that is not what its format says: truncated, no JSON, a stream without an end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Garbled {
    /// The bytes are not the format's. The text is for the log, and names no content.
    #[error("the upstream's answer is malformed: {0}")]
    Malformed(String),
    /// The stream ended without its end.
    #[error("the upstream's stream broke off")]
    BrokeOff,
    /// The stream carried an error.
    #[error("{}", .0.message)]
    Upstream(ErrorWords),
    /// One event is larger than any honest one.
    #[error("an event of the upstream is larger than {0} bytes")]
    TooLarge(usize),
}

/// What an upstream's error said, whatever its format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorWords {
    /// The HTTP status that it stands for, where the words tell (`rate_limit_error` is 429, `overloaded_error` 529).
    pub status: Option<u16>,
    /// Its machine-readable name, such as `insufficient_quota`, `model_not_found` or `RESOURCE_EXHAUSTED`.
    pub code: String,
    /// Its sentence.
    pub message: String,
    /// Seconds to wait, where the body says so (Google's RetryInfo).
    pub retry_after: Option<u32>,
}

/// An error on its way to the client, to be rendered in the client's format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireError {
    /// The HTTP status; inside a stream, the status it would have had.
    pub status: u16,
    /// One sentence.
    pub message: String,
    /// The field at fault (`param` of OpenAI's envelope).
    pub param: Option<String>,
    /// A machine-readable name beside the type, such as `context_length_exceeded`, `insufficient_quota`, `model_not_found`.
    pub code: Option<String>,
    /// Whether the vendor's own full list of types may be used (bare mounts) or only SPEC.md's (SPEC.md's paths).
    pub bare: bool,
}
