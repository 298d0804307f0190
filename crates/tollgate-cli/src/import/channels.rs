//! Converts the channels of another gateway: to text for tollgate.toml, and a list of what cannot be imported.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;
use tollgate_config::Config;
use tollgate_media::Catalogue;

/// Longest name of a channel.
const MAX_NAME: usize = 48;
/// The prefix of a reference to an environment variable.
const ENV: &str = "env:";

/// A part of the file that is not imported, and why. Neither text contains a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LeftOut {
    pub(super) item: String,
    pub(super) reason: String,
}

/// A channel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ImportedChannel {
    pub(super) name: String,
    pub(super) kind: String,
    /// The base URL. `None` for that of the provider.
    pub(super) base_url: Option<String>,
    /// The keys, or references `env:NAME`.
    pub(super) api_keys: Vec<String>,
    /// For each model, the name that clients use and the provider's name.
    pub(super) models: Vec<(String, String)>,
    pub(super) priority: i64,
    pub(super) weight: u32,
    pub(super) max_concurrency: Option<u32>,
    /// Whether the server supports only the format chat-completions.
    pub(super) only_chat_completions: bool,
}

impl ImportedChannel {
    /// Whether two channels differ only in name and models, so that they can be merged.
    fn is_like(&self, other: &Self) -> bool {
        let bare = |channel: &Self| Self {
            name: String::new(),
            models: Vec::new(),
            ..channel.clone()
        };
        bare(self) == bare(other)
    }
}

/// Prices of a million tokens as decimal numbers, by the name of the setting.
pub(super) type ImportedPrice = BTreeMap<&'static str, String>;

/// Everything that was read from a file.
#[derive(Debug, Default)]
pub(super) struct Imported {
    pub(super) channels: Vec<ImportedChannel>,
    pub(super) prices: BTreeMap<String, ImportedPrice>,
    pub(super) left_out: Vec<LeftOut>,
    /// Model names that the catalogue does not have, each with the chat model that it is an alias of.
    aliases: BTreeMap<String, String>,
}

impl Imported {
    /// Records that `item` is not imported, and why.
    pub(super) fn leave_out(&mut self, item: impl Into<String>, reason: impl Into<String>) {
        self.left_out.push(LeftOut {
            item: item.into(),
            reason: reason.into(),
        });
    }

    /// Adds a channel under an unused name, or adds its models to a channel that differs only in name and models.
    pub(super) fn add(&mut self, channel: ImportedChannel) {
        let serves = |known: &ImportedChannel, name: &str| {
            let mut models = known.models.iter();
            models.any(|(served, _)| served == name)
        };
        let mut known = self.channels.iter_mut();
        let same = known.find(|known| {
            let mut models = channel.models.iter();
            known.is_like(&channel) && !models.any(|(name, _)| serves(known, name))
        });
        if let Some(same) = same {
            same.models.extend(channel.models);
            return;
        }
        let name = self.free_name(&channel.name);
        self.channels.push(ImportedChannel { name, ..channel });
    }

    /// `wanted` as the name of a channel, with a number appended if another channel has that name.
    fn free_name(&self, wanted: &str) -> String {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let plain: String = wanted
            .chars()
            .map(|c| if is_plain(c) { c } else { '-' })
            .collect();
        let plain = plain.trim_matches('-');
        let plain = &plain[..plain.len().min(MAX_NAME)];
        let plain = if plain.is_empty() { "channel" } else { plain };
        let is_free = |name: &str| self.channels.iter().all(|channel| channel.name != name);
        let mut names = (2..).map(|number| format!("{plain}-{number}"));
        if is_free(plain) {
            return plain.to_owned();
        }
        names.find(|name| is_free(name)).unwrap_or_default()
    }

    /// Makes each model name that the catalogue does not have an alias of a chat model: of the provider's name for it if that is a chat model, else
    /// of the first model of that provider.
    pub(super) fn add_aliases(
        &mut self,
        catalogue: &Catalogue,
        first_model: &BTreeMap<String, String>,
    ) {
        let first = |start: &str| {
            let mut models = catalogue.chat_models();
            models.find(|model| model.starts_with(start))
        };
        for channel in &self.channels {
            let family = first_model.get(&channel.kind);
            for (name, upstream) in &channel.models {
                if catalogue.endpoint(name).is_some() {
                    continue;
                }
                let is_chat = catalogue.chat_models().any(|model| model == upstream);
                let like = match is_chat {
                    true => Some(upstream.as_str()),
                    false => family.and_then(|family| first(family)),
                };
                if let Some(like) = like {
                    self.aliases.insert(name.clone(), like.to_owned());
                }
            }
        }
    }

