//! The shared state of the running gateway: built once at start, and passed to each part of the program as the fields that it needs.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use ipnet::IpNet;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_config::{Config, OnRedisLoss};
use tollgate_core::{Clock, Secret, id};
use tollgate_storage::data_dir;
use tollgate_storage::files::FileStorage;
use tollgate_store::Store;
use tollgate_upstream::egress::{self, ClientOptions};

use crate::auth::keys::Authenticator;
use crate::auth::limits::RateLimiter;
use crate::auth::passwords::PasswordHasher;
use crate::chat::billing_context::BillingContext;
use crate::chat::context::{ChatContext, ChatSettings};
use crate::chat::endpoint::is_chat_path;
use crate::chat::response_memory::ResponseBudget;
use crate::chat::sealed_memory::SealedMemory;
use crate::chat::signature_cache::SignatureCache;
use crate::chat::stored_conversations::StoredConversations;
use crate::cluster::config_sync::ConfigSync;
use crate::cluster::heartbeat::Heartbeat;
use crate::cluster::live_nodes::LiveNodes;
use crate::cluster::peers::{FingerprintOf, Peers};
use crate::cluster::readiness::Readiness;
use crate::fair_permits::{FairPermits, Reserve};
use crate::http::body_memory::BodyBudget;
use crate::http::trace::TraceContext;
use crate::metrics::Metrics;
use crate::oidc::OidcProvider;
use crate::redis::{NodeLinks, RedisClient, SharedLimits};
use crate::reloadable::ReloadableHandle;
use crate::tail_hub::TailHub;
use crate::tasks::backlog::Backlog;
use crate::tasks::context::{PoolSignals, TaskContext, TaskSettings};
use crate::tasks::pool::WorkerPool;
use crate::tasks::record_cache::RecordCache;
use crate::webhooks::deliver::{WebhookParts, WebhookSender};

/// The running gateway. Only the router, the handlers and start-up use the complete struct.
pub struct App {
    /// The configuration at start.
    pub config: Config,
    /// Prefix of the links that clients get, without a slash at its end.
    pub public_url: String,
    /// Prefix of the links to the console, without a slash at its end; equal to `public_url` without `admin.listen`.
    pub console_url: String,
    /// Users, keys, tasks, money.
    pub store: Store,
    /// Results, uploads and input images.
    pub files: FileStorage,
    /// The only HTTP client for requests to other servers.
    pub egress: egress::Client,
    /// Authenticates API keys.
    pub auth: Arc<Authenticator>,
    /// Rate limits.
    pub limits: RateLimiter,
    /// The connection to Redis, for state that nodes share and may lose; `None` without `limits.redis_url`.
    pub redis: Option<Arc<RedisClient>>,
    /// Shares channel state with the other nodes; `None` without Redis, or if no other node can use the database.
    pub links: Option<NodeLinks>,
    /// The memory budget of request bodies.
    pub body_budget: BodyBudget,
    /// Prometheus metrics.
    pub metrics: Arc<Metrics>,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// Channels and prices.
    pub reloadable: ReloadableHandle,
    /// Applies changes of file and database to `reloadable`.
    pub config_sync: Arc<ConfigSync>,
    /// Records this node's version and settings, and compares them with those of the other nodes.
    pub peers: Arc<Peers>,
    /// Whether this node may be used, and why not.
    pub readiness: Arc<Readiness>,
    /// The nodes that are alive.
    pub live_nodes: Arc<LiveNodes>,
    /// Cached task records, as they were last sent.
    pub record_cache: RecordCache,
    /// The state that tracing requests needs.
    pub trace: Arc<TraceContext>,
    /// The state that chats need.
    pub chat: Arc<ChatContext>,
    /// The state that tasks need.
    pub tasks: Arc<TaskContext>,
    /// The workers of this process.
    pub pool: Arc<WorkerPool>,
    /// Posts webhooks.
    pub webhooks: Arc<WebhookSender>,
    /// This node's heartbeat in the database.
    pub heartbeat: Arc<Heartbeat>,
    /// Sends events to the watchers of the live tail.
    pub tail: Arc<TailHub>,
    /// Cancelled when the gateway is requested to stop.
    pub stopping: CancellationToken,
    /// Work that shutdown waits for after the last connection has ended.
    pub closing: TaskTracker,
    /// The OpenAPI document as JSON text, generated at the first request for it.
    pub openapi: OnceLock<String>,
    /// The key of the operator.
    pub admin_key: Secret,
    /// Signs in admins and users; `None` if no OpenID provider is configured.
    pub oidc: Option<Arc<OidcProvider>>,
    /// Hashes the passwords of admins.
    pub passwords: PasswordHasher,
    /// Whether `/metrics` is served without a key: only on a loopback address, without `metrics.listen` and the PROXY protocol.
    pub metrics_public: bool,
}

