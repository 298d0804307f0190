//! `tollgate serve`: brings the gateway up, runs it, takes it down.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use futures_util::future::BoxFuture;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tollgate_core::{Clock, id};
use tollgate_store::StoreError;

use super::common::{Common, Failed, open_store};
use super::first_writes;
use super::listeners::Listeners;
use crate::alerts::AlertSender;
use crate::cluster::clock_sync::{self, ClockSync};
use crate::cluster::node_inbox::LocalInbox;
use crate::cluster::permit_sync;
use crate::cluster::replica::ReplicaWatch;
use crate::config::{Config, Overrides};
use crate::http::server::Listener;
use crate::http::tls::ServerTls;
use crate::list_blocks;
use crate::logging;
use crate::otel::{self, Exporter, MetricsExporter, Snapshot};
use crate::redis::RedisClient;
use crate::routes::health::update_metrics;
use crate::state::App;
use crate::storage::data_dir;
use crate::supervise::run_forever;
use crate::tasks::cleanup;
use crate::usage;

/// How long settlements may go on after the last connection has ended.
const CLOSING: Duration = Duration::from_secs(5);
/// How long giving back what this node has may take: other nodes wait no longer than its heartbeat is valid anyway.
const LEAVING: Duration = Duration::from_secs(1);

#[derive(Args)]
pub(super) struct Serve {
    /// Where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Make no demo user on an empty data directory
    #[arg(long)]
    no_demo: bool,
}

impl Serve {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        // 1. Configuration, data directory, log.
        let overrides = || Overrides {
            listen: self.listen.clone(),
            no_demo: self.no_demo,
            ..Overrides::default()
        };
        let config = common.configuration(overrides())?;
        data_dir::create(&config.data_dir)?;
        let _lock = data_dir::lock_with_retry(&config.data_dir).await?;
        let _log = logging::start(&config.log);
        // 2. The addresses first: a busy port is told before anything is touched.
        let listeners = Listeners::bind(&config).await?;
        let admin_address = listeners.admin.as_ref().map(Listener::address);
        // 3. Database, files, everything that hangs on them.
        let store = open_store(&config).await?;
        let steady = Arc::new(clock_sync::start(&store).await?);
        let clock: Arc<dyn Clock> = Arc::clone(&steady) as _;
        let addresses = (listeners.main.address(), admin_address);
        let app = App::build(config, addresses, store, clock)?;
        app.config_sync.refresh().await?;
        log_setup(&app);
        if let Some(redis) = &app.redis
            && !redis.ensure_connected().await
        {
            tracing::warn!("Redis does not respond: each node applies limits.on_redis_loss");
        }
        let telemetry = start_telemetry(&app);
        let clock_sync = ClockSync::new(
            app.store.clone(),
            steady,
            Arc::clone(&app.readiness),
            app.config.leases.ms(),
        );
        clock_sync.compare().await;
        // 4. What a start writes; on a full disk, as soon as it takes writes again.
        let written = first_writes::write_or_retry(&app).await?;
        // 5. Serve until told to stop; who reads that line may say so at once.
        let signals = Signals::listen()?;
        writeln!(
            std::io::stdout(),
            "listening on {}://{}",
            listeners.main.scheme(),
            listeners.main.address()
        )?;
        let reload = || common.configuration(overrides());
        let certificates = listeners.certificates.clone();
        let clock_sync = Arc::new(clock_sync);
        let background = start_background_loops(&app, clock_sync, certificates, &telemetry);
        until_stopped(&app, listeners, signals, written, background, reload).await?;
        telemetry.flush().await;
        Ok(())
    }
}

/// What this process is told from outside.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// What an operator should know at start: nothing configured, models that cost nothing.
fn log_setup(app: &App) {
    let reloadable = app.reloadable.current();
    if reloadable.routing.is_built_in() {
        tracing::info!("no channel is configured: the sandbox channel serves every model");
    }
    let mut free = reloadable.served_models_without_price();
    free.sort_unstable();
    if !free.is_empty() {
        tracing::warn!(models = free.join(" "), "models without a price cost 0");
    }
}

/// What sends traces and metrics to a collector; `None` if it is not configured.
struct Telemetry {
    traces: Option<Arc<Exporter>>,
    metrics: Option<Arc<MetricsExporter>>,
}

