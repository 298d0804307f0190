//! One configured way to a provider.

use std::time::Duration;

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
