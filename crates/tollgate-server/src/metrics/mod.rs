//! Metrics for Prometheus. Handles are resolved once, so that counting needs only an atomic addition.

mod chat;
mod cluster;
mod exemplars;
mod open_metrics;
mod redis;
mod register;
mod text_format;
mod timings;

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use foldhash::fast::RandomState;
use prometheus::proto::MetricFamily;
use prometheus::{
    Counter, Encoder as _, Gauge, IntCounter, IntCounterVec, Opts, Registry, TextEncoder,
};
use tollgate_core::{Amount, Millis};
use tollgate_store::{Reconciled, StoreTotals, WriterStats};

use chat::ChatMetrics;
pub use chat::{ChatHoldKind, ChatTimes, EndedChat, FIRST_TOKEN_SECONDS, REQUEST_TOKENS};
use cluster::ClusterMetrics;
pub use exemplars::{Exemplar, Exemplars};
use exemplars::{ExemplarStore, LinkedHistogram};
pub use redis::RedisMetrics;
use register::{new_counters, register};
pub use text_format::TextFormat;
pub use timings::PROVIDER_SECONDS;
use timings::Timings;

use crate::otel::context::SpanContext;

/// Upper bounds of the latency buckets, in seconds.
const BUCKETS: &[f64] = &[
    0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

type Routes = HashMap<String, HashMap<String, Arc<RouteMetrics>, RandomState>, RandomState>;

/// All metrics.
pub struct Metrics {
    registry: Registry,
    exemplars: ExemplarStore,
    started: SystemTime,
    /// The handles of routes, by method, then route.
    routes: RwLock<Routes>,
    requests: IntCounterVec,
    tasks_ended: IntCounterVec,
    callbacks: IntCounterVec,
    callbacks_waiting: Gauge,
    background_failures: IntCounterVec,
    spans: IntCounterVec,
    chats: ChatMetrics,
    cluster: ClusterMetrics,
    timings: Timings,
    uploads: IntCounter,
    upload_bytes: IntCounter,
    submitted: Gauge,
    in_progress: Gauge,
    queue_age: Gauge,
    balance: Gauge,
    held: Gauge,
    used: Gauge,
    debt: Gauge,
    commits: Counter,
    operations: Counter,
}

/// The handles of one route.
pub struct RouteMetrics {
    /// By status class, 1xx to 5xx.
    statuses: [IntCounter; 5],
    latency: LinkedHistogram,
}

impl RouteMetrics {
    /// Counts a response; `span` is the request's, if its trace is sampled.
    pub fn count(&self, status: u16, seconds: f64, span: Option<SpanContext>) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.statuses[class].inc();
        self.latency.observe(seconds, span);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All metrics at zero.
    ///
    /// # Panics
    /// Never: the names are constants, each registered once.
    pub fn new() -> Self {
        let registry = Registry::new();
        let counters =
            |name: &str, help: &str, labels: &[&str]| new_counters(&registry, name, help, labels);
        let counter = |name: &str, help: &str| {
            register(&registry, IntCounter::new(name, help).expect("valid name"))
        };
        let float = |name: &str, help: &str| {
            register(&registry, Counter::new(name, help).expect("valid name"))
        };
        let gauge = |opts: Opts| register(&registry, Gauge::with_opts(opts).expect("valid name"));
        let tasks = |state: &str| {
            gauge(
                Opts::new("tollgate_tasks", "Unfinished tasks by state")
                    .const_label("state", state),
            )
        };
        let sum =
            |name: &str, what: &str| gauge(Opts::new(name, format!("{what}, all users, in units")));
        let build = gauge(
            Opts::new("tollgate_build_info", "The version that runs")
                .const_label("version", env!("CARGO_PKG_VERSION")),
        );
        build.set(1.0);
        let exemplars = ExemplarStore::default();
        let timings = Timings::new(&registry, &exemplars);
        Self {
            requests: counters(
                "tollgate_http_requests_total",
                "HTTP requests to which a response was sent",
                &["method", "route", "status"],
            ),
            tasks_ended: counters(
                "tollgate_tasks_ended_total",
                "Tasks that ended here",
                &["family", "state"],
            ),
            callbacks: counters(
                "tollgate_callbacks_total",
                "Tries of callbacks",
                &["outcome"],
            ),
            spans: counters(
                "tollgate_trace_spans_total",
                "Spans that were sent to the collector, or dropped",
                &["outcome"],
            ),
            background_failures: counters(
                "tollgate_background_failures_total",
                "Background loops that ended or panicked and were restarted, and tasks whose worker panicked",
                &["job"],
            ),
            callbacks_waiting: gauge(Opts::new(
                "tollgate_callbacks_waiting",
                "Callbacks that are still to be delivered",
            )),
            chats: ChatMetrics::new(&registry, &exemplars, &timings.provider),
            cluster: ClusterMetrics::new(&registry),
            timings,
            uploads: counter("tollgate_uploads_total", "Images uploaded"),
            upload_bytes: counter("tollgate_upload_bytes_total", "Bytes of images uploaded"),
            submitted: tasks("submitted"),
            in_progress: tasks("in_progress"),
            queue_age: gauge(Opts::new(
                "tollgate_queue_age_seconds",
                "How long the oldest waiting task has been due",
            )),
            balance: sum("tollgate_ledger_balance", "Credits less settled charges"),
            held: sum("tollgate_ledger_held", "Set aside for unfinished tasks"),
            used: sum("tollgate_ledger_used", "Settled charges"),
            debt: sum(
                "tollgate_ledger_debt",
                "Owed by users whose balance is negative",
            ),
            commits: float(
                "tollgate_store_commits_total",
                "Transactions committed by this process",
            ),
            operations: float(
                "tollgate_store_operations_total",
                "Operations committed by this process",
            ),
            routes: RwLock::default(),
            started: SystemTime::now(),
            exemplars,
            registry,
        }
    }

    /// The handles of a route. The route is the template, not the path, so that there are few.
    ///
    /// # Panics
    /// Never: the labels fit the names.
    pub fn route(&self, method: &str, route: &str) -> Arc<RouteMetrics> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = routes.get(method).and_then(|routes| routes.get(route)) {
            return Arc::clone(found);
        }
        drop(routes);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let routes = routes.entry(method.to_owned()).or_default();
        let counters = routes.entry(route.to_owned()).or_insert_with(|| {
            let statuses = ["1xx", "2xx", "3xx", "4xx", "5xx"];
            let texts = (
                "tollgate_http_request_seconds",
                "Time to the response's head",
            );
            let labels = [("method", method), ("route", route)];
            let (registry, exemplars) = (&self.registry, &self.exemplars);
            let latency = LinkedHistogram::new(registry, exemplars, texts, &labels, BUCKETS);
            Arc::new(RouteMetrics {
                statuses: statuses.map(|s| self.requests.with_label_values(&[method, route, s])),
                latency,
            })
        });
        Arc::clone(counters)
    }

    /// Counts a failed attempt at a chat on a channel; `kind` is the recorded name of the error's kind.
    pub fn chat_attempt_failed(&self, channel: &str, kind: &'static str) {
        self.chats.attempt_failed(channel);
        self.channel_error(channel, kind);
    }

    /// Counts a chat that ended.
    pub fn chat_ended(&self, chat: &EndedChat<'_>) {
        self.chats.ended(chat);
    }

    /// From now on counts the tokens of single chats too, for collectors that receive metrics by OTLP.
    pub fn count_request_tokens(&self) {
        self.chats
            .count_request_tokens(&self.registry, &self.exemplars);
    }

    /// Counts a failed attempt on a channel; `kind` is the recorded name of the error's kind.
    pub fn channel_error(&self, channel: &str, kind: &'static str) {
        let labels = [channel, kind];
        self.timings.errors.with_label_values(&labels).inc();
    }

    /// Counts the start of a task's first attempt and its waiting time since submission. `span` is the task's, if its trace is sampled.
    pub fn task_started(&self, kind: &str, waited: Millis, span: Option<SpanContext>) {
        let histograms = &self.timings.queue_wait;
        histograms.observe(&[kind], seconds(waited), span);
    }

    /// Counts the end of a provider's work on an attempt at a task; `span` is the attempt's.
    pub fn provider_finished(
        &self,
        channel: &str,
        kind: &str,
        took: Duration,
        span: Option<SpanContext>,
    ) {
        let histograms = &self.timings.provider;
        histograms.observe(&[channel, kind], took.as_secs_f64(), span);
    }

    /// Counts a hold of a task that was settled or released, and how long it was held; `span` is the task's.
    pub fn task_settled(&self, kind: &str, held: Millis, span: Option<SpanContext>) {
        let histograms = &self.timings.held;
        histograms.observe(&[kind], seconds(held), span);
    }

    /// Counts a chat whose tokens the gateway estimated.
    pub fn chat_estimated(&self, channel: &str, model: &str) {
        self.chats.estimated(channel, model);
    }

    /// Counts a chat for which the upstream reported more tokens than the request can have used.
    pub fn chat_usage_clamped(&self, channel: &str, model: &str) {
        self.chats.count_clamped(channel, model);
    }

    /// Sets the results of the last reconciliation of each channel.
    pub fn set_drift(&self, reconciled: &[Reconciled]) {
        self.chats.set_drift(reconciled);
    }

    /// Counts the part of a chat's charge that was not covered.
    pub fn chat_debt(&self, model: &str, debt: Amount) {
        self.chats.debt(model, debt);
    }

    /// Counts a chat by the place where its highest cost is held.
    pub fn chat_held(&self, kind: ChatHoldKind) {
        self.chats.count_hold(kind);
    }

    /// Sets how many grants this node has.
    pub fn set_grants(&self, count: usize) {
        self.cluster.set_grants(count);
    }

    /// Sets how many nodes are alive and ready, and whether this one leads.
    pub fn set_nodes(&self, count: u32, is_leader: bool) {
        self.cluster.set_nodes(count, is_leader);
    }

    /// Sets how far this node's clock is ahead of the database's.
    pub fn set_clock_offset(&self, offset: Millis) {
        self.cluster.set_clock_offset(offset);
    }

    /// Sets whether the replica of the database is used.
    pub fn set_replica_up(&self, is_up: bool) {
        self.cluster.set_replica_up(is_up);
    }

    /// Sets whether `cause` keeps this node from being ready.
    pub fn set_not_ready(&self, cause: &str, is_so: bool) {
        self.cluster.set_not_ready(cause, is_so);
    }

    /// Registers the metrics of the connection to Redis. Called once, and only if Redis is configured.
    pub fn register_redis(&self) -> RedisMetrics {
        RedisMetrics::new(&self.registry)
    }

    /// Counts spans that the collector accepted.
    pub fn spans_exported(&self, count: u64) {
        self.spans.with_label_values(&["exported"]).inc_by(count);
    }

    /// Counts spans that were lost: the collector did not accept them, or too many were waiting.
    pub fn spans_dropped(&self, count: u64) {
        if count > 0 {
            self.spans.with_label_values(&["dropped"]).inc_by(count);
        }
    }

    /// Counts a task that ended on this node: `completed`, `failed` or `cancelled`.
    pub fn task_ended(&self, family: &str, state: &str) {
        self.tasks_ended.with_label_values(&[family, state]).inc();
    }

    /// Counts a background loop that ended and is restarted, or a worker of a task (`task`) that panicked.
    pub fn background_failure(&self, job: &str) {
        self.background_failures.with_label_values(&[job]).inc();
    }

    /// Counts an attempt to deliver a webhook.
    pub fn callback(&self, delivered: bool) {
        let outcome = if delivered { "delivered" } else { "failed" };
        self.callbacks.with_label_values(&[outcome]).inc();
    }

    /// Counts an uploaded image.
    pub fn uploaded(&self, bytes: u64) {
        self.uploads.inc();
        self.upload_bytes.inc_by(bytes);
    }

    /// Sets the totals that were read from the database.
    pub fn set_totals(&self, totals: &StoreTotals, now: Millis) {
        let (submitted, in_progress) = (totals.submitted, totals.in_progress);
        self.callbacks_waiting.set(totals.pending_webhooks as f64);
        self.submitted
            .set(f64::from(u32::try_from(submitted).unwrap_or(u32::MAX)));
        self.in_progress
            .set(f64::from(u32::try_from(in_progress).unwrap_or(u32::MAX)));
        let age = totals.oldest_due_at.map_or(0, |due| (now - due).max(0));
        self.queue_age
            .set(f64::from(u32::try_from(age).unwrap_or(u32::MAX)) / 1000.0);
        self.balance.set(totals.balance.to_f64());
        self.held.set(totals.held.to_f64());
        self.used.set(totals.used.to_f64());
        self.debt.set(totals.debt.to_f64());
    }

    /// When the metrics began to count.
    pub fn started(&self) -> SystemTime {
        self.started
    }

    /// The current value of every metric, by name, and the exemplars of its histograms.
    pub fn gather(&self, store: &WriterStats) -> (Vec<MetricFamily>, Exemplars) {
        catch_up(&self.commits, store.commits());
        catch_up(&self.operations, store.operations());
        // The exemplars are read first: a value is counted before it becomes an exemplar.
        let exemplars = self.exemplars.snapshot();
        (self.registry.gather(), exemplars)
    }

    /// The metrics as text for scrapers.
    pub fn render(&self, store: &WriterStats, format: TextFormat) -> String {
        let (families, exemplars) = self.gather(store);
        if format == TextFormat::OpenMetrics {
            return open_metrics::write(&families, &exemplars);
        }
        let mut text = Vec::new();
        if let Err(e) = TextEncoder::new().encode(&families, &mut text) {
            tracing::error!(error = %e, "cannot write the metrics");
        }
        String::from_utf8(text).unwrap_or_default()
    }
}

