//! The headers that send a provider's server the trace context of a request (<https://www.w3.org/TR/trace-context/>).

use http::{HeaderMap, HeaderName, HeaderValue};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// `traceparent` and `tracestate` of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHeaders {
    traceparent: HeaderValue,
    tracestate: Option<HeaderValue>,
}

impl TraceHeaders {
    /// The headers with these values. `None` if `traceparent` is not a valid header value; an invalid `tracestate` is left out.
    pub fn new(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let tracestate = tracestate.and_then(|state| HeaderValue::from_str(state).ok());
        Some(Self {
            traceparent: HeaderValue::from_str(traceparent).ok()?,
            tracestate,
        })
    }

    pub(crate) fn insert_into(&self, headers: &mut HeaderMap) {
        headers.insert(TRACEPARENT, self.traceparent.clone());
        if let Some(tracestate) = &self.tracestate {
            headers.insert(TRACESTATE, tracestate.clone());
        }
    }
}
