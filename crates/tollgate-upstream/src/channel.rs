//! A channel: one configured connection to a provider, with its keys, models, limits and options (docs/channels.md).

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value};
use tollgate_chat::Format;
use tollgate_chat::provider_options::ProviderOption;
use tollgate_core::Secret;

use crate::egress::is_private_url;

/// A channel as configured.
#[derive(Debug, Clone, PartialEq)]
pub struct Channel {
    /// The channel's name, unique in the configuration.
    pub name: String,
    /// The provider that the channel uses ([`crate::ProviderEntry::kind`]).
    pub kind: String,
    /// The provider's base URL. `None` for the provider's default.
    pub base_url: Option<String>,
    /// API keys, used in turn.
    pub api_keys: Vec<Secret>,
    /// The key of the provider's usage API. `None` if the gateway does not read it.
    pub admin_key: Option<Secret>,
    /// The models that the channel serves. Empty only for the built-in sandbox channel, which serves all.
    pub models: Vec<ChannelModel>,
    /// Priority: channels with a lower number are tried first.
    pub priority: i64,
    /// Share among channels of equal priority; at least 1.
    pub weight: u32,
    /// Maximum number of concurrent attempts. `None` for no limit.
    pub max_concurrency: Option<u32>,
    /// Names of the chat formats that the channel's server supports. `None` for all that the provider supports.
    pub apis: Option<Vec<String>>,
    /// Options of chats that are forwarded although they may change the price at the provider, or store state there.
    pub allow: Vec<ProviderOption>,
    /// Beta features of the provider that clients may enable by a header: names, or beginnings of names followed by `*`.
    pub betas: Vec<String>,
    /// Timeouts that override the gateway's.
    pub time_limits: ChannelTimeLimits,
    /// Whether the gateway downloads the files that chats refer to by URL, so that the channel's server receives none of these URLs. `None`: only if
    /// the server is on a private network.
    pub fetch_urls: Option<bool>,
    /// Whether the channel's server receives `traceparent` and `tracestate` of chats and of requests that start tasks.
    pub trace_context: bool,
    /// Poll interval (`poll_ms`) that overrides the adapter's.
    pub poll: Option<Duration>,
    /// Options of the channel's provider (`[channel.options]`), checked by [`crate::ProviderEntry::check`].
    pub options: Map<String, Value>,
}

/// Timeouts of requests to a channel. `None` for the gateway's own (`time_limits.chat_*`). Requests of tasks use only `connect`; without it, the
/// connect timeout of the HTTP client applies to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelTimeLimits {
    /// The timeout for a connection, also of tasks.
    pub connect: Option<Duration>,
    /// The timeout of chats from sending the request to the head of the response, including the time to connect.
    pub first_byte: Option<Duration>,
    /// The timeout of chats between two chunks of the response.
    pub idle: Option<Duration>,
}

/// One model of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelModel {
    /// The model id that clients use.
    pub name: String,
    /// The model id that the provider uses.
    pub upstream: String,
    /// Options of the channel's provider for this model (`options` of the entry).
    pub options: Map<String, Value>,
}

impl ChannelModel {
    /// A model with the provider's id `upstream`, without options.
    pub fn new(name: impl Into<String>, upstream: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            upstream: upstream.into(),
            options: Map::new(),
        }
    }

    /// The provider's model id. For an entry without one, `known` maps the client's id to the provider's.
    pub(crate) fn id_by<'a>(&'a self, known: &[(&str, &'a str)]) -> &'a str {
        if self.upstream != self.name {
            return &self.upstream;
        }
        let row = known.iter().find(|(name, _)| *name == self.name);
        row.map_or(&self.upstream, |(_, id)| id)
    }
}

/// The check of a channel whose provider has no options.
pub fn no_options(channel: &Channel) -> Result<(), String> {
    known_options(channel, &[], &[])
}

/// Checks that every option of the channel is among `known` and every option of its models among `of_models`.
pub(crate) fn known_options(
    channel: &Channel,
    known: &[&str],
    of_models: &[&str],
) -> Result<(), String> {
    let check = |options: &Map<String, Value>, known: &[&str], owner: &str| {
        let name = options.keys().find(|name| !known.contains(&name.as_str()));
        name.map_or(Ok(()), |name| {
            let known = match known {
                [] => "none".to_owned(),
                some => some.join(", "),
            };
            Err(format!(
                "{owner} has an unknown option {name:?}; kind {:?} has: {known}",
                channel.kind
            ))
        })
    };
    check(&channel.options, known, "the channel")?;
    channel
        .models
        .iter()
        .try_for_each(|model| check(&model.options, of_models, &model.name))
}

impl Default for Channel {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl Channel {
    /// A channel with that name and kind that serves every model and has no other settings.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            base_url: None,
            api_keys: Vec::new(),
            admin_key: None,
            models: Vec::new(),
            priority: 0,
            weight: 1,
            max_concurrency: None,
            apis: None,
            allow: Vec::new(),
            betas: Vec::new(),
            time_limits: ChannelTimeLimits::default(),
            fetch_urls: None,
            trace_context: false,
            poll: None,
            options: Map::new(),
        }
    }

    /// Whether an option is forwarded independently of the price of the model.
    pub fn allows(&self, option: ProviderOption) -> bool {
        self.allow.contains(&option)
    }

    /// Whether the gateway downloads clients' URLs instead of the channel's server: a server on the operator's own network could reach hosts that
    /// clients must not reach.
    pub fn fetches_urls(&self) -> bool {
        let is_private = || self.base_url.as_deref().is_some_and(is_private_url);
        self.fetch_urls.unwrap_or_else(is_private)
    }

    /// The formats among `supported`, best first, for which this channel is configured, in the order of its configuration; all if the configuration
    /// names none of them.
    pub fn chat_formats(&self, supported: &[&'static dyn Format]) -> Vec<&'static dyn Format> {
        let named = self.apis.iter().flatten();
        let configured: Vec<_> = named
            .filter_map(|name| {
                supported
                    .iter()
                    .copied()
                    .find(|format| format.name() == name)
            })
            .collect();
        if configured.is_empty() {
            return supported.to_vec();
        }
        configured
    }

    /// The entry for `model`; a default one if the channel serves every model. `None` if it does not serve this one.
    pub fn model<'a>(&'a self, model: &str) -> Option<Cow<'a, ChannelModel>> {
        if self.models.is_empty() {
            return Some(Cow::Owned(ChannelModel::new(model, model)));
        }
        let entry = self.models.iter().find(|m| m.name == model);
        entry.map(Cow::Borrowed)
    }

    /// The provider's id for `model`. `None` if this channel does not serve it.
    pub fn upstream_model<'a>(&'a self, model: &'a str) -> Option<&'a str> {
        if self.models.is_empty() {
            return Some(model);
        }
        self.models
            .iter()
            .find(|m| m.name == model)
            .map(|m| m.upstream.as_str())
    }
}
