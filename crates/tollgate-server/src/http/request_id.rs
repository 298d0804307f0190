//! The id of a request, and its trace.

use http::{HeaderName, HeaderValue};
use tollgate_core::id;

use crate::otel::context::SpanContext;
use crate::otel::{RequestSpan, TraceState};

/// The header with the id.
pub(super) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id, in bytes, that is accepted from a client.
const MAX_REQUEST_ID: usize = 128;

/// The request's id: the client's `x-request-id`, or a new one. It is on every response and in every log line.
#[derive(Debug, Clone)]
pub struct RequestId {
    pub(super) text: HeaderValue,
    pub(super) trace: Option<SpanContext>,
    trace_state: Option<TraceState>,
}

impl RequestId {
    /// The id's text.
    pub fn as_str(&self) -> &str {
        self.text.to_str().unwrap_or_default()
    }

    /// The span of the request. `None` if its trace is not sampled.
    pub fn trace(&self) -> Option<SpanContext> {
        self.trace
    }

    /// The request's `tracestate`. `None` if the caller sent none.
    pub fn trace_state(&self) -> Option<&TraceState> {
        self.trace_state.as_ref()
    }

    /// The id of a request, with the context of its span.
    pub(super) fn for_request<B>(request: &http::Request<B>, span: Option<&RequestSpan>) -> Self {
        let from_client = request
            .headers()
            .get(X_REQUEST_ID)
            .filter(|v| is_acceptable_id(v.as_bytes()));
        // A copy: the original would keep the complete buffer of the request's head in memory.
        let from_client = from_client.and_then(|v| HeaderValue::from_bytes(v.as_bytes()).ok());
        let generate =
            || HeaderValue::from_str(&id::request_id()).unwrap_or(HeaderValue::from_static("none"));
        Self {
            text: from_client.unwrap_or_else(generate),
            trace: span.map(RequestSpan::context),
            trace_state: span.and_then(RequestSpan::state).cloned(),
        }
    }
}

fn is_acceptable_id(id: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID).contains(&id.len())
        && id
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_of_clients_are_accepted_only_if_safe_in_headers_and_logs() {
        for id in ["a", "req_1.2:3-4", &"x".repeat(128)] {
            assert!(is_acceptable_id(id.as_bytes()), "{id}");
        }
        for id in ["", "a b", "a\"b", "ü", &"x".repeat(129)] {
            assert!(!is_acceptable_id(id.as_bytes()), "{id}");
        }
    }
}
