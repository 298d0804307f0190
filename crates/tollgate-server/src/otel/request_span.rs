//! The span of a request, and the spans of its attempts at providers.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use http::{HeaderMap, HeaderName};
use tollgate_upstream::{Channel, TraceHeaders};

use super::content::ChatContent;
use super::context::SpanContext;
use super::proto::Value;
use super::semconv;
use super::span::{EndedSpan, SpanKind};
use super::trace_state::TraceState;
use super::tracer::tracer;
use crate::logging::{ChatSummary, RequestLine};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The span of a request whose trace is sampled.
#[derive(Debug)]
pub struct RequestSpan {
    context: SpanContext,
    parent: Option<[u8; 8]>,
    state: Option<TraceState>,
    route: String,
    started: SystemTime,
    attempts: Mutex<Vec<AttemptSpan>>,
    /// The recorder of the content; set if the API key enables it.
    content: OnceLock<Arc<ChatContent>>,
}

/// An attempt at a chat.
#[derive(Debug)]
struct AttemptSpan {
    span_id: [u8; 8],
    started: SystemTime,
    /// When the attempt ended; `None` while it runs.
    ended: Option<SystemTime>,
    channel: String,
    provider: String,
    model: String,
    error: Option<&'static str>,
}

impl RequestSpan {
    /// Begins the span of a request to `route`. `None` if there is no collector, or the trace is not sampled: if the caller sent a trace, its flag
    /// decides, else the configured ratio does.
    pub fn begin(headers: &HeaderMap, route: &str) -> Option<Self> {
        let tracer = tracer()?;
        let parent = headers
            .get(TRACEPARENT)
            .and_then(|value| value.to_str().ok());
        let parent = parent.and_then(SpanContext::parse);
        let is_sampled = parent.map_or_else(|| tracer.sample_ratio.draw(), |(_, sampled)| sampled);
        let parent = parent.map(|(parent, _)| parent);
        is_sampled.then(|| Self {
            context: SpanContext {
                trace_id: parent.map_or_else(rand::random, |parent| parent.trace_id),
                span_id: rand::random(),
            },
            parent: parent.map(|parent| parent.span_id),
            // A `tracestate` without a parent is ignored.
            state: parent.and_then(|_| TraceState::from_headers(headers)),
            route: route.to_owned(),
            started: SystemTime::now(),
            attempts: Mutex::default(),
            content: OnceLock::new(),
        })
    }

    /// The parent of further spans of the request.
    pub fn context(&self) -> SpanContext {
        self.context
    }

    /// The `tracestate` of the request's trace. `None` if the caller sent none.
    pub fn state(&self) -> Option<&TraceState> {
        self.state.as_ref()
    }

    /// Enables recording of the chat's content.
    pub fn set_content(&self, content: ChatContent) {
        let _ = self.content.set(Arc::new(content));
    }

    /// The recorder of the chat's content. `None` if the content is not recorded.
    pub fn content(&self) -> Option<Arc<ChatContent>> {
        self.content.get().cloned()
    }

    /// Begins the span of an attempt at a chat. Returns the trace headers for the provider; `None` if the channel forwards none.
    pub fn begin_attempt(&self, channel: &Channel, model: &str) -> Option<TraceHeaders> {
        let attempt = AttemptSpan {
            span_id: rand::random(),
            started: SystemTime::now(),
            ended: None,
            channel: channel.name.clone(),
            provider: channel.kind.clone(),
            model: model.to_owned(),
            error: None,
        };
        let context = SpanContext {
            span_id: attempt.span_id,
            ..self.context
        };
        self.attempts().push(attempt);
        let traceparent = channel.trace_context.then(|| context.to_string())?;
        TraceHeaders::new(&traceparent, self.state.as_ref().map(TraceState::as_str))
    }

    /// The span of the attempt that began last, or the request's if none did.
    pub fn attempt_context(&self) -> SpanContext {
        let attempts = self.attempts();
        let span_id = attempts.last().map(|attempt| attempt.span_id);
        SpanContext {
            span_id: span_id.unwrap_or(self.context.span_id),
            ..self.context
        }
    }

    /// Ends the attempt that began last with this kind of error.
    pub fn fail_attempt(&self, error: &'static str) {
        if let Some(attempt) = self.attempts().last_mut() {
            attempt.ended = Some(SystemTime::now());
            attempt.error = Some(error);
        }
    }

