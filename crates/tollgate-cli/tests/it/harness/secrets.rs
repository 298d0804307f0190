//! Every secret that a test uses: its gateway's log may contain none of them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use serde_json::Value;

/// A shorter text is not a secret but a placeholder of a test.
const MIN_LENGTH: usize = 12;
/// Larger bodies contain no secrets; reading them would delay a test's responses to its gateway for seconds.
const MAX_BODY: usize = 1 << 20;
/// Members of JSON objects and settings that hold secrets, or lists of them.
const NAMES: [&str; 7] = [
    "key", "keys", "api_key", "api_keys", "secret", "token", "password",
];
const HEADERS: [&str; 5] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "cookie",
    "set-cookie",
];

/// The secrets that a test used so far. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<Mutex<BTreeSet<String>>>);

impl Secrets {
    /// Adds a value that is a secret.
    pub(super) fn insert(&self, secret: &str) {
        // Ids of keys and names of settings and variables are not secrets.
        let is_none =
            secret.starts_with("key_") || secret.starts_with("env:") || secret.contains(['.', ' ']);
        if secret.len() >= MIN_LENGTH && !is_none {
            self.0.lock().unwrap().insert(secret.to_owned());
        }
    }

    /// Adds the secrets in the headers of a request or response.
    pub(super) fn read_headers(&self, headers: &HeaderMap) {
        let values = HEADERS.iter().flat_map(|name| headers.get_all(*name));
        for value in values.filter_map(|value| value.to_str().ok()) {
            let value = value.strip_prefix("Bearer ").unwrap_or(value);
            let value = value.split(';').next().unwrap_or_default();
            self.insert(value.split_once('=').map_or(value, |(_, value)| value));
        }
    }

    /// Adds the secrets in a JSON body.
    pub(super) fn read_body(&self, body: &[u8]) {
        if body.len() <= MAX_BODY
            && body.starts_with(b"{")
            && let Ok(body) = serde_json::from_slice(body)
        {
            self.read_json(&body);
        }
    }

    /// Adds the secrets of a configuration file.
    pub(super) fn read_config(&self, toml: &str) {
        if let Ok(config) = toml::from_str::<Value>(toml) {
            self.read_json(&config);
        }
    }

    /// Adds the secrets in an environment variable.
    pub(super) fn read_variable(&self, name: &str, value: &str) {
        if ["KEY", "KEYS", "SECRET", "TOKEN"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            self.insert(value);
        }
    }

    fn read_json(&self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.read_json(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::String(text) if NAMES.contains(&name.as_str()) => self.insert(text),
                        Value::Array(texts) if NAMES.contains(&name.as_str()) => {
                            texts
                                .iter()
                                .filter_map(Value::as_str)
                                .for_each(|text| self.insert(text));
                        }
                        value => self.read_json(value),
                    }
                }
            }
            _ => {}
        }
    }

    /// The first line of `log` with one of the secrets, and that secret. The link with which the first admin signs in is printed on purpose.
    pub(super) fn find_in<'a>(&self, log: &'a str) -> Option<(&'a str, String)> {
        let secrets = self.0.lock().unwrap();
        let lines = log
            .lines()
            .filter(|line| !line.starts_with("first sign-in: "));
        let mut lines =
            lines.map(|line| (line, secrets.iter().find(|secret| line.contains(*secret))));
        lines.find_map(|(line, secret)| Some((line, secret?.clone())))
    }
}
