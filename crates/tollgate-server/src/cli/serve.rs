//! `tollgate serve`: brings the gateway up, runs it, takes it down.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tollgate_core::{Amount, Clock, SteadyClock, id};
use tollgate_store::{KeyLimits, RateLimits};

use super::{Common, Failed, key, open_store};
use crate::admin::sign_in_link;
use crate::clock_sync;
use crate::config::{Config, Overrides};
use crate::http::server::{self, Listener};
use crate::http::tls::ServerTls;
use crate::logging;
use crate::router::{GatewayService, operations_service};
use crate::state::App;
use crate::storage::data_dir;
use crate::supervise::run_forever;
use crate::tasks::cleanup;

/// How long settlements may go on after the last connection has ended.
const CLOSING: Duration = Duration::from_secs(5);
/// The user of a first start.
const DEMO: &str = "demo";

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
        let _log = logging::start();
        // 2. The address first: a busy port is told before anything is touched.
        let tls = config.tls.as_ref().map(ServerTls::load).transpose()?;
        let listener = server::bind(&config.listen).await?.with_tls(tls.clone());
        let metrics_listener = match &config.metrics_listen {
            Some(address) => Some(server::bind(address).await?),
            None => None,
        };
        // 3. Database, files, everything that hangs on them.
        let store = open_store(&config).await?;
        let steady = Arc::new(clock_sync::start(&store).await?);
        let clock: Arc<dyn Clock> = Arc::clone(&steady) as _;
        let app = App::build(config, listener.address(), store, clock)?;
        app.config_sync.refresh().await?;
        log_setup(&app);
        // 4. A first start has something to try.
        if app.config.demo && !app.store.has_users().await? {
            create_demo_user(&app).await?;
        }
        if !app.store.has_admins().await? {
            print_first_link(&app).await?;
        }
        // 5. A node that is alone takes back at once what its last run left leased.
        let has_crashed = if app.store.is_shared() {
            // Whether a crashed node left unfinished tasks cannot be told from those of live nodes.
            app.store.next_task_due_at().await?.is_some()
        } else {
            app.store.release_leases(None, app.clock.now()).await? > 0
        };
        // Had the last run crashed because it worked on too much at once, so would this one.
        if has_crashed {
            app.tasks.signals.workload.begin_with_few();
        }
        app.heartbeat.start().await?;
        app.config_sync.report().await?;
        // 6. Serve until told to stop; who reads that line may say so at once.
        let signals = Signals::listen()?;
        writeln!(
            std::io::stdout(),
            "listening on {}://{}",
            listener.scheme(),
            listener.address()
        )?;
        let reload = || common.configuration(overrides());
        let background = start_background_loops(&app, steady, tls);
        let listeners = (listener, metrics_listener);
        until_stopped(&app, listeners, signals, background, reload).await
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

