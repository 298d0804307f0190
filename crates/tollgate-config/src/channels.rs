//! `[[channel]]`: the configured connections to providers (docs/channels.md).

use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value as Json};
use tollgate_chat::FORMATS;
use tollgate_chat::provider_options::ProviderOption;
use tollgate_core::Secret;
use tollgate_upstream::Channel;
use tollgate_upstream::channel::{ChannelModel, ChannelTimeLimits};

use super::addresses;
use super::fields::{
    deserialize_integer, deserialize_optional_integer, deserialize_optional_seconds,
};
use crate::providers;

/// The longest name of a channel, in bytes.
const MAX_NAME: usize = 64;

/// A channel as it is written in the configuration.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChannelSettings {
    #[serde(deserialize_with = "deserialize_channel_name")]
    name: String,
    #[serde(deserialize_with = "deserialize_kind")]
    kind: String,
    #[serde(default, deserialize_with = "addresses::deserialize_base_url")]
    base_url: Option<String>,
    #[serde(default)]
    api_keys: Vec<String>,
    #[serde(default)]
    admin_key: Option<String>,
    #[serde(default, deserialize_with = "deserialize_models")]
    models: Vec<ChannelModel>,
    #[serde(
        default,
        deserialize_with = "deserialize_integer::<_, _, -1_000_000, 1_000_000>"
    )]
    priority: i64,
    #[serde(
        default = "default_weight",
        deserialize_with = "deserialize_integer::<_, _, 1, 1_000_000>"
    )]
    weight: u32,
    #[serde(
        default,
        deserialize_with = "deserialize_optional_integer::<_, _, 1, 1_000_000>"
    )]
    max_concurrency: Option<u32>,
    #[serde(default, deserialize_with = "deserialize_formats")]
    apis: Option<Vec<String>>,
    #[serde(default, deserialize_with = "deserialize_allowed_options")]
    allow: Vec<ProviderOption>,
    #[serde(default, deserialize_with = "deserialize_betas")]
    betas: Vec<String>,
    #[serde(default, deserialize_with = "deserialize_optional_seconds")]
    connect_s: Option<Duration>,
    #[serde(default, deserialize_with = "deserialize_optional_seconds")]
    first_byte_s: Option<Duration>,
    #[serde(default, deserialize_with = "deserialize_optional_seconds")]
    idle_s: Option<Duration>,
    #[serde(default)]
    fetch_urls: Option<bool>,
    #[serde(default)]
    trace_context: bool,
    #[serde(
        default,
        deserialize_with = "deserialize_optional_integer::<_, _, 10, 3_600_000>"
    )]
    poll_ms: Option<u64>,
    #[serde(default)]
    options: Map<String, Json>,
}

fn default_weight() -> u32 {
    1
}

impl ChannelSettings {
    /// The channel, checked by its provider.
    ///
    /// # Errors
    /// The channel's name, and why its provider rejects its settings.
    pub(super) fn into_channel(self) -> Result<Channel, String> {
        let channel = self.into_unchecked_channel();
        let provider = providers::provider_of_kind(&channel.kind);
        match provider.map(|provider| (provider.check)(&channel)) {
            Some(Err(message)) => Err(format!("({:?}): {message}", channel.name)),
            _ => Ok(channel),
        }
    }

    /// The channel, without the provider's check of its options.
    pub(super) fn into_unchecked_channel(self) -> Channel {
        // The sandbox generates everything on this machine, so every option is allowed.
        let allow = match providers::is_free_of_charge(&self.kind) {
            true => ProviderOption::all().collect(),
            false => self.allow,
        };
        Channel {
            name: self.name,
            kind: self.kind,
            base_url: self.base_url,
            api_keys: self.api_keys.into_iter().map(Secret::new).collect(),
            admin_key: self
                .admin_key
                .filter(|key| !key.is_empty())
                .map(Secret::new),
            models: self.models,
            priority: self.priority,
            weight: self.weight,
            max_concurrency: self.max_concurrency,
            apis: self.apis,
            allow,
            betas: self.betas,
            time_limits: ChannelTimeLimits {
                connect: self.connect_s,
                first_byte: self.first_byte_s,
                idle: self.idle_s,
            },
            fetch_urls: self.fetch_urls,
            trace_context: self.trace_context,
            poll: self.poll_ms.map(Duration::from_millis),
            options: self.options,
        }
    }
}

