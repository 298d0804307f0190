//! Sends spans to the collector: in batches, in the background, with a few attempts each. If the queue is full, spans are dropped and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use tokio::sync::Notify;
use tollgate_config::Traces;
use tollgate_upstream::egress;

use super::collector::{Collector, resource, scope};
use super::proto::{ExportTraceServiceRequest, Resource, ResourceSpans, ScopeSpans};
use super::span::EndedSpan;
use crate::metrics::Metrics;

/// Spans that may wait to be sent.
const MAX_WAITING: usize = 16_384;
/// Spans of one request to the collector.
const BATCH: usize = 512;
/// The longest time that a span waits for others.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often a batch is sent, and the pause before the second attempt; doubled each time.
const TRIES: u32 = 4;
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Timeout of the last export at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

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

    /// Takes the next batch, empty if no span waits, and the number of spans that were dropped since the last batch.
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
    collector: Collector,
    resource: Resource,
    queue: Arc<SpanQueue>,
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
        Self {
            collector: Collector::new(endpoint, "/v1/traces", settings, client),
            resource: resource(settings, node),
            queue,
            metrics,
        }
    }

    /// Sends spans in a loop. Never returns.
    pub async fn run(&self) {
        loop {
            let _ = tokio::time::timeout(INTERVAL, self.queue.batch_is_full.notified()).await;
            self.send_waiting().await;
        }
    }

    /// Sends the waiting spans, for a few seconds at most.
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
                        "cannot send spans to the collector: they are dropped"
                    );
                    self.metrics.spans_dropped(count);
                }
            }
        }
    }

    fn encode(&self, spans: Vec<EndedSpan>) -> Vec<u8> {
        let scope_spans = ScopeSpans {
            scope: Some(scope()),
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
            match self.collector.send(message).await {
                Ok(_) => return Ok(()),
                Err(error) if tries == TRIES || !error.is_retryable => return Err(error.message),
                Err(_) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                    tries += 1;
                }
            }
        }
    }
}