/// First start: creates the user `demo` with one API key and prints both with commands to paste.
async fn create_demo_user(app: &App) -> Result<(), Failed> {
    app.store
        .create_user(
            DEMO,
            true,
            Amount::ZERO,
            RateLimits::default(),
            app.clock.now(),
        )
        .await?;
    let (_, key) = key::create(&app.store, DEMO, "first start", None, KeyLimits::default()).await?;
    let url = &app.public_url;
    let body =
        r#"{"model": "gpt-image-2-official", "prompt": "a lighthouse at dawn", "size": "16:9"}"#;
    let text = format!(
        "\nFirst start: created user {DEMO:?} (unlimited) with this API key, which is shown only once:\n\n  {key}\n\n\
         Generate an image:\n\n  curl -s {url}/v1/images/generations -H 'Authorization: Bearer {key}' \\\n    \
         -H 'Content-Type: application/json' -d '{body}'\n\n\
         Poll the task with its id from the answer:\n\n  \
         curl -s {url}/v1/tasks/TASK_ID -H 'Authorization: Bearer {key}'\n\n"
    );
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

/// While there is no admin: prints the one-time link with which the first one signs in.
async fn print_first_link(app: &App) -> Result<(), Failed> {
    let code = id::random_secret("");
    let now = app.clock.now();
    app.store
        .create_first_link(&id::key_hash(&code), now)
        .await?;
    let link = sign_in_link(&app.public_url, &code);
    Ok(writeln!(std::io::stderr(), "first sign-in: {link}")?)
}

async fn until_stopped(
    app: &Arc<App>,
    (listener, metrics_listener): (Listener, Option<Listener>),
    mut signals: Signals,
    background: JoinSet<()>,
    reload: impl Fn() -> Result<Config, Failed>,
) -> Result<(), Failed> {
    let drain = CancellationToken::new();
    let drain_timeout = Duration::from_secs(app.config.drain_s);
    let workers = {
        let (pool, stop) = (Arc::clone(&app.pool), drain.clone());
        let run = move || {
            let (pool, drain) = (Arc::clone(&pool), stop.clone());
            async move { pool.run(drain, drain_timeout).await }
        };
        let metrics = Arc::clone(&app.metrics);
        tokio::spawn(run_forever("workers", metrics, drain.clone(), run))
    };
    let webhooks = {
        let (webhooks, stop) = (Arc::clone(&app.webhooks), drain.clone());
        let run = move || {
            let (webhooks, drain) = (Arc::clone(&webhooks), stop.clone());
            async move { webhooks.run(drain).await }
        };
        let metrics = Arc::clone(&app.metrics);
        tokio::spawn(run_forever("webhooks", metrics, drain.clone(), run))
    };
    let options = server::Options::from(&app.config);
    let service = GatewayService::new(app);
    let service_of = move |peer| service.for_connection(peer);
    let served = tokio::spawn(server::serve(listener, service_of, options, drain.clone()));
    if let Some(listener) = metrics_listener {
        tracing::info!(address = %listener.address(), "metrics have a listener of their own");
        let service = operations_service(app);
        let options = server::Options::for_operations(&app.config);
        let service_of = move |_| service.clone();
        tokio::spawn(server::serve(listener, service_of, options, drain.clone()));
    }
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
    Ok(())
}

/// Starts the loops that run until the process ends; they stop when the set is dropped.
fn start_background_loops(
    app: &Arc<App>,
    steady: Arc<SteadyClock>,
    tls: Option<ServerTls>,
) -> JoinSet<()> {
    let mut loops = JoinSet::new();
    let never = CancellationToken::new;
    let auth = Arc::clone(&app.auth);
    let watch_keys = move || {
        let auth = Arc::clone(&auth);
        async move { auth.watch_for_changes().await }
    };
    let metrics = || Arc::clone(&app.metrics);
    loops.spawn(run_forever("key watcher", metrics(), never(), watch_keys));
    let tasks = Arc::clone(&app.tasks);
    let clean = move || cleanup::run(Arc::clone(&tasks));
    loops.spawn(run_forever("cleanup", metrics(), never(), clean));
    let heartbeat = Arc::clone(&app.heartbeat);
    let beat = move || {
        let heartbeat = Arc::clone(&heartbeat);
        async move { heartbeat.run().await }
    };
    let config_sync = Arc::clone(&app.config_sync);
    let poll = move || {
        let config_sync = Arc::clone(&config_sync);
        async move { config_sync.run().await }
    };
    loops.spawn(run_forever("configuration", metrics(), never(), poll));
    if let Some(tls) = tls {
        let watch = move || tls.clone().watch();
        loops.spawn(run_forever("certificate", metrics(), never(), watch));
    }
    let store = app.store.clone();
    let sync = move || clock_sync::run(store.clone(), Arc::clone(&steady));
    loops.spawn(run_forever("clock", metrics(), never(), sync));
    loops.spawn(run_forever("heartbeat", metrics(), never(), beat));
    loops
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
