//! The configuration as it is written, before it becomes a [`Config`](super::Config).

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Deserialize;
use tollgate_core::Secret;
use tollgate_upstream::Channel;

use super::addresses::{self, TlsFiles};
use super::admin::AdminSettings;
use super::channels::ChannelSettings;
use super::fields::{self, deserialize_integer};
use super::log::Log;
use super::oidc::Oidc;
use super::prices::ModelPrice;
use super::safety::Safety;
use super::storage::StorageSettings;
use super::traces::Traces;
use super::values::{
    Chat, Currency, Expiry, Fairness, Leases, Limits, Sandbox, TimeLimits, Workers,
};

/// Field names are the keys of the file.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Settings {
    pub(super) admin: AdminSettings,
    pub(super) channel: Vec<ChannelEntry>,
    pub(super) chat: Chat,
    pub(super) currency: Currency,
    pub(super) data_dir: PathBuf,
    #[serde(deserialize_with = "addresses::deserialize_database_settings")]
    pub(super) database: addresses::DatabaseSettings,
    pub(super) demo: bool,
    #[serde(deserialize_with = "deserialize_integer::<_, _, 0, 3_600>")]
    pub(super) drain_s: u64,
    pub(super) expiry: Expiry,
    pub(super) fairness: Fairness,
    pub(super) leases: Leases,
    pub(super) limits: Limits,
    #[serde(deserialize_with = "addresses::deserialize_listen_address")]
    pub(super) listen: String,
    pub(super) log: Log,
    pub(super) media: MediaSettings,
    pub(super) metrics: MetricsSettings,
    pub(super) model: Vec<ModelSettings>,
    pub(super) oidc: Option<Oidc>,
    pub(super) price: HashMap<String, ModelPrice>,
    #[serde(deserialize_with = "addresses::deserialize_public_url")]
    pub(super) public_url: Option<String>,
    pub(super) safety: Safety,
    pub(super) sandbox: Sandbox,
    pub(super) secrets: SecretsSettings,
    pub(super) storage: StorageSettings,
    pub(super) time_limits: TimeLimits,
    #[serde(deserialize_with = "addresses::deserialize_tls_files")]
    pub(super) tls: Option<TlsFiles>,
    pub(super) traces: Traces,
    pub(super) workers: Workers,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            admin: AdminSettings::default(),
            channel: Vec::new(),
            chat: Chat::default(),
            currency: Currency::default(),
            data_dir: PathBuf::from("./tollgate-data"),
            database: addresses::DatabaseSettings::default(),
            demo: true,
            drain_s: 30,
            expiry: Expiry::default(),
            fairness: Fairness::default(),
            leases: Leases::default(),
            limits: Limits::default(),
            listen: "127.0.0.1:8080".to_owned(),
            log: Log::default(),
            media: MediaSettings::default(),
            metrics: MetricsSettings::default(),
            model: Vec::new(),
            oidc: None,
            price: HashMap::new(),
            public_url: None,
            safety: Safety::default(),
            sandbox: Sandbox::default(),
            secrets: SecretsSettings::default(),
            storage: StorageSettings::default(),
            time_limits: TimeLimits::default(),
            tls: None,
            traces: Traces::default(),
            workers: Workers::default(),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SecretsSettings {
    #[serde(deserialize_with = "fields::deserialize_long_secret")]
    pub(super) key: Option<Secret>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MediaSettings {
    pub(super) allow_private_urls: Vec<addresses::Network>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct MetricsSettings {
    #[serde(deserialize_with = "addresses::deserialize_optional_listen_address")]
    pub(super) listen: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModelSettings {
    pub(super) name: String,
    pub(super) like: String,
}

/// A channel whose options its provider has checked.
pub(super) struct ChannelEntry(pub(super) Channel);

impl<'de> Deserialize<'de> for ChannelEntry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let channel = ChannelSettings::deserialize(deserializer)?.into_channel();
        channel.map(Self).map_err(serde::de::Error::custom)
    }
}