    /// Leaves out the channels and models that `tollgate serve` would reject, such as a channel whose kind needs settings that the other gateway does
    /// not have.
    pub(super) fn leave_out_invalid_channels(&mut self) {
        for channel in std::mem::take(&mut self.channels) {
            let Err(error) = self.check(&channel) else {
                self.channels.push(channel);
                continue;
            };
            let mut valid = Vec::new();
            let mut invalid = Vec::new();
            for model in &channel.models {
                let models = vec![model.clone()];
                match self.check(&ImportedChannel {
                    models,
                    ..channel.clone()
                }) {
                    Ok(()) => valid.push(model.clone()),
                    Err(error) => invalid.push((model.0.clone(), error)),
                }
            }
            if valid.is_empty() {
                self.leave_out(channel.name, error);
                continue;
            }
            for (model, error) in invalid {
                self.leave_out(format!("{}: model {model}", channel.name), error);
            }
            self.channels.push(ImportedChannel {
                models: valid,
                ..channel
            });
        }
        let served = self.channels.iter().flat_map(|channel| &channel.models);
        let served: BTreeSet<&String> = served.map(|(name, _)| name).collect();
        self.aliases.retain(|name, _| served.contains(name));
        self.prices.retain(|name, _| served.contains(name));
    }

    /// Checks a channel and its aliases as `tollgate serve` would.
    fn check(&self, channel: &ImportedChannel) -> Result<(), String> {
        let own = |name: &String| channel.models.iter().any(|(model, _)| model == name);
        let aliases = self.aliases.iter().filter(|(name, _)| own(name));
        let alone = Self {
            channels: vec![channel.clone()],
            aliases: aliases
                .map(|(name, like)| (name.clone(), like.clone()))
                .collect(),
            ..Self::default()
        };
        let checked = Config::check_imported(&alone.to_toml(), alone.variables());
        checked.map(drop).map_err(|error| error.to_string())
    }

    /// The environment variables that the output refers to.
    pub(super) fn variables(&self) -> BTreeSet<String> {
        let keys = self.channels.iter().flat_map(|channel| &channel.api_keys);
        let urls = self
            .channels
            .iter()
            .filter_map(|channel| channel.base_url.as_ref());
        let named = keys.chain(urls).filter_map(|text| text.strip_prefix(ENV));
        named.map(str::to_owned).collect()
    }

    /// The number of models of all channels together.
    pub(super) fn models_count(&self) -> usize {
        self.channels
            .iter()
            .map(|channel| channel.models.len())
            .sum()
    }

    /// The text for tollgate.toml; what is left out is listed in a comment at its end.
    pub(super) fn to_toml(&self) -> String {
        let mut text =
            String::from("# Written by `tollgate import`. Channels: docs/channels.md.\n");
        for channel in &self.channels {
            write_channel(&mut text, channel);
        }
        for (name, like) in &self.aliases {
            let _ = writeln!(
                text,
                "\n[[model]]\nname = {}\nlike = {}",
                quote(name),
                quote(like)
            );
        }
        for (model, price) in &self.prices {
            let _ = writeln!(text, "\n[price.{}]", quote(model));
            for (setting, amount) in price {
                let _ = writeln!(text, "{setting} = {amount}");
            }
        }
        if !self.left_out.is_empty() {
            text.push_str("\n# Left out:\n");
            for LeftOut { item, reason } in &self.left_out {
                let _ = writeln!(text, "# - {}: {}", one_line(item), one_line(reason));
            }
        }
        text
    }
}

fn write_channel(text: &mut String, channel: &ImportedChannel) {
    let _ = writeln!(
        text,
        "\n[[channel]]\nname = {}\nkind = {}",
        quote(&channel.name),
        quote(&channel.kind)
    );
    if let Some(url) = &channel.base_url {
        let _ = writeln!(text, "base_url = {}", quote(url));
    }
    if channel.only_chat_completions {
        text.push_str("apis = [\"chat-completions\"]\n");
    }
    if !channel.api_keys.is_empty() {
        let keys: Vec<String> = channel.api_keys.iter().map(|key| quote(key)).collect();
        let _ = writeln!(text, "api_keys = [{}]", keys.join(", "));
    }
    text.push_str("models = [\n");
    for (name, upstream) in &channel.models {
        let _ = match name == upstream {
            true => writeln!(text, "  {},", quote(name)),
            false => writeln!(
                text,
                "  {{ name = {}, upstream = {} }},",
                quote(name),
                quote(upstream)
            ),
        };
    }
    text.push_str("]\n");
    if channel.priority != 0 {
        let _ = writeln!(text, "priority = {}", channel.priority);
    }
    if channel.weight > 1 {
        let _ = writeln!(text, "weight = {}", channel.weight);
    }
    if let Some(max) = channel.max_concurrency {
        let _ = writeln!(text, "max_concurrency = {max}");
    }
}

fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// A basic string of TOML, whose escapes are those of JSON.
fn quote(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
