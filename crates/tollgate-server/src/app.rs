//! What every part of the running gateway shares.

use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tollgate_core::{Clock, Secret};
use tollgate_media::catalogue::Catalogue;
use tollgate_store::Store;
use tollgate_upstream::egress;

use crate::access::Access;
use crate::blobs::Blobs;
use crate::callbacks::Callbacks;
use crate::chat::memory::Memory;
use crate::config::Config;
use crate::http::body::BodyBudget;
use crate::limits::Limits;
use crate::metrics::Metrics;
use crate::pricing::Prices;
use crate::records::Records;
use crate::routing::Routing;
use crate::workers::Workers;

/// The running gateway.
pub struct App {
    /// As configured at start.
    pub config: Config,
    /// Prefix of the links that clients get, without a slash at its end.
    pub public_url: String,
    /// Users, keys, tasks, money.
    pub store: Store,
    /// Every model id.
    pub catalogue: Catalogue,
    /// Results, uploads and inputs.
    pub blobs: Blobs,
    /// The one way out.
    pub egress: egress::Client,
    /// What is remembered of keys.
    pub access: Access,
    /// Limits of keys.
    pub limits: Limits,
    /// Memory for bodies in flight.
    pub body_budget: BodyBudget,
    /// The workers of this process.
    pub workers: Workers,
    /// Results that are fetched at the same time.
    pub downloads: Semaphore,
    /// Callbacks that this process posts.
    pub callbacks: Callbacks,
    /// Numbers for Prometheus.
    pub metrics: Metrics,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Records of tasks as they were last sent.
    pub records: Records,
    /// Signatures of tool calls, for clients that cannot carry them.
    pub memory: Memory,
    /// This process's name in the database.
    pub node: String,
    /// What must still be written when the last connection has ended.
    pub closing: TaskTracker,
    /// The OpenAPI document, as JSON text.
    pub openapi: String,
    /// Signs in to what only the operator may see.
    pub admin_key: Secret,
    /// Whether `/metrics` is for everybody: only on a loopback address.
    pub metrics_public: bool,
    /// Set with [`App::set_live`].
    pub live: RwLock<Arc<Live>>,
}

/// What a SIGHUP changes while requests go on.
pub struct Live {
    /// Which channel serves a model.
    pub channels: Routing,
    /// The price list.
    pub prices: Prices,
}

impl Live {
    /// Every model that some channel serves, in no particular order.
    pub fn served<'a>(&self, catalogue: &'a Catalogue) -> Vec<&'a str> {
        let tasks = catalogue.task_models();
        let tasks = tasks.filter(|m| self.channels.serves_tasks(m.family.kind(), &m.name));
        let chats = catalogue.chat_models();
        let chats = chats.filter(|name| self.channels.serves_chat(name));
        tasks.map(|m| m.name.as_str()).chain(chats).collect()
    }
}

impl App {
    /// Channels and prices as they are now: a request takes them once and keeps them to its end.
    pub fn routing(&self) -> Arc<Live> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Channels and prices from now on.
    pub fn set_live(&self, live: Live) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(live);
    }
}
