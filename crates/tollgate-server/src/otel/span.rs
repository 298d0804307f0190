//! A span that has ended, and its conversion to OTLP.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::context::SpanContext;
use super::proto::{AnyValue, KeyValue, Link, Span, Status, Value};

/// OTLP's number for the status error.
const STATUS_ERROR: i32 = 2;
/// The flag of a trace that is sampled.
const SAMPLED: u32 = 1;

/// The kind of a span, with OTLP's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanKind {
    /// A request of a client to the gateway.
    Server = 2,
    /// A request of the gateway to a provider.
    Client = 3,
    /// Work on a task that was submitted earlier.
    Consumer = 5,
}

/// A span that has ended.
#[derive(Debug)]
pub(super) struct EndedSpan {
    pub(super) context: SpanContext,
    /// The trace's `tracestate`. `None` if the caller sent none.
    pub(super) trace_state: Option<String>,
    pub(super) parent: Option<[u8; 8]>,
    /// A link to the span that caused this one.
    pub(super) link: Option<SpanContext>,
    pub(super) kind: SpanKind,
    pub(super) name: String,
    pub(super) started: SystemTime,
    pub(super) ended: SystemTime,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// The error. `None` if there was none.
    pub(super) error: Option<String>,
}

impl From<EndedSpan> for Span {
    fn from(span: EndedSpan) -> Self {
        let trace_state = span.trace_state.unwrap_or_default();
        let link = |context: SpanContext| Link {
            trace_id: context.trace_id.to_vec(),
            span_id: context.span_id.to_vec(),
            trace_state: trace_state.clone(),
        };
        Self {
            links: span.link.map(link).into_iter().collect(),
            trace_id: span.context.trace_id.to_vec(),
            span_id: span.context.span_id.to_vec(),
            parent_span_id: span.parent.map(|id| id.to_vec()).unwrap_or_default(),
            name: span.name,
            kind: span.kind as i32,
            start_time_unix_nano: nanos(span.started),
            end_time_unix_nano: nanos(span.ended),
            attributes: span.attributes.into_iter().map(key_value).collect(),
            trace_state,
            status: span.error.map(|message| Status {
                message,
                code: STATUS_ERROR,
            }),
            flags: SAMPLED,
        }
    }
}

pub(super) fn key_value((key, value): (&str, Value)) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    }
}

/// Nanoseconds since 1970.
pub(super) fn nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
