//! Channels, prices and models: the part of the configuration that is replaced while requests run, by a SIGHUP or the admin API.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Map;
use tollgate_config::{Config, ModelPrice, SettingError, price_from_json};
use tollgate_core::Millis;
use tollgate_media::ExtraModel;
use tollgate_media::catalogue::Catalogue;
use tollgate_store::{ConfigurationRow, StoredConfiguration};
use tollgate_upstream::{Channel, egress};

use crate::cluster::live_nodes::LiveNodes;
use crate::pricing::Prices;
use crate::redis::NodeLinks;
use crate::routing::{ConfiguredChannels, Routing};
use crate::stored_channel::StoredChannel;

/// The channels, the price list and the models in effect: those of the file, and those of the database that have no namesake in the file.
pub struct Reloadable {
    /// Selects the channel that serves a model.
    pub routing: Routing,
    /// The price list.
    pub prices: Prices,
    /// Every model id.
    pub catalogue: Catalogue,
    /// By the name of each channel with keys, the origin of each key: `env:NAME` or `file`.
    pub key_origins: BTreeMap<String, Vec<String>>,
    /// The configuration of the file that this was built from.
    pub file: Arc<Config>,
    /// The configuration of the database that this was built from.
    pub stored: Arc<StoredConfiguration>,
    /// Objects of the database that cannot be used on this node: one sentence for each.
    pub errors: Vec<String>,
    /// Objects of the database that an object of the file replaces, such as `price "gpt-5"`.
    pub shadowed: Vec<String>,
}

impl Reloadable {
    /// Builds it from file and database. `previous` is the one in effect now: channels that keep their name keep their health. Objects of the
    /// database that cannot be used are left out.
    ///
    /// # Errors
    /// A sentence for the operator if the file's channels cannot be opened.
    pub fn open(
        file: Arc<Config>,
        stored: Arc<StoredConfiguration>,
        egress: &egress::Client,
        previous: Option<&Self>,
    ) -> Result<Self, String> {
        let mut merger = Merger::default();
        let catalogue = merger.catalogue(&file, &stored)?;
        let channels = merger.channels(&file, &stored);
        let deleted = merger.deleted_channels(&file, &stored);
        let prices = merger.prices(&file, &stored);
        let configured = ConfiguredChannels {
            channels: &channels,
            deleted: &deleted,
            // If a channel of the database cannot be used on this node, the sandbox must not serve instead of it.
            may_be_built_in: stored.channels.is_empty(),
            previous: previous.map(|previous| &previous.routing),
            reopens_all: previous.is_none_or(|previous| !Arc::ptr_eq(&previous.file, &file)),
        };
        let settings = file.provider_settings();
        Ok(Self {
            routing: Routing::reopen(&configured, &settings, egress, &file.fairness)?,
            prices: Prices::new(&file.prices, prices, file.currency),
            catalogue,
            key_origins: file.key_origins.clone(),
            file,
            stored,
            errors: merger.errors,
            shadowed: merger.shadowed,
        })
    }

    /// Pauses exactly those channels whose pause is in effect at `now`.
    pub fn apply_pauses(&self, now: Millis) {
        for open in self.routing.channels() {
            let is_paused = self.stored.is_paused(&open.channel.name, now);
            if open.is_paused() != is_paused {
                open.set_paused(is_paused);
            }
        }
    }

    /// Gives each channel with a `max_concurrency` this node's share of it.
    pub fn apply_shares(&self, live_nodes: &LiveNodes) {
        for open in self.routing.channels() {
            open.set_share(live_nodes);
        }
    }

    /// Shares the channels' cooldowns and permits with the other nodes.
    pub fn connect(&self, links: &NodeLinks) {
        for open in self.routing.channels() {
            open.share_cooldowns(&links.messages);
            open.share_permits(&links.permits);
        }
    }

    /// Whether the file adds a model of that name.
    pub fn is_file_model(&self, name: &str) -> bool {
        has_model(&self.file, name)
    }

    /// Whether the file has a channel of that name.
    pub fn is_file_channel(&self, name: &str) -> bool {
        has_channel(&self.file, name)
    }

    /// Every model of the catalogue that some channel serves, in no particular order.
    pub fn served_models(&self) -> Vec<&str> {
        let (catalogue, routing) = (&self.catalogue, &self.routing);
        let tasks = catalogue.task_models();
        let tasks =
            tasks.filter(|m| routing.serves_tasks(m.family.kind(), routing.name_of(m.names())));
        let chats = catalogue.chat_models();
        let chats =
            chats.filter(|name| routing.serves_chat(routing.name_of(catalogue.names(name))));
        tasks.map(|m| m.name.as_str()).chain(chats).collect()
    }

