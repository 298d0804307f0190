//! A channel of the database: its settings as in the configuration file, and its keys.

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
    /// Reads the channel from a row's body.
    pub fn from_row(body: &Value) -> Self {
        let mut settings = body.as_object().cloned().unwrap_or_default();
        let keys = settings.remove(API_KEYS).unwrap_or_default();
        Self {
            settings,
            keys: serde_json::from_value(keys).unwrap_or_default(),
        }
    }

    /// Returns the row's body.
    pub fn to_row(&self) -> Value {
        let mut body = self.settings.clone();
        body.insert(API_KEYS.to_owned(), json!(self.keys));
        Value::Object(body)
    }

    /// The channel without its keys, for showing it. If a later version wrote it, settings that this version does not know are left out.
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
