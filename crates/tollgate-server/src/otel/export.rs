//! Sends spans to the collector: in batches, in the background, each tried a few times. Spans that find no room are dropped and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use prost::Message as _;
use tokio::sync::Notify;
use tollgate_upstream::egress::{self, Timeouts, body};

use super::proto::{
    ExportTraceServiceRequest, InstrumentationScope, Resource, ResourceSpans, ScopeSpans,
};
use super::semconv;
use super::span::{EndedSpan, key_value};
use crate::config::Traces;
use crate::metrics::Metrics;

/// Spans that may wait.
const MAX_WAITING: usize = 16_384;
/// Spans of one request to the collector.
const BATCH: usize = 512;
/// How long a span waits at most for others.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often a batch is sent, and the pause before the second time; doubled each time.
const TRIES: u32 = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// How long the rest may take at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);
const TIMEOUTS: Timeouts = Timeouts {
    connect: Some(Duration::from_secs(5)),
    first_byte: Duration::from_secs(10),
    idle: Duration::from_secs(5),
};
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");
/// Bytes of the collector's answer that are read.
const MAX_ANSWER: usize = 65_536;

/// Ended spans that wait to be sent.
#[derive(Default)]
pub(super) struct SpanQueue {
    waiting: Mutex<Waiting>,
    batch_is_full: Notify,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<EndedSpan>,
    dropped: u64,
}

impl SpanQueue {
    pub(super) fn push(&self, span: EndedSpan) {
        let mut waiting = self.locked();
        if waiting.spans.len() >= MAX_WAITING {
            waiting.dropped += 1;
            return;
        }
        waiting.spans.push_back(span);
        if waiting.spans.len() == BATCH {
            self.batch_is_full.notify_one();
        }
    }

    /// The next batch, empty if nothing waits, and how many spans were dropped since the last one.
    fn take(&self) -> (Vec<EndedSpan>, u64) {
        let mut waiting = self.locked();
        let count = waiting.spans.len().min(BATCH);
        let spans = waiting.spans.drain(..count).collect();
        (spans, std::mem::take(&mut waiting.dropped))
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the spans of this process to its collector.
pub struct Exporter {
    url: String,
    headers: HeaderMap,
    resource: Resource,
    queue: Arc<SpanQueue>,
    client: egress::Client,
    metrics: Arc<Metrics>,
}

impl Exporter {
    pub(super) fn new(
        endpoint: &str,
        settings: &Traces,
        node: &str,
        queue: Arc<SpanQueue>,
        client: egress::Client,
        metrics: Arc<Metrics>,
    ) -> Self {
        let attributes = [
            (semconv::SERVICE_NAME, settings.service_name.as_str().into()),
            (semconv::SERVICE_VERSION, env!("CARGO_PKG_VERSION").into()),
            (semconv::SERVICE_INSTANCE_ID, node.into()),
        ];
        let mut headers = settings.headers.clone();
        headers.insert(CONTENT_TYPE, PROTOBUF);
        Self {
            url: format!("{endpoint}/v1/traces"),
            headers,
            resource: Resource {
                attributes: attributes.into_iter().map(key_value).collect(),
            },
            queue,
            client,
            metrics,
        }
    }

    /// Sends spans as they end. Never returns.
    pub async fn run(&self) {
        loop {
            let _ = tokio::time::timeout(INTERVAL, self.queue.batch_is_full.notified()).await;
            self.send_waiting().await;
        }
    }

    /// Sends what waits, for a few seconds at most.
    pub async fn flush(&self) {
        if tokio::time::timeout(FLUSH_TIMEOUT, self.send_waiting())
            .await
            .is_err()
        {
            tracing::warn!("the last spans could not be sent in time");
        }
    }

    async fn send_waiting(&self) {
        loop {
            let (spans, dropped) = self.queue.take();
            self.metrics.spans_dropped(dropped);
            if spans.is_empty() {
                return;
            }
            let count = spans.len() as u64;
            let message = Bytes::from(self.encode(spans));
            match self.send_with_retry(&message).await {
                Ok(()) => self.metrics.spans_exported(count),
                Err(error) => {
                    tracing::warn!(
                        error,
                        spans = count,
                        "the collector took no spans: they are dropped"
                    );
                    self.metrics.spans_dropped(count);
                }
            }
        }
    }

    fn encode(&self, spans: Vec<EndedSpan>) -> Vec<u8> {
        let scope = InstrumentationScope {
            name: "tollgate".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let scope_spans = ScopeSpans {
            scope: Some(scope),
            spans: spans.into_iter().map(Into::into).collect(),
        };
        let request = ExportTraceServiceRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(self.resource.clone()),
                scope_spans: vec![scope_spans],
            }],
        };
        request.encode_to_vec()
    }

    async fn send_with_retry(&self, message: &Bytes) -> Result<(), String> {
        let mut pause = RETRY_PAUSE;
        let mut tries = 1;
        loop {
            match self.send(message).await {
                Ok(()) => return Ok(()),
                Err((error, may_pass)) if tries == TRIES || !may_pass => return Err(error),
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    tries += 1;
                }
            }
        }
    }

    /// Sends one request. An error comes with whether it may pass.
    async fn send(&self, message: &Bytes) -> Result<(), (String, bool)> {
        let request = Request::post(&self.url).body(body(message.clone()));
        let mut request = request.map_err(|e| (e.to_string(), false))?;
        *request.headers_mut() = self.headers.clone();
        let response = self.client.send(request, TIMEOUTS).await;
        let response = response.map_err(|e| (e.to_string(), true))?;
        let status = response.status();
        // Read to its end, so that the connection can be used again.
        let _ = response.into_body().collect(MAX_ANSWER).await;
        // The statuses that OTLP lets clients try again after.
        let may_pass = matches!(
            status,
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        );
        match status.is_success() {
            true => Ok(()),
            false => Err((format!("status {status}"), may_pass)),
        }
    }
}
