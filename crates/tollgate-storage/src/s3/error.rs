//! The errors of requests to the bucket.

use std::io;
use std::time::Duration;

use http::StatusCode;
use tollgate_upstream::egress::EgressError;

/// Why a request to the bucket failed. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
pub(super) enum S3Error {
    /// No complete response was received.
    #[error("S3: {operation}: {}", connection_failure(.source))]
    Connection {
        operation: &'static str,
        source: EgressError,
    },
    /// The response is an error.
    #[error("S3: {operation}: HTTP status {}{}", status.as_u16(), details(.code, .message))]
    Status {
        operation: &'static str,
        status: StatusCode,
        /// The error code in the response; empty if there is none.
        code: String,
        message: String,
    },
    /// The server stored or sent other bytes than it should have.
    #[error("S3: {operation}: {what}")]
    Mismatch {
        operation: &'static str,
        what: String,
    },
    /// No access keys were found.
    #[error("S3: {0}")]
    Credentials(String),
    /// The file on this machine cannot be read.
    #[error("cannot read a temporary file: {0}")]
    Local(#[from] io::Error),
}

impl S3Error {
    /// Whether the same request may succeed if it is retried soon.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::Connection { .. } | Self::Mismatch { .. } => true,
            Self::Status { status, code, .. } => {
                matches!(status.as_u16(), 408 | 429 | 500 | 502..=504)
                    // The server received other bytes than were sent.
                    || matches!(code.as_str(), "BadDigest" | "RequestTimeout" | "IncompleteBody")
            }
            Self::Credentials(_) | Self::Local(_) => false,
        }
    }

    /// Whether the server reports that the object or upload does not exist.
    pub(super) fn is_missing(&self) -> bool {
        match self {
            Self::Status { status, code, .. } => {
                *status == StatusCode::NOT_FOUND && code != "NoSuchBucket"
            }
            _ => false,
        }
    }
}

impl From<S3Error> for io::Error {
    fn from(error: S3Error) -> Self {
        match error {
            S3Error::Local(error) => error,
            error if error.is_missing() => Self::new(io::ErrorKind::NotFound, error),
            error => Self::other(error),
        }
    }
}

fn connection_failure(error: &EgressError) -> String {
    match error {
        EgressError::Connect => "no connection could be made".to_owned(),
        EgressError::TimedOut(time) => {
            format!("no complete response came within {}", seconds(time))
        }
        EgressError::Broken => "the connection broke off".to_owned(),
        error => error.to_string(),
    }
}

fn seconds(time: &Duration) -> String {
    format!("{} s", time.as_secs())
}

fn details(code: &str, message: &str) -> String {
    match (code, message) {
        ("", "") => String::new(),
        (code, "") => format!(" ({code})"),
        (code, message) => format!(" ({code}: {message})"),
    }
}

/// The text of the first element `name` of an XML document. This simple search is enough for S3 responses: these elements have no attributes, and
/// their texts no escapes that matter in a log.
pub(super) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text)
}