    fn attempts(&self) -> std::sync::MutexGuard<'_, Vec<AttemptSpan>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the request's span and those of its attempts; called when all work on the request has ended.
    pub fn end(&self, line: &RequestLine<'_>) {
        let Some(tracer) = tracer() else { return };
        let ended = SystemTime::now();
        for attempt in self.attempts().drain(..) {
            tracer
                .queue
                .push(self.attempt_span(attempt, line.chat.as_ref(), ended));
        }
        let mut attributes: Vec<(&'static str, Value)> = vec![
            (semconv::HTTP_REQUEST_METHOD, line.method.into()),
            (semconv::HTTP_ROUTE, self.route.as_str().into()),
            (semconv::URL_PATH, line.path.into()),
            (
                semconv::HTTP_RESPONSE_STATUS_CODE,
                i64::from(line.status).into(),
            ),
            (semconv::REQUEST_ID, line.request_id.into()),
        ];
        if let Some(client) = line.client {
            attributes.push((semconv::CLIENT_ADDRESS, client.to_string().into()));
        }
        if let Some(key_id) = line.key_id {
            attributes.push((semconv::KEY_ID, key_id.into()));
        }
        if let Some(chat) = &line.chat {
            add_chat(chat, &mut attributes);
        }
        if let Some(content) = self.content.get() {
            attributes.extend(content.attributes());
        }
        let is_error = line.status >= 500;
        if is_error {
            attributes.push((semconv::ERROR_TYPE, line.status.to_string().into()));
        }
        tracer.queue.push(EndedSpan {
            context: self.context,
            trace_state: self.state.as_ref().map(TraceState::to_string),
            parent: self.parent,
            link: None,
            kind: SpanKind::Server,
            name: format!("{} {}", line.method, self.route),
            started: self.started,
            ended,
            attributes,
            error: is_error.then(|| format!("status {}", line.status)),
        });
    }

    fn attempt_span(
        &self,
        attempt: AttemptSpan,
        chat: Option<&ChatSummary<'_>>,
        ended: SystemTime,
    ) -> EndedSpan {
        let mut attributes: Vec<(&'static str, Value)> = vec![
            (semconv::OPERATION_NAME, semconv::CHAT.into()),
            (
                semconv::provider_attribute(),
                semconv::provider(&attempt.provider).into(),
            ),
            (semconv::REQUEST_MODEL, attempt.model.as_str().into()),
            (semconv::CHANNEL, attempt.channel.as_str().into()),
        ];
        match (attempt.error, chat) {
            (Some(error), _) => attributes.push((semconv::ERROR_TYPE, error.into())),
            (None, Some(chat)) => add_usage(chat, &mut attributes),
            (None, None) => {}
        }
        EndedSpan {
            context: SpanContext {
                span_id: attempt.span_id,
                ..self.context
            },
            trace_state: self.state.as_ref().map(TraceState::to_string),
            parent: Some(self.context.span_id),
            link: None,
            kind: SpanKind::Client,
            name: format!("{} {}", semconv::CHAT, attempt.model),
            started: attempt.started,
            ended: attempt.ended.unwrap_or(ended),
            attributes,
            error: attempt.error.map(str::to_owned),
        }
    }
}

fn add_chat(chat: &ChatSummary<'_>, attributes: &mut Vec<(&'static str, Value)>) {
    attributes.extend([
        (semconv::OPERATION_NAME, semconv::CHAT.into()),
        (semconv::REQUEST_MODEL, chat.model.into()),
        (semconv::ATTEMPTS, i64::from(chat.attempts).into()),
        (semconv::COST, chat.cost.to_string().into()),
        (semconv::OUTCOME, chat.outcome.into()),
    ]);
    if let Some(channel) = chat.channel {
        attributes.push((semconv::CHANNEL, channel.into()));
    }
    add_usage(chat, attributes);
}

fn add_usage(chat: &ChatSummary<'_>, attributes: &mut Vec<(&'static str, Value)>) {
    let tokens = |count: u64| i64::try_from(count).unwrap_or(i64::MAX).into();
    attributes.push((semconv::INPUT_TOKENS, tokens(chat.input_tokens)));
    attributes.push((semconv::OUTPUT_TOKENS, tokens(chat.output_tokens)));
}