impl Telemetry {
    /// Sends what is left, for a few seconds at most.
    async fn flush(&self) {
        if let Some(traces) = &self.traces {
            traces.flush().await;
        }
        if let Some(metrics) = &self.metrics {
            metrics.flush().await;
        }
    }
}

/// Starts to record traces if there is a collector for them, and prepares to send metrics to it.
fn start_telemetry(app: &Arc<App>) -> Telemetry {
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
    Telemetry {
        traces: traces.map(Arc::new),
        metrics: metrics.map(Arc::new),
    }
}

/// The metrics as `/metrics` has them.
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

async fn until_stopped(
    app: &Arc<App>,
    listeners: Listeners,
    mut signals: Signals,
    written: CancellationToken,
    background: JoinSet<()>,
    reload: impl Fn() -> Result<Config, Failed>,
) -> Result<(), Failed> {
    let drain = app.stopping.clone();
    let drain_timeout = Duration::from_secs(app.config.drain_s);
    let workers = {
        let (pool, stop) = (Arc::clone(&app.pool), drain.clone());
        let run = move || {
            let (pool, drain) = (Arc::clone(&pool), stop.clone());
            async move { pool.run(drain, drain_timeout).await }
        };
        let metrics = Arc::clone(&app.metrics);
        let workers = run_forever("workers", metrics, drain.clone(), run);
        tokio::spawn(start_after(written.clone(), drain.clone(), workers))
    };
    let webhooks = {
        let (webhooks, stop) = (Arc::clone(&app.webhooks), drain.clone());
        let run = move || {
            let (webhooks, drain) = (Arc::clone(&webhooks), stop.clone());
            async move { webhooks.run(drain).await }
        };
        let metrics = Arc::clone(&app.metrics);
        let webhooks = run_forever("webhooks", metrics, drain.clone(), run);
        tokio::spawn(start_after(written, drain.clone(), webhooks))
    };
    let served = listeners.serve(app);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hangup.recv() => reloaded(app, reload()).await,
        }
    }
    tracing::info!("draining: no new connections, finishing what is in flight");
    drain.cancel();
    served.await?;
    workers.await?;
    webhooks.await?;
    // Replies that were cut off are still being settled.
    app.closing.close();
    if timeout(CLOSING, app.closing.wait()).await.is_err() {
        tracing::error!(
            "some chats could not be settled: their holds are released, nothing is charged"
        );
    }
    drop(background);
    match timeout(LEAVING, leave(app)).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::warn!(error = %e, "other nodes release what this one has"),
        Err(_) => {
            tracing::warn!("other nodes release what this one has: the database does not answer")
        }
    }
    if let Err(e) = app.store.empty_write_ahead_log().await {
        tracing::warn!(error = %e, "the database's write-ahead log is left as it is");
    }
    Ok(())
}

/// Gives back what this node has granted itself, and ends its heartbeat.
async fn leave(app: &App) -> Result<(), StoreError> {
    let now = app.clock.now();
    app.reloadable.current().routing.return_permits().await;
    app.store.return_all_grants(now).await?;
    app.store.end_node(&app.heartbeat.node, now).await
}

/// Runs `work` once `written` is cancelled; not at all if `drain` is cancelled before.
async fn start_after(
    written: CancellationToken,
    drain: CancellationToken,
    work: impl Future<Output = ()>,
) {
    tokio::select! {
        biased;
        () = written.cancelled() => work.await,
        () = drain.cancelled() => {}
    }
}

/// Starts the loops that run until the process ends; they stop when the set is dropped.
fn start_background_loops(
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
    let alerts = Arc::new(AlertSender::of(app));
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

/// Starts the loops that keep what lists and charts read in the database.
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

/// Keeps the connection to Redis and what is there of this node.
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

/// SIGHUP: channels and prices of the file from now on; a file that is wrong changes nothing.
async fn reloaded(app: &App, config: Result<Config, Failed>) {
    let applied = match config {
        Ok(config) => app
            .config_sync
            .reload(Arc::new(config))
            .await
            .map_err(Failed::from),
        Err(e) => Err(e),
    };
    match applied {
        Ok(()) => tracing::info!("channels and prices were read again"),
        Err(Failed(why)) => tracing::error!(error = why, "the configuration was not taken"),
    }
}