impl App {
    /// Builds the gateway that listens on `address`, and on `admin_address` if operators have a separate listener. `fingerprint_of` returns a hash of
    /// a configuration, for comparing nodes.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn build(
        config: Config,
        (address, admin_address): (SocketAddr, Option<SocketAddr>),
        store: Store,
        clock: Arc<dyn Clock>,
        fingerprint_of: FingerprintOf,
    ) -> Result<Arc<Self>, String> {
        if let Some(storage) = config.default_storage_dir() {
            data_dir::create(&storage)?;
        }
        let admin_key = admin_key(&config)?;
        let [public_url, console_url] = config.urls(address, admin_address);
        let egress = egress_client(&config);
        let node = id::short_id("node_");
        let live_nodes = Arc::new(LiveNodes::new(!store.is_shared()));
        let metrics = Arc::new(Metrics::new());
        let redis = redis_client(&config, &metrics)?;
        let shared_redis = redis.as_ref().filter(|_| store.is_shared());
        let links = shared_redis.map(|redis| NodeLinks::new(redis, &node, config.leases.ms()));
        let config_sync = ConfigSync::new(
            store.clone(),
            Arc::clone(&clock),
            egress.clone(),
            Arc::clone(&live_nodes),
            links.clone(),
            Arc::new(config.clone()),
        )?;
        let config_sync = Arc::new(config_sync);
        let readiness = Arc::new(Readiness::new(Arc::clone(&metrics)));
        let limits = rate_limiter(&config, &node, &clock, redis.as_ref(), &live_nodes);
        let shared = Shared {
            reloadable: config_sync.reloadable().clone(),
            files: FileStorage::from_config(&config, &egress, &public_url)?,
            auth: Arc::new(Authenticator::new(store.clone(), Arc::clone(&clock))),
            limits,
            redis,
            links,
            live_nodes,
            readiness,
            body_budget: BodyBudget::new(config.limits.body_memory_mb),
            metrics,
            node,
            closing: TaskTracker::new(),
            webhook_due: Arc::new(Notify::new()),
            store,
            egress,
            clock,
        };
        let tasks = shared.task_context(&config);
        Ok(Arc::new(Self {
            openapi: OnceLock::new(),
            record_cache: RecordCache::default(),
            trace: shared.trace_context(config.limits.trusted_proxies()),
            chat: shared.chat_context(&config),
            pool: Arc::new(WorkerPool::new(Arc::clone(&tasks), &config.fairness)),
            tasks,
            webhooks: shared.webhook_sender(),
            heartbeat: shared.heartbeat(&config),
            peers: shared.peers((&config, fingerprint_of), Arc::clone(&config_sync)),
            tail: Arc::new(TailHub::new(
                shared.store.clone(),
                Arc::clone(&shared.clock),
            )),
            stopping: CancellationToken::new(),
            admin_key,
            oidc: shared.oidc_provider(&config, [&console_url, &public_url]),
            passwords: PasswordHasher::default(),
            metrics_public: address.ip().is_loopback()
                && config.metrics_listen.is_none()
                && !config.limits.proxy_protocol,
            store: shared.store,
            files: shared.files,
            egress: shared.egress,
            auth: shared.auth,
            limits: shared.limits,
            redis: shared.redis,
            links: shared.links,
            body_budget: shared.body_budget,
            metrics: shared.metrics,
            clock: shared.clock,
            reloadable: shared.reloadable,
            config_sync,
            readiness: shared.readiness,
            live_nodes: shared.live_nodes,
            closing: shared.closing,
            public_url,
            console_url,
            config,
        }))
    }
}

fn admin_key(config: &Config) -> Result<Secret, String> {
    match &config.admin_key {
        Some(key) => Ok(key.clone()),
        None => data_dir::read_or_create_admin_key(&config.data_dir),
    }
}

fn egress_client(config: &Config) -> egress::Client {
    egress::Client::new(ClientOptions {
        allow_private: config.allow_private_urls.clone(),
        ..ClientOptions::default()
    })
}

fn redis_client(config: &Config, metrics: &Metrics) -> Result<Option<Arc<RedisClient>>, String> {
    let url = config.limits.redis_url.as_ref();
    let timeout = config.limits.redis_timeout;
    let client = url.map(|url| RedisClient::new(url, timeout, metrics.register_redis()));
    Ok(client.transpose()?.map(Arc::new))
}

/// Counts rate limits in Redis if there is one, else divides them among the nodes.
fn rate_limiter(
    config: &Config,
    node: &str,
    clock: &Arc<dyn Clock>,
    redis: Option<&Arc<RedisClient>>,
    live_nodes: &Arc<LiveNodes>,
) -> RateLimiter {
    let limits = RateLimiter::new(config.limits.rates(), Arc::clone(clock));
    let limits = limits.with_reserve(|max| config.fairness.reserve(max));
    let on_loss = config.limits.on_redis_loss;
    match redis {
        Some(redis) => {
            let lease = config.leases.ms();
            let shared = SharedLimits::new(Arc::clone(redis), node.to_owned(), lease);
            limits.with_redis(Arc::new(shared), on_loss, Arc::clone(live_nodes))
        }
        None if on_loss == OnRedisLoss::Open => limits,
        None => limits.divided_among(Arc::clone(live_nodes)),
    }
}

