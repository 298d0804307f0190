//! One configured way to a provider.

use std::borrow::Cow;
use std::time::Duration;

use serde_json::{Map, Value};
use tollgate_chat::Format;
use tollgate_core::Secret;

/// A channel as configured (CONTRACT.md › Configuration).
#[derive(Debug, Clone)]
pub struct Channel {
    /// Its name, unique in the configuration.
    pub name: String,
    /// Which provider speaks to it.
    pub kind: String,
    /// Where the provider listens; none for its own default.
    pub base_url: Option<String>,
    /// Keys, used in turn.
    pub api_keys: Vec<Secret>,
    /// Models it serves. Empty only for the built-in sandbox channel, which serves all.
    pub models: Vec<ChannelModel>,
    /// Lower first.
    pub priority: i64,
    /// Share among channels of equal priority; at least 1.
    pub weight: u32,
    /// Attempts at the same time; none for no limit.
    pub max_concurrency: Option<u32>,
    /// Chat formats that its server speaks, by name; none for all that the provider knows.
    pub apis: Option<Vec<String>>,
    /// How long its chats may be silent, where it says otherwise than the gateway.
    pub time_limits: ChannelTimeLimits,
    /// How often work in its provider's queue is asked for (`poll_ms`), where it says otherwise than the provider's adapter.
    pub poll: Option<Duration>,
    /// What only its provider knows (`[channel.options]`); checked by [`crate::ProviderEntry::check`].
    pub options: Map<String, Value>,
}

/// How long a chat on a channel may be silent; none for what holds for all channels (`time_limits.chat_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChannelTimeLimits {
    /// Until it is connected.
    pub connect: Option<Duration>,
    /// From there until the answer's first byte.
    pub first_byte: Option<Duration>,
    /// Between one byte and the next.
    pub idle: Option<Duration>,
}

/// One model of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelModel {
    /// The id clients use.
    pub name: String,
    /// The id the provider uses.
    pub upstream: String,
    /// What only its provider knows (`options` of the entry).
    pub options: Map<String, Value>,
}

impl ChannelModel {
    /// A model that the provider calls `upstream`, without options.
    pub fn new(name: impl Into<String>, upstream: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            upstream: upstream.into(),
            options: Map::new(),
        }
    }

    /// The id the provider uses, where an entry that gives none of its own has the one that `known` has for its name: pairs
    /// of a client's id and the provider's.
    pub(crate) fn id_by<'a>(&'a self, known: &[(&str, &'a str)]) -> &'a str {
        if self.upstream != self.name {
            return &self.upstream;
        }
        let row = known.iter().find(|(name, _)| *name == self.name);
        row.map_or(&self.upstream, |(_, id)| id)
    }
}

/// The check of a provider that has no options.
pub(crate) fn no_options(channel: &Channel) -> Result<(), String> {
    known_options(channel, &[], &[])
}

/// Whether every option of the channel is among `known`, and every option of its models among `of_models`.
pub(crate) fn known_options(
    channel: &Channel,
    known: &[&str],
    of_models: &[&str],
) -> Result<(), String> {
    let stranger = |options: &Map<String, Value>, known: &[&str], place: &str| {
        let name = options.keys().find(|name| !known.contains(&name.as_str()));
        name.map_or(Ok(()), |name| {
            let known = match known {
                [] => "none".to_owned(),
                some => some.join(", "),
            };
            Err(format!(
                "{place} has an unknown option {name:?}; kind {:?} has: {known}",
                channel.kind
            ))
        })
    };
    stranger(&channel.options, known, "the channel")?;
    channel
        .models
        .iter()
        .try_for_each(|model| stranger(&model.options, of_models, &model.name))
}

impl Default for Channel {
    fn default() -> Self {
        Self::new("", "")
    }
}

impl Channel {
    /// A channel of that name and kind that serves every model and has nothing else said of it.
    pub fn new(name: impl Into<String>, kind: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            kind: kind.into(),
            base_url: None,
            api_keys: Vec::new(),
            models: Vec::new(),
            priority: 0,
            weight: 1,
            max_concurrency: None,
            apis: None,
            time_limits: ChannelTimeLimits::default(),
            poll: None,
            options: Map::new(),
        }
    }

    /// Of the formats that a provider `knows`, best first, those that this channel's server speaks, in the order of its
    /// configuration; all where it names none of them.
    pub(crate) fn chat_formats(&self, knows: &[&'static dyn Format]) -> Vec<&'static dyn Format> {
        let named = self.apis.iter().flatten();
        let spoken: Vec<_> = named
            .filter_map(|name| knows.iter().copied().find(|format| format.name() == name))
            .collect();
        if spoken.is_empty() {
            return knows.to_vec();
        }
        spoken
    }

    /// The entry for `model`, made up where the channel serves every model, or none where it does not serve this one.
    pub fn model<'a>(&'a self, model: &str) -> Option<Cow<'a, ChannelModel>> {
        if self.models.is_empty() {
            return Some(Cow::Owned(ChannelModel::new(model, model)));
        }
        let entry = self.models.iter().find(|m| m.name == model);
        entry.map(Cow::Borrowed)
    }

    /// The provider's id for `model`, or none where this channel does not serve it.
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
