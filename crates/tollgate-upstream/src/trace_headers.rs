//! The headers that tell a provider's server which span a request belongs to (<https://www.w3.org/TR/trace-context/>).

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
    /// The headers with these values. `None` if no header can have `traceparent`; a `tracestate` that none can have is left out.
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
