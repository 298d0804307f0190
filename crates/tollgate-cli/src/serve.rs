//! `tollgate serve`: starts the gateway, runs it, shuts it down.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tollgate_admin::admin::configuration_fingerprint;
use tollgate_config::{Config, Overrides};
use tollgate_core::Clock;
use tollgate_server::background::{self, Telemetry};
use tollgate_server::cluster::clock_sync::{self, ClockSync};
use tollgate_server::http::server::Listener;
use tollgate_server::listeners::Listeners;
use tollgate_server::logging;
use tollgate_server::state::App;
use tollgate_storage::data_dir;
use tollgate_store::StoreError;

use super::common::{Common, Failed, open_store};
use super::first_writes;

/// How long settlements may take after the last connection has ended.
const CLOSING: Duration = Duration::from_secs(5);
/// How long returning this node's grants and permits may take at shutdown; after that its heartbeat expires and other nodes release them anyway.
const LEAVING: Duration = Duration::from_secs(3);

#[derive(Args)]
pub(super) struct Serve {
    /// Address to listen on [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Do not create the demo user in an empty data directory
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
        // 2. Bind the addresses before the database is opened: a busy port is reported before anything is migrated or written.
        let listeners = Listeners::bind(&config).await?;
        let admin_address = listeners.admin.as_ref().map(Listener::address);
        // 3. Database, files, everything that depends on them.
        let store = open_store(&config).await?;
        let steady = Arc::new(clock_sync::start(&store).await?);
        let clock: Arc<dyn Clock> = Arc::clone(&steady) as _;
        let addresses = (listeners.main.address(), admin_address);
        let app = App::build(config, addresses, store, clock, configuration_fingerprint)?;
        app.config_sync.refresh().await?;
        log_setup(&app);
        if let Some(redis) = &app.redis
            && !redis.ensure_connected().await
        {
            tracing::warn!("Redis does not respond: each node applies limits.on_redis_loss");
        }
        let telemetry = Telemetry::start(&app);
        let clock_sync = ClockSync::new(
            app.store.clone(),
            steady,
            Arc::clone(&app.readiness),
            app.config.leases.ms(),
        );
        clock_sync.compare().await;
        // 4. The writes of the start; on a full disk they are retried until the disk accepts writes again.
        let written = first_writes::write_or_retry(&app).await?;
        // 5. Serve until a signal stops the process. Signals are handled before the line below is printed, because a reader of the line may send one
        //    at once.
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
        let background = background::start_loops(&app, clock_sync, certificates, &telemetry);
        serve_until_stopped(&app, listeners, signals, written, background, reload).await?;
        telemetry.flush().await;
        Ok(())
    }
}

/// The signals that this process handles.
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

/// Logs what an operator should know at start: that no channel is configured, or which models cost nothing.
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

/// Serves until SIGTERM or SIGINT, then drains and returns what this node holds. Workers and webhooks start when `written` is cancelled, which means
/// that the writes of the start are done. SIGHUP applies the configuration that `reload` reads.
async fn serve_until_stopped(
    app: &Arc<App>,
    listeners: Listeners,
    mut signals: Signals,
    written: CancellationToken,
    background: JoinSet<()>,
    reload: impl Fn() -> Result<Config, Failed>,
) -> Result<(), Failed> {
    let drain = app.stopping.clone();
    let drain_timeout = Duration::from_secs(app.config.drain_s);
    let workers = background::start_workers(app, &written, drain_timeout);
    let webhooks = background::start_webhooks(app, &written);
    let served = listeners.serve(app, tollgate_admin::routes);
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hangup.recv() => apply_reload(app, reload()).await,
        }
    }
    tracing::info!("draining: no new connections, finishing what is in flight");
    drain.cancel();
    served.await?;
    workers.await?;
    webhooks.await?;
    // The chats of connections that were cut off are still being settled.
    app.closing.close();
    if timeout(CLOSING, app.closing.wait()).await.is_err() {
        tracing::error!(
            "some chats could not be settled: their holds are released, nothing is charged"
        );
    }
    match timeout(LEAVING, leave(app, background)).await {
        Ok(Ok(())) => {}
        Ok(Err(e)) => tracing::warn!(error = %e, "other nodes release what this one has"),
        Err(_) => {
            tracing::warn!("other nodes release what this one has: the database does not respond")
        }
    }
    if let Err(e) = app.store.empty_write_ahead_log().await {
        tracing::warn!(error = %e, "the database's write-ahead log is left as it is");
    }
    Ok(())
}

/// Returns this node's grants and permits, and ends its heartbeat.
async fn leave(app: &App, mut background: JoinSet<()>) -> Result<(), StoreError> {
    // Waits until the loops have ended: a heartbeat that is written later would make this node count as alive again.
    background.shutdown().await;
    let now = app.clock.now();
    app.reloadable.current().routing.return_permits().await;
    app.store.return_all_grants(now).await?;
    app.store.end_node(&app.heartbeat.node, now).await
}

/// Handles SIGHUP: applies the file's channels and prices; an invalid file changes nothing.
async fn apply_reload(app: &App, config: Result<Config, Failed>) {
    let applied = match config {
        Ok(config) => app
            .config_sync
            .reload(Arc::new(config))
            .await
            .map_err(Failed::from),
        Err(e) => Err(e),
    };
    match applied {
        Ok(()) => tracing::info!("channels and prices were reloaded"),
        Err(Failed(why)) => tracing::error!(error = why, "the configuration was not applied"),
    }
}
