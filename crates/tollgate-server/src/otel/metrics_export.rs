//! Sends the metrics to the collector at an interval. They are cumulative: if a message is lost, the next one includes its counts.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use prometheus::proto::MetricFamily;
use prost::Message as _;
use tollgate_config::Traces;
use tollgate_upstream::egress;

use super::collector::{Collector, SendError, resource, scope};
use super::metric_data::Points;
use super::metrics_proto::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse, ResourceMetrics, ScopeMetrics,
};
use super::proto::Resource;
use super::span::nanos;
use crate::metrics::Exemplars;

/// The longest pause that a collector can request.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// Timeout of the last message at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// The metrics at one moment.
pub struct Snapshot {
    /// Every metric.
    pub families: Vec<MetricFamily>,
    /// The exemplars of the histograms.
    pub exemplars: Exemplars,
    /// The kinds of providers by the names of their channels.
    pub providers: HashMap<String, String>,
}

/// Reads the metrics.
pub type SnapshotSource = Box<dyn Fn() -> BoxFuture<'static, Snapshot> + Send + Sync>;

/// Sends the metrics of this process to its collector.
pub struct MetricsExporter {
    collector: Collector,
    resource: Resource,
    interval: Duration,
    started: SystemTime,
    source: SnapshotSource,
}

impl MetricsExporter {
    /// An exporter that sends the metrics that `source` returns, counted since `started`, as the process `node`. `None` if no collector or no
    /// interval is configured.
    pub fn new(
        settings: &Traces,
        node: &str,
        client: egress::Client,
        started: SystemTime,
        source: SnapshotSource,
    ) -> Option<Self> {
        let endpoint = settings.endpoint.as_ref()?;
        let interval = settings.metrics_interval;
        (!interval.is_zero()).then(|| Self {
            collector: Collector::new(endpoint, "/v1/metrics", settings, client),
            resource: resource(settings, node),
            interval,
            started,
            source,
        })
    }

    /// Sends the metrics at the interval, or after the pause that a busy collector requests. Never returns.
    pub async fn run(&self) {
        let mut pause = self.interval;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.send().await {
                Ok(()) => self.interval,
                Err(error) => {
                    tracing::warn!(
                        error = error.message,
                        "cannot send the metrics to the collector: the next message includes their counts"
                    );
                    let requested_pause = error.retry_after.map(|pause| pause.min(MAX_PAUSE));
                    // At least a second, even if the collector requests less.
                    requested_pause.map_or(self.interval, |pause| pause.max(Duration::from_secs(1)))
                }
            };
        }
    }

    /// Sends the metrics a last time, for a few seconds at most.
    pub async fn flush(&self) {
        match tokio::time::timeout(FLUSH_TIMEOUT, self.send()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(
                    error = error.message,
                    "cannot send the last metrics to the collector"
                );
            }
            Err(_) => tracing::warn!("the last metrics could not be sent in time"),
        }
    }

    async fn send(&self) -> Result<(), SendError> {
        let message = Bytes::from(self.encode(&(self.source)().await));
        let response = self.collector.send(&message).await?;
        // Collectors may respond with an empty body, or with text: that is no error.
        let response = ExportMetricsServiceResponse::decode(response).unwrap_or_default();
        let partial = response.partial_success.unwrap_or_default();
        if partial.rejected_data_points > 0 {
            tracing::warn!(
                points = partial.rejected_data_points,
                error = partial.error_message,
                "the collector rejected some of the metrics"
            );
        }
        Ok(())
    }

    fn encode(&self, snapshot: &Snapshot) -> Vec<u8> {
        let points = Points {
            started: nanos(self.started),
            now: nanos(SystemTime::now()),
            exemplars: &snapshot.exemplars,
            providers: &snapshot.providers,
        };
        let families = snapshot.families.iter();
        let request = ExportMetricsServiceRequest {
            resource_metrics: vec![ResourceMetrics {
                resource: Some(self.resource.clone()),
                scope_metrics: vec![ScopeMetrics {
                    scope: Some(scope()),
                    metrics: families
                        .filter_map(|family| points.metric(family))
                        .collect(),
                }],
            }],
        };
        request.encode_to_vec()
    }
}
