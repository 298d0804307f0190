//! The work that runs in the background until the process ends: workers of tasks, delivery of webhooks, background loops, export of traces and
//! metrics.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tollgate_core::id;

use crate::alerts::AlertSender;
use crate::cluster::clock_sync::ClockSync;
use crate::cluster::node_inbox::LocalInbox;
use crate::cluster::permit_sync;
use crate::cluster::replica::ReplicaWatch;
use crate::http::tls::ServerTls;
use crate::list_blocks;
use crate::otel::{self, Exporter, MetricsExporter, Snapshot};
use crate::redis::RedisClient;
use crate::routes::health::update_metrics;
use crate::spawn::spawn;
use crate::state::App;
use crate::supervise::run_forever;
use crate::tasks::cleanup;
use crate::usage;

/// The exporters of traces and metrics to a collector; `None` if none is configured.
pub struct Telemetry {
    traces: Option<Arc<Exporter>>,
    metrics: Option<Arc<MetricsExporter>>,
}

impl Telemetry {
    /// Starts to record traces if a collector is configured for them, and prepares the export of metrics.
    pub fn start(app: &Arc<App>) -> Self {
        let node = id::short_id("node-");
        let settings = &app.config.traces;
        let traces = otel::start(
            settings,
            &node,
            app.egress.clone(),
            Arc::clone(&app.metrics),
        );
        let source = {
            let app = Arc::clone(app);
            move || -> BoxFuture<'static, Snapshot> { Box::pin(read_metrics(Arc::clone(&app))) }
        };
        let (client, started) = (app.egress.clone(), app.metrics.started());
        let metrics = MetricsExporter::new(settings, &node, client, started, Box::new(source));
        if metrics.is_some() {
            app.metrics.count_request_tokens();
        }
        Self {
            traces: traces.map(Arc::new),
            metrics: metrics.map(Arc::new),
        }
    }

    /// Sends the remaining traces and metrics, for a few seconds at most.
    pub async fn flush(&self) {
        let traces = async {
            if let Some(traces) = &self.traces {
                traces.flush().await;
            }
        };
        let metrics = async {
            if let Some(metrics) = &self.metrics {
                metrics.flush().await;
            }
        };
        tokio::join!(traces, metrics);
    }
}

/// The metrics that `/metrics` shows.
async fn read_metrics(app: Arc<App>) -> Snapshot {
    update_metrics(&app).await;
    let reloadable = app.reloadable.current();
    let channels = reloadable.routing.channels().iter();
    let providers = channels
        .map(|open| (open.channel.name.clone(), open.channel.kind.clone()))
        .collect();
    let (families, exemplars) = app.metrics.gather(app.store.stats());
    Snapshot {
        families,
        exemplars,
        providers,
    }
}

/// Starts the workers of tasks once `written` is cancelled, which means that the writes of the start are complete. When the gateway stops, their
/// tasks may continue for `drain_timeout`.
pub fn start_workers(
    app: &App,
    written: &CancellationToken,
    drain_timeout: Duration,
) -> JoinHandle<()> {
    let (pool, stop) = (Arc::clone(&app.pool), app.stopping.clone());
    let run = move || {
        let (pool, drain) = (Arc::clone(&pool), stop.clone());
        async move { pool.run(drain, drain_timeout).await }
    };
    let metrics = Arc::clone(&app.metrics);
    let workers = run_forever("workers", metrics, app.stopping.clone(), run);
    start_after(written.clone(), app.stopping.clone(), workers)
}

/// Starts the delivery of webhooks once `written` is cancelled, until the gateway stops.
pub fn start_webhooks(app: &App, written: &CancellationToken) -> JoinHandle<()> {
    let (webhooks, stop) = (Arc::clone(&app.webhooks), app.stopping.clone());
    let run = move || {
        let (webhooks, drain) = (Arc::clone(&webhooks), stop.clone());
        async move { webhooks.run(drain).await }
    };
    let metrics = Arc::clone(&app.metrics);
    let webhooks = run_forever("webhooks", metrics, app.stopping.clone(), run);
    start_after(written.clone(), app.stopping.clone(), webhooks)
}

/// Runs `work` once `written` is cancelled; does not run it if `drain` is cancelled before.
fn start_after(
    written: CancellationToken,
    drain: CancellationToken,
    work: BoxFuture<'static, ()>,
) -> JoinHandle<()> {
    spawn(async move {
        tokio::select! {
            biased;
            () = written.cancelled() => work.await,
            () = drain.cancelled() => {}
        }
    })
}

