//! A channel of the database: its settings as in the configuration file, and its keys.

use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tollgate_config::providers::provider_of_kind;
use tollgate_config::{SettingError, channel_from_json};
use tollgate_core::Secret;
use tollgate_upstream::Channel;

use crate::provider_keys::StoredKey;

/// The member of a row with the keys.
const API_KEYS: &str = "api_keys";

/// A channel in a row of the database.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredChannel {
    /// All settings except name and keys.
    pub settings: Map<String, Value>,
    /// The keys, in the channel's order.
    pub keys: Vec<StoredKey>,
}

impl StoredChannel {
    /// Reads the channel from a row's body. A key that this version cannot parse is a [`StoredKey::Unknown`], with which the channel cannot be
    /// opened.
    pub fn from_row(body: &Value) -> Self {
        let mut settings = body.as_object().cloned().unwrap_or_default();
        let keys = match settings.remove(API_KEYS).unwrap_or_default() {
            Value::Null => Vec::new(),
            keys => Vec::deserialize(&keys).unwrap_or_else(|_| vec![StoredKey::Unknown(keys)]),
        };
        Self { settings, keys }
    }

    /// Returns the row's body.
    pub fn to_row(&self) -> Value {
        let mut body = self.settings.clone();
        body.insert(API_KEYS.to_owned(), json!(self.keys));
        Value::Object(body)
    }

    /// The channel without its keys, for showing it. If this version cannot parse the settings, because a later version wrote them, it has only name
    /// and kind.
    pub fn without_keys(&self, name: &str) -> Channel {
        let unknown = || Channel {
            name: name.to_owned(),
            kind: self
                .settings
                .get("kind")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
            ..Channel::default()
        };
        channel_from_json(name, &self.settings).unwrap_or_else(|_| unknown())
    }

    /// The channel with its keys, checked by the same code as channels of the file.
    ///
    /// # Errors
    /// The setting that is invalid, or the key that this node cannot read.
    pub fn to_channel(
        &self,
        name: &str,
        secrets_key: Option<&Secret>,
    ) -> Result<Channel, SettingError> {
        let keys = self.keys.iter().enumerate().map(|(at, key)| {
            key.open(name, secrets_key).map_err(|message| SettingError {
                path: format!("{API_KEYS}[{at}]"),
                message,
            })
        });
        let channel = Channel {
            api_keys: keys.collect::<Result<_, _>>()?,
            ..channel_from_json(name, &self.settings)?
        };
        let provider = provider_of_kind(&channel.kind);
        let checked = provider.map_or(Ok(()), |provider| (provider.check)(&channel));
        checked.map_err(|message| SettingError {
            path: String::new(),
            message,
        })?;
        Ok(channel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_whose_keys_cannot_be_parsed_is_not_opened_without_them() {
        let vault = json!({ "vault": "a/b" });
        let path = json!({ "env": "PATH" });
        for (keys, first_unknown) in [
            (json!([path, vault]), "api_keys[1]"),
            (json!([{ "env": 1 }]), "api_keys[0]"),
            (json!([null]), "api_keys[0]"),
            (vault, "api_keys[0]"),
        ] {
            let body = json!({ "kind": "openai", "api_keys": keys });
            let channel = StoredChannel::from_row(&body);
            let error = channel.to_channel("a", None).unwrap_err();
            assert_eq!(error.path, first_unknown, "{error:?}");
            assert!(!channel.keys.is_empty());
            if keys.is_array() {
                assert_eq!(channel.to_row(), body, "the keys are kept");
            }
        }
        for body in [
            json!({ "kind": "openai" }),
            json!({ "kind": "openai", "api_keys": [] }),
            json!({ "kind": "openai", "api_keys": [path] }),
        ] {
            let channel = StoredChannel::from_row(&body).to_channel("a", None);
            let keys = body["api_keys"].as_array().map_or(0, Vec::len);
            assert_eq!(channel.unwrap().api_keys.len(), keys);
        }
    }
}
