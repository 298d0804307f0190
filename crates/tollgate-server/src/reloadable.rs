//! Channels and prices: the part of the configuration that a SIGHUP replaces while requests go on.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use tollgate_media::catalogue::Catalogue;

use crate::pricing::Prices;
use crate::routing::Routing;

/// The channels and the price list that were read together.
pub struct Reloadable {
    /// Which channel serves a model.
    pub routing: Routing,
    /// The price list.
    pub prices: Prices,
    /// By the name of a channel with keys, where each of them comes from: `env:NAME` or `file`.
    pub key_origins: BTreeMap<String, Vec<String>>,
}

impl Reloadable {
    /// Every model of the catalogue that some channel serves, in no particular order.
    pub fn served_models<'a>(&self, catalogue: &'a Catalogue) -> Vec<&'a str> {
        let routing = &self.routing;
        let tasks = catalogue.task_models();
        let tasks =
            tasks.filter(|m| routing.serves_tasks(m.family.kind(), routing.name_of(m.names())));
        let chats = catalogue.chat_models();
        let chats =
            chats.filter(|name| routing.serves_chat(routing.name_of(catalogue.names(name))));
        tasks.map(|m| m.name.as_str()).chain(chats).collect()
    }

    /// Those of them that cost nothing because they have no price.
    pub fn served_models_without_price<'a>(&self, catalogue: &'a Catalogue) -> Vec<&'a str> {
        let mut models = self.served_models(catalogue);
        models.retain(|name| !self.prices.has(catalogue.names(name)));
        models
    }
}

/// A handle on the channels and prices that hold now; clones share them.
#[derive(Clone)]
pub struct ReloadableHandle(Arc<RwLock<Arc<Reloadable>>>);

impl ReloadableHandle {
    /// A handle on the channels and prices read at start.
    pub fn new(reloadable: Reloadable) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(reloadable))))
    }

    /// The channels and prices that hold now. A request takes them once and keeps them to its end.
    pub fn current(&self) -> Arc<Reloadable> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces channels and prices for all requests that begin from now on.
    pub fn replace(&self, reloadable: Reloadable) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(reloadable);
    }
}