fn deserialize_channel_name<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Ok(name);
    }
    Err(D::Error::custom(format!(
        "is {name:?}, but a channel's name is 1 to {MAX_NAME} letters, digits, dots, dashes and underscores"
    )))
}

fn deserialize_kind<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let kind = String::deserialize(deserializer)?;
    if providers::provider_of_kind(&kind).is_some() {
        return Ok(kind);
    }
    let kinds = providers::kind_names();
    Err(D::Error::custom(format!(
        "is {kind:?}, but this version has these kinds: {kinds}"
    )))
}

/// Parses the chat formats that the channel's server supports.
fn deserialize_formats<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    struct FormatName(String);
    impl<'de> Deserialize<'de> for FormatName {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let name = String::deserialize(deserializer)?;
            if tollgate_chat::by_name(&name).is_some() {
                return Ok(Self(name));
            }
            let known: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
            let known = known.join(", ");
            Err(D::Error::custom(format!(
                "is {name:?}, but the formats are: {known}"
            )))
        }
    }
    let names = Vec::<FormatName>::deserialize(deserializer)?;
    match names.is_empty() {
        true => Err(D::Error::custom("is empty: name a format, or leave it out")),
        false => Ok(Some(names.into_iter().map(|name| name.0).collect())),
    }
}

/// Parses the options of chats that the channel forwards.
fn deserialize_allowed_options<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ProviderOption>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let options = names.iter().map(|name| {
        ProviderOption::by_name(name).ok_or_else(|| {
            let known: Vec<_> = ProviderOption::names().collect();
            let known = known.join(", ");
            D::Error::custom(format!("has {name:?}, but the options are: {known}"))
        })
    });
    options.collect()
}

/// Parses the beta features that the channel forwards: names, or beginnings of names followed by `*`.
fn deserialize_betas<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '=');
    let is_name = |name: &str| {
        let name = name.strip_suffix('*').unwrap_or(name);
        !name.is_empty() && name.chars().all(is_plain)
    };
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(D::Error::custom(format!(
            "has {name:?}, but a beta feature is letters, digits, dots, dashes and underscores, and may end with *"
        ))),
        None => Ok(names),
    }
}

fn deserialize_models<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<ChannelModel>, D::Error> {
    let models: Vec<ModelEntry> = Vec::deserialize(deserializer)?;
    if models.is_empty() {
        let message = "is empty: name a model, or leave it out to serve every model";
        return Err(D::Error::custom(message));
    }
    let models: Vec<ChannelModel> = models.into_iter().map(|entry| entry.0).collect();
    for (at, model) in models.iter().enumerate() {
        if models[..at].iter().any(|before| before.name == model.name) {
            let message = format!("has {:?} twice", model.name);
            return Err(D::Error::custom(message));
        }
    }
    Ok(models)
}

/// A model of a channel: its id, or a table with further settings.
struct ModelEntry(ChannelModel);

impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ModelVisitor)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelTable {
    name: String,
    upstream: Option<String>,
    #[serde(default)]
    options: Map<String, Json>,
}

struct ModelVisitor;

impl<'de> Visitor<'de> for ModelVisitor {
    type Value = ModelEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a model id or a table with name, upstream, options")
    }

    fn visit_str<E: Error>(self, id: &str) -> Result<ModelEntry, E> {
        match id.is_empty() {
            true => Err(E::custom("is empty: give it a value or leave it out")),
            false => Ok(ModelEntry(ChannelModel::new(id, id))),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ModelEntry, A::Error> {
        let table = ModelTable::deserialize(MapAccessDeserializer::new(table))?;
        Ok(ModelEntry(ChannelModel {
            upstream: table.upstream.unwrap_or_else(|| table.name.clone()),
            options: table.options,
            name: table.name,
        }))
    }
}
