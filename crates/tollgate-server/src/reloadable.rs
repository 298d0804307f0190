//! Channels and prices: the part of the configuration that is replaced while requests go on, by a SIGHUP or the admin API.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Map;
use tollgate_media::catalogue::Catalogue;
use tollgate_store::{ConfigurationRow, StoredConfiguration};
use tollgate_upstream::egress;

use crate::config::{Config, ModelPrice, SettingError, price_from_json};
use crate::pricing::Prices;
use crate::routing::Routing;

/// The channels and the price list that hold together: those of the file, and those of the database whose names the file does not
/// have.
pub struct Reloadable {
    /// Which channel serves a model.
    pub routing: Routing,
    /// The price list.
    pub prices: Prices,
    /// By the name of a channel with keys, where each of them comes from: `env:NAME` or `file`.
    pub key_origins: BTreeMap<String, Vec<String>>,
    /// The configuration of the file that it was made from.
    pub file: Arc<Config>,
    /// The configuration of the database that it was made from.
    pub stored: Arc<StoredConfiguration>,
    /// What of the database cannot be used on this node, in sentences.
    pub errors: Vec<String>,
    /// What of the database the file stands in for, such as `price "gpt-5"`.
    pub shadowed: Vec<String>,
}

impl Reloadable {
    /// Makes it from file and database. `previous` is what holds now: channels that keep their name keep their health. What cannot be
    /// used of the database is left out.
    ///
    /// # Errors
    /// A sentence for the operator if the file's channels cannot be opened.
    pub fn open(
        file: Arc<Config>,
        stored: Arc<StoredConfiguration>,
        egress: &egress::Client,
        previous: Option<&Self>,
    ) -> Result<Self, String> {
        let (mut errors, mut shadowed) = (Vec::new(), Vec::new());
        let mut prices = HashMap::new();
        for row in &stored.prices {
            if file.prices.contains_key(&row.name) {
                shadowed.push(format!("price {:?}", row.name));
                continue;
            }
            match stored_price(row, &file) {
                Ok(price) => {
                    prices.insert(row.name.clone(), price);
                }
                Err(e) => errors.push(format!("price {:?}: {} {}", row.name, e.path, e.message)),
            }
        }
        let routing = Routing::open(
            &file.channels,
            &file.provider_settings(),
            egress,
            &file.fairness,
            previous.map(|previous| &previous.routing),
        )?;
        Ok(Self {
            routing,
            prices: Prices::new(&file.prices, prices, file.currency),
            key_origins: file.key_origins.clone(),
            file,
            stored,
            errors,
            shadowed,
        })
    }

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

fn stored_price(row: &ConfigurationRow, file: &Config) -> Result<ModelPrice, SettingError> {
    let nothing = Map::new();
    price_from_json(row.body.as_object().unwrap_or(&nothing), file.currency)
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