    /// The served models that cost nothing because they have no price.
    pub fn served_models_without_price(&self) -> Vec<&str> {
        let mut models = self.served_models();
        models.retain(|name| !self.prices.has(self.catalogue.names(name)));
        models
    }
}

/// Merges the configurations of file and database.
#[derive(Default)]
struct Merger {
    errors: Vec<String>,
    shadowed: Vec<String>,
}

impl Merger {
    fn catalogue(
        &mut self,
        file: &Config,
        stored: &StoredConfiguration,
    ) -> Result<Catalogue, String> {
        let mut models = file.models.clone();
        for row in &stored.models {
            if has_model(file, &row.name) {
                self.shadowed.push(format!("model {:?}", row.name));
            } else {
                models.push(stored_model(row));
            }
        }
        if let Ok(catalogue) = Catalogue::new(&models) {
            return Ok(catalogue);
        }
        // A model of the database is invalid, for instance because of one in the file: all others are added.
        let added = models.split_off(file.models.len());
        for model in added {
            let name = model.name.clone();
            models.push(model);
            if let Err(e) = Catalogue::new(&models) {
                models.pop();
                self.errors.push(format!("model {name:?}: {e}"));
            }
        }
        Catalogue::new(&models)
    }

    fn channels(&mut self, file: &Config, stored: &StoredConfiguration) -> Vec<Channel> {
        let mut channels = file.channels.clone();
        for row in &stored.channels {
            if has_channel(file, &row.name) {
                self.shadowed.push(format!("channel {:?}", row.name));
            } else if let Some(channel) = self.channel(file, row) {
                channels.push(channel);
            }
        }
        channels
    }

    fn deleted_channels(&mut self, file: &Config, stored: &StoredConfiguration) -> Vec<Channel> {
        let deleted = stored.deleted_channels.iter();
        let deleted = deleted.filter(|row| !has_channel(file, &row.name));
        deleted.filter_map(|row| self.channel(file, row)).collect()
    }

    fn channel(&mut self, file: &Config, row: &ConfigurationRow) -> Option<Channel> {
        let stored = StoredChannel::from_row(&row.body);
        let channel = stored.to_channel(&row.name, file.secrets_key.as_ref());
        self.value_or_record_error("channel", row, channel)
    }

    fn prices(
        &mut self,
        file: &Config,
        stored: &StoredConfiguration,
    ) -> HashMap<String, ModelPrice> {
        let mut prices = HashMap::new();
        for row in &stored.prices {
            if file.prices.contains_key(&row.name) {
                self.shadowed.push(format!("price {:?}", row.name));
                continue;
            }
            let nothing = Map::new();
            let members = row.body.as_object().unwrap_or(&nothing);
            let price = price_from_json(members, file.currency);
            if let Some(price) = self.value_or_record_error("price", row, price) {
                prices.insert(row.name.clone(), price);
            }
        }
        prices
    }

    /// The value of a row; `None` if it is invalid, and the error is recorded.
    fn value_or_record_error<T>(
        &mut self,
        what: &str,
        row: &ConfigurationRow,
        read: Result<T, SettingError>,
    ) -> Option<T> {
        let failed = |e: SettingError| {
            let path = match e.path.as_str() {
                "" => String::new(),
                path => format!(" {path}"),
            };
            self.errors
                .push(format!("{what} {:?}:{path} {}", row.name, e.message));
        };
        read.map_err(failed).ok()
    }
}

/// The model in a row of the database.
pub fn stored_model(row: &ConfigurationRow) -> ExtraModel {
    ExtraModel {
        name: row.name.clone(),
        like: row.body["like"].as_str().unwrap_or_default().to_owned(),
    }
}

fn has_model(file: &Config, name: &str) -> bool {
    file.models.iter().any(|model| model.name == name)
}

fn has_channel(file: &Config, name: &str) -> bool {
    file.channels.iter().any(|channel| channel.name == name)
}

/// A handle on the channels and prices in effect; clones share them.
#[derive(Clone)]
pub struct ReloadableHandle(Arc<RwLock<Arc<Reloadable>>>);

impl ReloadableHandle {
    /// A handle on the channels and prices that were read at start.
    pub fn new(reloadable: Reloadable) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(reloadable))))
    }

    /// The channels and prices in effect. A request takes them once and keeps them until it ends.
    pub fn current(&self) -> Arc<Reloadable> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces channels and prices for all requests that begin from now on.
    pub fn replace(&self, reloadable: Reloadable) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(reloadable);
    }
}
