//! Collects data of a request while it is handled, for its log line, span and headers. The line is written when no work on the request is left: after
//! the end of a stream, and after its charge.

use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use http::Method;
use tollgate_core::Amount;
use tollgate_store::{ChatEnd, Key, NewChat};
use tollgate_upstream::{Channel, TraceHeaders};

use super::request_id::RequestId;
use crate::logging::{self, ChatSummary, RequestLine};
use crate::otel::context::SpanContext;
use crate::otel::{ChatContent, RequestSpan};

/// The notes of a request; clones share them.
#[derive(Debug, Clone, Default)]
pub struct RequestNotes(Arc<Notes>);

#[derive(Debug, Default)]
struct Notes {
    key: OnceLock<Arc<Key>>,
    chat: OnceLock<SettledChat>,
    response: OnceLock<ResponseNotes>,
    span: OnceLock<Box<RequestSpan>>,
}

/// A chat that was recorded.
#[derive(Debug)]
pub struct SettledChat {
    /// The chat's request.
    pub chat: Arc<NewChat>,
    /// The chat's end.
    pub end: Arc<ChatEnd>,
    /// Attempts that failed.
    pub failed_attempts: u32,
    /// What was charged.
    pub cost: Amount,
}

/// The head of a response, and the request that it belongs to.
#[derive(Debug)]
pub(super) struct ResponseNotes {
    pub(super) method: Method,
    /// The path. It is not the request's URI, because that would keep the complete buffer of the request's head in memory while the response is sent.
    pub(super) path: Box<str>,
    pub(super) request_id: RequestId,
    pub(super) client: Option<IpAddr>,
    pub(super) started: Instant,
    pub(super) status: u16,
    /// Whether a log line is written for the request.
    pub(super) is_logged: bool,
    /// The time from the request to the head of the response.
    pub(super) elapsed: Duration,
}

impl RequestNotes {
    /// Sets the API key with which the request was authenticated.
    pub fn set_key(&self, key: &Arc<Key>) {
        let _ = self.0.key.set(Arc::clone(key));
    }

    /// Sets the charge of a chat.
    pub fn set_chat(&self, chat: SettledChat) {
        let _ = self.0.chat.set(chat);
    }

    /// Sets the span of a request whose trace is sampled.
    pub(super) fn set_span(&self, span: RequestSpan) {
        let _ = self.0.span.set(Box::new(span));
    }

    /// Enables recording of the chat's content with its trace, if the API key enables it and the trace is sampled.
    pub fn record_content(&self, key: &Key, content: impl FnOnce() -> ChatContent) {
        if let Some(span) = self.0.span.get().filter(|_| key.limits.trace_content) {
            span.set_content(content());
        }
    }

    /// The recorder of the chat's content. `None` if the content is not recorded.
    pub fn content(&self) -> Option<Arc<ChatContent>> {
        self.0.span.get()?.content()
    }

    /// Begins the span of an attempt at a chat. Returns the trace headers for the provider; `None` if the trace is not sampled, or the channel
    /// forwards none.
    pub fn begin_attempt(&self, channel: &Channel, model: &str) -> Option<TraceHeaders> {
        self.0.span.get()?.begin_attempt(channel, model)
    }

    /// Ends the attempt that began last with this kind of error.
    pub fn fail_attempt(&self, error: &'static str) {
        if let Some(span) = self.0.span.get() {
            span.fail_attempt(error);
        }
    }

    /// The span of the attempt that began last. `None` if the request's trace is not sampled.
    pub fn attempt_span(&self) -> Option<SpanContext> {
        self.0.span.get().map(|span| span.attempt_context())
    }

    /// Sets the response: a log line, a span or both are written for the request.
    pub(super) fn set_response(&self, response: ResponseNotes) {
        let _ = self.0.response.set(response);
    }

    /// The key. `None` if the request has no valid key.
    pub(super) fn key(&self) -> Option<&Key> {
        self.0.key.get().map(Arc::as_ref)
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let Some(response) = self.response.get() else {
            return;
        };
        let chat = self.chat.get().map(|settled| {
            let SettledChat { chat, end, .. } = settled;
            let tokens = &end.tokens;
            ChatSummary {
                model: &chat.model,
                channel: end.channel.as_deref(),
                // A stream that broke off is among the failed attempts.
                attempts: settled.failed_attempts
                    + u32::from(end.channel.is_some() && end.outcome != "cut"),
                input_tokens: tokens.input + tokens.cached_input + tokens.cache_write,
                output_tokens: tokens.output + tokens.reasoning,
                cost: settled.cost,
                outcome: end.outcome,
                total_micros: response.started.elapsed().as_micros(),
            }
        });
        let line = RequestLine {
            method: response.method.as_str(),
            path: &response.path,
            status: response.status,
            micros: response.elapsed.as_micros(),
            request_id: response.request_id.as_str(),
            key_id: self.key.get().map(|key| key.id.as_str()),
            client: response.client,
            chat,
        };
        if response.is_logged {
            logging::write_request_line(&line);
        }
        if let Some(span) = self.span.get() {
            span.end(&line);
        }
    }
}
