//! Errors of outgoing HTTP requests, with messages that may be shown to clients.

use std::time::Duration;

/// Why an outgoing request failed. The messages may be sent to clients: they contain no address that the client did not supply and nothing about the
/// gateway's own network.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The URL itself cannot be used.
    #[error("the URL {0}")]
    InvalidUrl(&'static str),
    /// The host name of a guarded URL has no address.
    #[error("the URL's host name cannot be resolved")]
    Unresolved,
    /// The URL or a redirect leads to an address that is not public and not allowed.
    #[error("the URL leads to an address that is not public")]
    NotPublic,
    /// No connection: TCP or TLS failed, the connect timeout passed, or the host name of an operator's URL has no address. The request was not sent.
    #[error("no connection could be made to the URL's host")]
    Connect,
    /// More redirects than allowed.
    #[error("the URL redirects more than {0} times")]
    TooManyRedirects(u32),
    /// A redirect without a usable `location`.
    #[error("the URL redirects to {0}")]
    InvalidRedirect(&'static str),
    /// A response whose status is not 2xx.
    #[error("the URL's host responded with HTTP status {0}")]
    Status(u16),
    /// The body is compressed although the request asks for an uncompressed one.
    #[error("the URL's host sent a compressed body, which was not requested")]
    Compressed,
    /// More bytes than allowed.
    #[error("the body is larger than {max} bytes")]
    TooLarge {
        /// The maximum number of bytes.
        max: u64,
    },
    /// The timeout passed. The request may have been sent.
    #[error("no complete response came within {}", seconds(.0))]
    TimedOut(Duration),
    /// The connection broke, or the response was not HTTP. The request may have been sent.
    #[error("the connection broke off before the response was complete")]
    Broken,
    /// The gateway could not write the body to the sink.
    #[error("the body could not be stored")]
    Sink(#[source] std::io::Error),
}

impl EgressError {
    /// Whether a server may have received a request that follows no redirects. If not, it can safely be sent again.
    pub fn may_have_been_sent(&self) -> bool {
        match self {
            Self::InvalidUrl(_) | Self::Unresolved | Self::NotPublic | Self::Connect => false,
            Self::TooManyRedirects(_)
            | Self::InvalidRedirect(_)
            | Self::Status(_)
            | Self::Compressed
            | Self::TooLarge { .. }
            | Self::TimedOut(_)
            | Self::Broken
            | Self::Sink(_) => true,
        }
    }
}

fn seconds(time: &Duration) -> String {
    format!(
        "{} s",
        (time.as_millis() as f64 / 1000.0 * 10.0).round() / 10.0
    )
}