/// Values that several parts need while the gateway is built.
struct Shared {
    store: Store,
    files: FileStorage,
    egress: egress::Client,
    auth: Arc<Authenticator>,
    limits: RateLimiter,
    redis: Option<Arc<RedisClient>>,
    links: Option<NodeLinks>,
    body_budget: BodyBudget,
    metrics: Arc<Metrics>,
    clock: Arc<dyn Clock>,
    reloadable: ReloadableHandle,
    closing: TaskTracker,
    webhook_due: Arc<Notify>,
    /// This process's name in the database.
    node: String,
    /// The live processes on the database.
    live_nodes: Arc<LiveNodes>,
    readiness: Arc<Readiness>,
}

impl Shared {
    fn trace_context(&self, trusted_proxies: Vec<IpNet>) -> Arc<TraceContext> {
        Arc::new(TraceContext {
            metrics: Arc::clone(&self.metrics),
            limits: self.limits.clone(),
            clock: Arc::clone(&self.clock),
            trusted_proxies,
            allows_any_origin: is_chat_path,
        })
    }

    fn chat_context(&self, config: &Config) -> Arc<ChatContext> {
        let sealed = self.redis.as_ref().zip(config.secrets_key.as_ref());
        let sealed = sealed.map(|(redis, key)| SealedMemory::new(Arc::clone(redis), key));
        let memory = sealed.map(Arc::new);
        Arc::new(ChatContext {
            auth: Arc::clone(&self.auth),
            limits: self.limits.clone(),
            clock: Arc::clone(&self.clock),
            body_budget: self.body_budget.clone(),
            response_budget: ResponseBudget::default(),
            reloadable: self.reloadable.clone(),
            egress: self.egress.clone(),
            signatures: SignatureCache::new(memory.clone()),
            stored_conversations: StoredConversations::new(memory),
            metrics: Arc::clone(&self.metrics),
            billing: Arc::new(BillingContext {
                store: self.store.clone(),
                clock: Arc::clone(&self.clock),
                node: self.node.clone(),
                metrics: Arc::clone(&self.metrics),
                closing: self.closing.clone(),
                currency: config.currency,
            }),
            settings: ChatSettings::new(config),
        })
    }

    fn task_context(&self, config: &Config) -> Arc<TaskContext> {
        Arc::new(TaskContext {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            reloadable: self.reloadable.clone(),
            files: self.files.clone(),
            egress: self.egress.clone(),
            downloads: FairPermits::new(
                config.workers.downloads,
                Reserve::Always(config.fairness.reserve(config.workers.downloads)),
            ),
            metrics: Arc::clone(&self.metrics),
            webhook_due: Arc::clone(&self.webhook_due),
            closing: self.closing.clone(),
            backlog: Backlog::new(&config.fairness),
            live_nodes: Arc::clone(&self.live_nodes),
            readiness: Arc::clone(&self.readiness),
            messages: self.links.as_ref().map(|links| Arc::clone(&links.messages)),
            signals: PoolSignals::new(config.workers, &config.fairness),
            settings: TaskSettings {
                time_limits: config.time_limits,
                expiry: config.expiry,
                leases: config.leases,
                safety: config.safety.clone(),
                currency: config.currency,
            },
        })
    }

    fn oidc_provider(&self, config: &Config, urls: [&str; 2]) -> Option<Arc<OidcProvider>> {
        let settings = config.oidc.clone()?;
        let (egress, clock) = (self.egress.clone(), Arc::clone(&self.clock));
        Some(Arc::new(OidcProvider::new(settings, urls, egress, clock)))
    }

    fn webhook_sender(&self) -> Arc<WebhookSender> {
        let parts = WebhookParts {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            node: self.node.clone(),
            egress: self.egress.clone(),
            files: self.files.clone(),
            metrics: Arc::clone(&self.metrics),
            due: Arc::clone(&self.webhook_due),
        };
        Arc::new(WebhookSender::new(parts, Arc::clone(&self.live_nodes)))
    }

    fn peers(&self, config: (&Config, FingerprintOf), config_sync: Arc<ConfigSync>) -> Arc<Peers> {
        Arc::new(Peers::new(
            self.store.clone(),
            Arc::clone(&self.clock),
            config_sync,
            Arc::clone(&self.readiness),
            self.node.clone(),
            config,
        ))
    }

    fn heartbeat(&self, config: &Config) -> Arc<Heartbeat> {
        Arc::new(Heartbeat {
            store: self.store.clone(),
            clock: Arc::clone(&self.clock),
            node: self.node.clone(),
            lease: config.leases.ms(),
            last_beat: Mutex::default(),
            live_nodes: Arc::clone(&self.live_nodes),
            readiness: Arc::clone(&self.readiness),
            metrics: Arc::clone(&self.metrics),
        })
    }
}
