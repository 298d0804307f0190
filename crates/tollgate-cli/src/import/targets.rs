//! Maps the names and numbers that other gateways use for providers to channel kinds and addresses: `providers.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Url;

const TABLE: &str = include_str!("providers.toml");

/// A provider as other gateways name it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// LiteLLM's name; empty if the other gateway uses a number.
    #[serde(default)]
    pub(super) name: String,
    /// The number in new-api or one-api.
    #[serde(rename = "type", default)]
    number: i64,
    /// The kind of the channel here.
    pub(super) kind: String,
    /// The provider's address; `None` for that of the channel kind.
    base_url: Option<String>,
    /// The path that is appended to an address which does not end with it.
    #[serde(default)]
    path: String,
    /// Path ends that addresses have in the other gateway but not here.
    #[serde(default)]
    without: Vec<String>,
    /// Ends of the provider's host names, if `path` replaces the address's path. Empty if any address is possible.
    #[serde(default)]
    hosts: Vec<String>,
    /// The environment variable with the key if the file has none.
    pub(super) variable: Option<String>,
    /// Whether the provider's servers support only the format chat-completions.
    #[serde(default)]
    pub(super) only_chat_completions: bool,
    /// Whether there is no default address.
    #[serde(default)]
    needs_address: bool,
    /// The character between the two parts of a key in the other gateway; here it is a colon.
    key_separator: Option<char>,
}

/// The contents of `providers.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Targets {
    /// By channel kind, the beginning of the ids of chat models that unknown names become aliases of.
    pub(super) first_model: BTreeMap<String, String>,
    /// By the beginning of a model id without a provider, the provider's name.
    pub(super) bare: BTreeMap<String, String>,
    pub(super) litellm: Vec<Target>,
    both: Vec<Target>,
    new_api: Vec<Target>,
    one_api: Vec<Target>,
}

/// The gateway that the channels come from: the numbers of the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    NewApi,
    OneApi,
}

impl Targets {
    /// Parses the table.
    ///
    /// # Errors
    /// The table is malformed, which a test rules out.
    pub(super) fn load() -> Result<Self, String> {
        toml::from_str(TABLE).map_err(|e| format!("providers.toml: {e}"))
    }

    /// The provider with that number.
    pub(super) fn of_type(&self, variant: Variant, number: i64) -> Option<&Target> {
        let own = match variant {
            Variant::NewApi => &self.new_api,
            Variant::OneApi => &self.one_api,
        };
        let mut targets = self.both.iter().chain(own);
        targets.find(|target| target.number == number)
    }
}

impl Target {
    /// Converts the address of a channel in the other gateway. `None` for that of the channel kind.
    ///
    /// # Errors
    /// Why the address cannot be converted.
    pub(super) fn base_url(&self, written: Option<&str>) -> Result<Option<String>, String> {
        let written = written.or(self.base_url.as_deref());
        let Some(written) = written else {
            return match self.needs_address {
                true => Err("it has no address".to_owned()),
                false => Ok(None),
            };
        };
        if written.starts_with("env:") {
            return match self.path.as_str() {
                "" => Ok(Some(written.to_owned())),
                path => Err(format!(
                    "its address comes from the environment: write base_url with {path} at its end"
                )),
            };
        }
        let mut url = written.trim_end_matches('/');
        for end in &self.without {
            url = url.strip_suffix(end.as_str()).unwrap_or(url);
        }
        if self.hosts.is_empty() {
            let path = match url.ends_with(&self.path) {
                true => "",
                false => self.path.as_str(),
            };
            return Ok(Some(format!("{url}{path}")));
        }
        let parsed = Url::parse(url).ok();
        let host = parsed.as_ref().and_then(Url::host_str);
        let host = host.filter(|host| self.hosts.iter().any(|end| host.ends_with(end.as_str())));
        host.map(|host| Some(format!("https://{host}{}", self.path)))
            .ok_or_else(|| {
                format!(
                    "its address is none of *{}: write base_url",
                    self.hosts.join(", *")
                )
            })
    }

    /// Converts a key to the form that it has here.
    pub(super) fn key(&self, key: &str) -> String {
        match self.key_separator {
            Some(separator) => key.replacen(separator, ":", 1),
            None => key.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_config::providers::provider_of_kind;

    #[test]
    fn every_provider_of_the_table_has_a_kind_and_is_listed_once() {
        let targets = Targets::load().unwrap();
        let lists = [
            &targets.litellm,
            &targets.both,
            &targets.new_api,
            &targets.one_api,
        ];
        for target in lists.into_iter().flatten() {
            assert!(provider_of_kind(&target.kind).is_some(), "{target:?}");
            assert!(!target.name.is_empty() || target.number > 0, "{target:?}");
        }
        for name in targets.bare.values() {
            assert!(
                targets.litellm.iter().any(|target| target.name == *name),
                "{name}"
            );
        }
        for list in [&targets.new_api, &targets.one_api] {
            let mut numbers: Vec<i64> =
                list.iter().chain(&targets.both).map(|t| t.number).collect();
            numbers.sort_unstable();
            let count = numbers.len();
            numbers.dedup();
            assert_eq!(numbers.len(), count, "{numbers:?}");
        }
    }

    #[test]
    fn addresses_are_converted_to_base_urls_of_the_kinds() {
        let targets = Targets::load().unwrap();
        let find = |name: &str| targets.litellm.iter().find(|target| target.name == name);
        for (name, written, expected) in [
            (
                "anthropic",
                Some("https://a.example/v1/messages"),
                Ok(Some("https://a.example")),
            ),
            ("anthropic", None, Ok(None)),
            (
                "azure",
                Some("https://r.openai.azure.com/openai/deployments/x"),
                Ok(Some("https://r.openai.azure.com/openai/v1")),
            ),
            (
                "azure",
                Some("https://gateway.example/azure"),
                Err("none of *.azure.com"),
            ),
            ("azure", None, Err("no address")),
            (
                "ollama",
                Some("http://localhost:11434/"),
                Ok(Some("http://localhost:11434/v1")),
            ),
            (
                "ollama",
                Some("http://localhost:11434/v1"),
                Ok(Some("http://localhost:11434/v1")),
            ),
            ("ollama", Some("env:OLLAMA"), Err("with /v1 at its end")),
            ("groq", None, Ok(Some("https://api.groq.com/openai/v1"))),
            ("hosted_vllm", Some("env:VLLM"), Ok(Some("env:VLLM"))),
        ] {
            let found = find(name).unwrap().base_url(written);
            match (&found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_deref(), expected),
                (Err(error), Err(message)) => assert!(error.contains(message), "{error}"),
                _ => panic!("{name} {written:?}: {found:?}"),
            }
        }
    }
}
