//! `tollgate serve`: brings the gateway up, runs it, takes it down.

use std::io::Write as _;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_core::{Amount, Clock as _, Secret, SystemClock, id};
use tollgate_media::catalogue::Catalogue;
use tollgate_store::{KeyLimits, RateLimits, Store};
use tollgate_upstream::egress::{self, ClientOptions};

use super::{Common, Failed, key, open_store};
use crate::access::Access;
use crate::app::{App, Live};
use crate::blobs::Blobs;
use crate::callbacks::Callbacks;
use crate::chat::memory::Memory;
use crate::config::{Config, Overrides};
use crate::entrance::Entrance;
use crate::http::body::BodyBudget;
use crate::limits::Limits;
use crate::listen::{self, Listener};
use crate::metrics::Metrics;
use crate::pricing::Prices;
use crate::records::Records;
use crate::routing::Routing;
use crate::workers::{self, Workers};
use crate::{data_dir, heartbeat, log, openapi};

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
        data_dir::prepare(&config.data_dir)?;
        let _lock = data_dir::lock(&config.data_dir)?;
        let _log = log::start();
        // 2. The address first: a busy port is told before anything is touched.
        let listener = listen::bind(&config.listen).await?;
        // 3. Database, files, everything that hangs on them.
        let store = open_store(&config).await?;
        let app = build(config, &listener, store).await?;
        // 4. A first start has something to try.
        if app.config.demo && !app.store.has_users().await? {
            welcome(&app).await?;
        }
        // 5. A node that is alone takes back at once what its last run left leased.
        if !app.store.is_shared() {
            app.store.hand_back(None, SystemClock.now()).await?;
        }
        heartbeat::first(&app).await?;
        // 6. Serve until told to stop; who reads that line may say so at once.
        let signals = Signals::listen()?;
        writeln!(
            std::io::stdout(),
            "listening on http://{}",
            listener.address()
        )?;
        let reload = || common.configuration(overrides());
        until_stopped(&app, listener, signals, reload).await
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

async fn build(config: Config, listener: &Listener, store: Store) -> Result<Arc<App>, Failed> {
    let catalogue = Catalogue::new(&config.models)?;
    if let Some(storage) = config.storage_is_default() {
        data_dir::prepare(&storage)?;
    }
    let address = listener.address();
    let admin_key: Secret = match &config.admin_key {
        Some(key) => key.clone(),
        None => data_dir::admin_key(&config.data_dir)?,
    };
    let public_url = config
        .public_url
        .clone()
        .unwrap_or_else(|| format!("http://{address}"));
    let egress = egress::Client::new(ClientOptions {
        allow_private: config.allow_private_urls.clone(),
        ..ClientOptions::default()
    });
    let live = live(&config, &egress, None)?;
    let app = Arc::new(App {
        openapi: openapi::document(&public_url).to_string(),
        public_url,
        blobs: Blobs::open(&config.storage_dir())?,
        egress,
        access: Access::default(),
        records: Records::default(),
        memory: Memory::default(),
        node: id::short_id("node_"),
        closing: TaskTracker::new(),
        limits: Limits::new(config.limits.rates, Arc::new(SystemClock)),
        body_budget: BodyBudget::new(config.limits.body_memory_mb),
        workers: Workers::new(config.workers),
        downloads: Semaphore::new(config.workers.downloads),
        callbacks: Callbacks::default(),
        metrics: Metrics::new(),
        clock: Arc::new(SystemClock),
        admin_key,
        metrics_public: address.ip().is_loopback(),
        live: RwLock::new(Arc::new(live)),
        store,
        catalogue,
        config,
    });
    speak_of(&app);
    Ok(app)
}

fn live(config: &Config, egress: &egress::Client, before: Option<&Live>) -> Result<Live, Failed> {
    let before = before.map(|live| &live.channels);
    Ok(Live {
        channels: Routing::open(
            &config.channels,
            &config.provider_settings(),
            egress,
            before,
        )?,
        prices: Prices::new(&config.prices, config.currency),
    })
}

/// What an operator should know at start: nothing configured, models that cost nothing.
fn speak_of(app: &App) {
    let live = app.routing();
    if app.config.channels.is_empty() {
        tracing::info!("no channel is configured: the sandbox channel serves every model");
    }
    let mut free = live.served(&app.catalogue);
    free.retain(|name| !live.prices.has(name));
    free.sort_unstable();
    if !free.is_empty() {
        tracing::warn!(models = free.join(" "), "models without a price cost 0");
    }
}

/// First start: a user, a key, and a line to paste.
async fn welcome(app: &App) -> Result<(), Failed> {
    app.store
        .create_user(
            DEMO,
            true,
            Amount::ZERO,
            RateLimits::default(),
            SystemClock.now(),
        )
        .await?;
    let (_, key) = key::create(&app.store, DEMO, "first start", None, KeyLimits::default()).await?;
    let url = &app.public_url;
    let body =
        r#"{"model": "gpt-image-2-official", "prompt": "a lighthouse at dawn", "size": "16:9"}"#;
    let text = format!(
        "\nFirst start: made user {DEMO:?} (unlimited) with this key, shown this once:\n\n  {key}\n\n\
         Ask for a picture:\n\n  curl -s {url}/v1/images/generations -H 'Authorization: Bearer {key}' \\\n    \
         -H 'Content-Type: application/json' -d '{body}'\n\n\
         Then look at it with the task id of the receipt:\n\n  \
         curl -s {url}/v1/tasks/TASK_ID -H 'Authorization: Bearer {key}'\n\n"
    );
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

async fn until_stopped(
    app: &Arc<App>,
    listener: Listener,
    mut signals: Signals,
    reload: impl Fn() -> Result<Config, Failed>,
) -> Result<(), Failed> {
    let drain = CancellationToken::new();
    let patience = Duration::from_secs(app.config.drain_s);
    let follower = {
        let app = Arc::clone(app);
        tokio::spawn(async move { app.access.follow(&app.store).await })
    };
    let cleaner = tokio::spawn(workers::clean(Arc::clone(app)));
    let heart = tokio::spawn(heartbeat::beat(Arc::clone(app)));
    let work = {
        let (app, drain) = (Arc::clone(app), drain.clone());
        tokio::spawn(async move { app.workers.work(&app, drain, patience).await })
    };
    let posting = {
        let (app, drain) = (Arc::clone(app), drain.clone());
        tokio::spawn(async move { app.callbacks.work(&app, drain).await })
    };
    let options = listen::Options::from(&app.config);
    let served = tokio::spawn(listen::serve(
        listener,
        Entrance::new(app),
        options,
        drain.clone(),
    ));
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hangup.recv() => reloaded(app, reload()),
        }
    }
    tracing::info!("draining: no new connections, finishing what is in flight");
    drain.cancel();
    served.await?;
    work.await?;
    posting.await?;
    // Replies that were cut off are still being settled.
    app.closing.close();
    if timeout(CLOSING, app.closing.wait()).await.is_err() {
        tracing::error!(
            "some chats could not be settled: their holds are released, nothing is charged"
        );
    }
    heart.abort();
    follower.abort();
    cleaner.abort();
    Ok(())
}

/// SIGHUP: channels and prices of the file from now on; a file that is wrong changes nothing.
fn reloaded(app: &App, config: Result<Config, Failed>) {
    let before = app.routing();
    match config.and_then(|config| live(&config, &app.egress, Some(&before))) {
        Ok(live) => {
            app.set_live(live);
            tracing::info!("channels and prices were read again");
        }
        Err(Failed(why)) => tracing::error!(error = why, "the configuration was not taken"),
    }
}
