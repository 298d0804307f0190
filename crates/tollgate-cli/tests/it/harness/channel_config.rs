//! The configuration of a channel.

use std::fmt::Debug;

/// A `[[channel]]` of `tollgate.toml`.
pub(crate) struct ChannelConfig(String);

impl ChannelConfig {
    pub(crate) fn new(name: &str, kind: &str) -> Self {
        Self(format!("[[channel]]\nname = {name:?}\nkind = {kind:?}\n"))
    }

    /// Sets the base URL.
    pub(crate) fn url(self, url: &str) -> Self {
        self.lines(&format!("base_url = {url:?}"))
    }

    /// Sets the API keys.
    pub(crate) fn keys(self, keys: &[impl AsRef<str> + Debug]) -> Self {
        self.lines(&format!("api_keys = {keys:?}"))
    }

    /// Sets the models, whose names at the provider are the same.
    pub(crate) fn models(self, models: &[impl AsRef<str> + Debug]) -> Self {
        self.lines(&format!("models = {models:?}"))
    }

    /// Sets one model with the gateway's name and the provider's.
    pub(crate) fn model_as(self, name: &str, upstream: &str) -> Self {
        let model = format!("{{ name = {name:?}, upstream = {upstream:?} }}");
        self.lines(&format!("models = [{model}]"))
    }

    /// Adds other lines.
    pub(crate) fn lines(mut self, lines: &str) -> Self {
        self.0.push_str(lines);
        self.0.push('\n');
        self
    }

    pub(crate) fn text(self) -> String {
        self.0
    }
}