/// Starts the loops that run until the process ends; they stop when the set is dropped.
pub fn start_loops(
    app: &Arc<App>,
    clock_sync: Arc<ClockSync>,
    certificates: Vec<ServerTls>,
    telemetry: &Telemetry,
) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    let never = CancellationToken::new;
    let auth = Arc::clone(&app.auth);
    let watch_keys = move || {
        let auth = Arc::clone(&auth);
        async move { auth.watch_for_changes().await }
    };
    let metrics = || Arc::clone(&app.metrics);
    if let Some(redis) = &app.redis {
        start_redis_loops(app, redis, &mut loops);
    }
    loops.spawn(run_forever("key watcher", metrics(), never(), watch_keys));
    let tasks = Arc::clone(&app.tasks);
    let clean = move || cleanup::run(Arc::clone(&tasks));
    loops.spawn(run_forever("cleanup", metrics(), never(), clean));
    let heartbeat = Arc::clone(&app.heartbeat);
    let beat = move || {
        let heartbeat = Arc::clone(&heartbeat);
        async move { heartbeat.run().await }
    };
    if app.config.replica_url.is_some() {
        let replica = Arc::new(ReplicaWatch::new(app.store.clone(), metrics()));
        let watch = move || {
            let replica = Arc::clone(&replica);
            async move { replica.run().await }
        };
        loops.spawn(run_forever("replica", metrics(), never(), watch));
    }
    if app.store.is_shared() {
        let heartbeat = Arc::clone(&app.heartbeat);
        let return_grants = move || {
            let heartbeat = Arc::clone(&heartbeat);
            async move { heartbeat.return_grants().await }
        };
        loops.spawn(run_forever("grants", metrics(), never(), return_grants));
    }
    let config_sync = Arc::clone(&app.config_sync);
    let poll = move || {
        let config_sync = Arc::clone(&config_sync);
        async move { config_sync.run().await }
    };
    loops.spawn(run_forever("configuration", metrics(), never(), poll));
    let peers = Arc::clone(&app.peers);
    let report = move || {
        let peers = Arc::clone(&peers);
        async move { peers.run().await }
    };
    loops.spawn(run_forever("peers", metrics(), never(), report));
    for tls in certificates {
        let watch = move || tls.clone().watch();
        loops.spawn(run_forever("certificate", metrics(), never(), watch));
    }
    if let Some(traces) = telemetry.traces.clone() {
        let export = move || {
            let traces = Arc::clone(&traces);
            async move { traces.run().await }
        };
        loops.spawn(run_forever("traces", metrics(), never(), export));
    }
    if let Some(exporter) = telemetry.metrics.clone() {
        let export = move || {
            let exporter = Arc::clone(&exporter);
            async move { exporter.run().await }
        };
        loops.spawn(run_forever("sent metrics", metrics(), never(), export));
    }
    let alerts = Arc::new(AlertSender::new(app));
    let check = move || {
        let alerts = Arc::clone(&alerts);
        async move { alerts.run().await }
    };
    loops.spawn(run_forever("alerts", metrics(), never(), check));
    start_sums_and_blocks(app, &mut loops);
    let sync = move || {
        let clock_sync = Arc::clone(&clock_sync);
        async move { clock_sync.run().await }
    };
    loops.spawn(run_forever("clock", metrics(), never(), sync));
    loops.spawn(run_forever("heartbeat", metrics(), never(), beat));
    loops
}

/// Starts the loops that maintain the usage sums and list blocks in the database, which charts and lists read.
fn start_sums_and_blocks(app: &App, loops: &mut JoinSet<()>) {
    let never = CancellationToken::new;
    let metrics = || Arc::clone(&app.metrics);
    let (store, clock) = (app.store.clone(), Arc::clone(&app.clock));
    let live_nodes = Arc::clone(&app.live_nodes);
    let roll_up = move || usage::run(store.clone(), Arc::clone(&clock), Arc::clone(&live_nodes));
    loops.spawn(run_forever("usage", metrics(), never(), roll_up));
    let (store, clock) = (app.store.clone(), Arc::clone(&app.clock));
    let live_nodes = Arc::clone(&app.live_nodes);
    let build =
        move || list_blocks::run(store.clone(), Arc::clone(&clock), Arc::clone(&live_nodes));
    loops.spawn(run_forever("list blocks", metrics(), never(), build));
}

/// Starts the loops that keep the connection to Redis and renew this node's entries there.
fn start_redis_loops(app: &Arc<App>, redis: &Arc<RedisClient>, loops: &mut JoinSet<()>) {
    let never = CancellationToken::new;
    let metrics = || Arc::clone(&app.metrics);
    let redis = Arc::clone(redis);
    let connect = move || {
        let redis = Arc::clone(&redis);
        async move { redis.run().await }
    };
    loops.spawn(run_forever("redis", metrics(), never(), connect));
    if let Some(shared) = app.limits.shared() {
        let shared = Arc::clone(shared);
        let renew = move || {
            let shared = Arc::clone(&shared);
            async move { shared.run().await }
        };
        loops.spawn(run_forever("shared limits", metrics(), never(), renew));
    }
    if let Some(links) = &app.links {
        let messages = Arc::clone(&links.messages);
        let inbox = Arc::new(LocalInbox {
            reloadable: app.reloadable.clone(),
            tasks: Arc::clone(&app.tasks),
            pool: Arc::clone(&app.pool),
        });
        let follow = move || {
            let (messages, inbox) = (Arc::clone(&messages), Arc::clone(&inbox));
            async move { messages.run(&*inbox).await }
        };
        loops.spawn(run_forever("messages", metrics(), never(), follow));
        let reloadable = app.reloadable.clone();
        let adjust = move || permit_sync::run(reloadable.clone());
        loops.spawn(run_forever("permits", metrics(), never(), adjust));
    }
}
