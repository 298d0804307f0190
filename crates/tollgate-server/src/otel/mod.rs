//! OpenTelemetry: sends the traces of requests and tasks, and the metrics, to a collector by OTLP over HTTP. Spans contain times, costs and channels;
//! the content of requests and responses is recorded only for API keys with `trace_content`. Without a collector nothing is recorded, which costs one
//! check per request.

mod collector;
mod content;
pub mod context;
mod export;
mod metric_data;
mod metrics_export;
mod metrics_proto;
mod proto;
mod request_span;
mod semconv;
mod span;
mod task_span;
mod trace_state;
mod tracer;

use std::sync::Arc;

use tollgate_upstream::egress;

pub use content::ChatContent;
pub use export::Exporter;
pub use metrics_export::{MetricsExporter, Snapshot, SnapshotSource};
pub use request_span::RequestSpan;
pub use task_span::{EndedTask, OpenAttempt, TaskTrace, system_time};
pub use trace_state::TraceState;

use tollgate_config::Traces;

use crate::metrics::Metrics;
use export::SpanQueue;
use tracer::{Tracer, set_tracer, tracer};

/// Whether spans are recorded.
pub fn is_on() -> bool {
    tracer().is_some()
}

/// Starts to record spans if a collector is configured; the returned exporter sends them. `node` is this process's name.
pub fn start(
    settings: &Traces,
    node: &str,
    client: egress::Client,
    metrics: Arc<Metrics>,
) -> Option<Exporter> {
    let endpoint = settings.endpoint.as_ref()?;
    let queue = Arc::<SpanQueue>::default();
    set_tracer(Tracer {
        sample_ratio: settings.sample_ratio,
        queue: Arc::clone(&queue),
    });
    Some(Exporter::new(
        endpoint, settings, node, queue, client, metrics,
    ))
}