/// The time in seconds, at least 0: the clocks of nodes differ.
fn seconds(time: Millis) -> f64 {
    f64::from(u32::try_from(time.max(0)).unwrap_or(u32::MAX)) / 1000.0
}

/// Raises a counter to the value of the store's own count.
#[allow(clippy::cast_precision_loss)] // Prometheus counts in floats
fn catch_up(counter: &Counter, count: u64) {
    counter.inc_by((count as f64 - counter.get()).max(0.0));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Amount;
    use tollgate_store::TokenCounts;

    #[test]
    fn counts_and_renders() {
        let metrics = Metrics::new();
        metrics
            .route("GET", "/v1/tasks/{task_id}")
            .count(200, 0.001, None);
        metrics
            .route("GET", "/v1/tasks/{task_id}")
            .count(404, 0.001, None);
        metrics
            .route("POST", "/v1/tasks/batch")
            .count(200, 0.1, None);
        metrics.task_ended("imagen-4", "completed");
        metrics.set_totals(
            &StoreTotals {
                submitted: 3,
                oldest_due_at: Some(1_000),
                held: Amount::from_nanos(500_000_000),
                ..StoreTotals::default()
            },
            3_500,
        );
        let tokens = TokenCounts {
            output: 90,
            ..TokenCounts::default()
        };
        let times = ChatTimes {
            first_token: Some(Duration::from_millis(250)),
            total: Some(Duration::from_millis(1_250)),
        };
        let done = EndedChat {
            channel: "one",
            model: "gpt-5",
            outcome: "done",
            tokens: &tokens,
            times,
            span: None,
        };
        metrics.chat_ended(&done);
        let outcome = "cut";
        metrics.chat_ended(&EndedChat { outcome, ..done });
        let times = ChatTimes::default();
        metrics.count_request_tokens();
        metrics.chat_ended(&EndedChat { times, ..done });
        metrics.chat_attempt_failed("one", "TimedOut");
        metrics.task_started("image", 400, None);
        metrics.task_settled("image", -5, None);
        let text = metrics.render(&WriterStats::default(), TextFormat::Prometheus);
        for line in [
            r#"tollgate_chat_first_token_seconds_sum{channel="one"} 0.5"#,
            r#"tollgate_chat_request_tokens_sum{channel="one",direction="output",model="gpt-5"} 90"#,
            r#"tollgate_chat_request_tokens_count{channel="one",direction="input",model="gpt-5"} 1"#,
            r#"tollgate_chat_tokens_per_second_sum{channel="one"} 90"#,
            r#"tollgate_provider_seconds_sum{channel="one",kind="chat"} 1.25"#,
            r#"tollgate_channel_errors_total{channel="one",kind="TimedOut"} 1"#,
            r#"tollgate_task_queue_seconds_bucket{kind="image",le="0.25"} 0"#,
            r#"tollgate_task_queue_seconds_bucket{kind="image",le="0.5"} 1"#,
            r#"tollgate_task_hold_seconds_bucket{kind="image",le="0.1"} 1"#,
            r#"tollgate_http_requests_total{method="GET",route="/v1/tasks/{task_id}",status="4xx"} 1"#,
            r#"tollgate_http_request_seconds_count{method="GET",route="/v1/tasks/{task_id}"} 2"#,
            r#"tollgate_tasks{state="submitted"} 3"#,
            "tollgate_queue_age_seconds 2.5",
            "tollgate_ledger_held 0.5",
            r#"tollgate_tasks_ended_total{family="imagen-4",state="completed"} 1"#,
        ] {
            assert!(text.contains(line), "{line} in\n{text}");
        }
    }
}
