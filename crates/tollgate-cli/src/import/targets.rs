//! Where the channels of other gateways lead, by the names and numbers that those have for providers: `providers.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use url::Url;

const TABLE: &str = include_str!("providers.toml");

/// A provider as another gateway knows it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Target {
    /// What LiteLLM calls it; empty where it is known by a number.
    #[serde(default)]
    pub(super) name: String,
    /// Its number in new-api or one-api.
    #[serde(rename = "type", default)]
    number: i64,
    /// The kind of channel here.
    pub(super) kind: String,
    /// Its address; `None` for that of the kind.
    base_url: Option<String>,
    /// What is appended to an address that does not end with it.
    #[serde(default)]
    path: String,
    /// What an address there may end with and ours does not have.
    #[serde(default)]
    without: Vec<String>,
    /// Ends of the names of its hosts, if the path begins behind the host's name. Empty for any address.
    #[serde(default)]
    hosts: Vec<String>,
    /// The variable with the key if there is none in the file.
    pub(super) variable: Option<String>,
    /// Whether its servers speak chat-completions only.
    #[serde(default)]
    pub(super) only_chat_completions: bool,
    /// Whether it has no address of its own.
    #[serde(default)]
    needs_address: bool,
    /// What stands between the two parts of a key there, for which we write a colon.
    key_separator: Option<char>,
}

/// All of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Targets {
    /// By kind, what the chat models begin with that other names are like.
    pub(super) first_model: BTreeMap<String, String>,
    /// By the beginning of an id without a provider, the provider.
    pub(super) bare: BTreeMap<String, String>,
    pub(super) litellm: Vec<Target>,
    both: Vec<Target>,
    new_api: Vec<Target>,
    one_api: Vec<Target>,
}

/// Which of the two gateways, whose types have different numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    NewApi,
    OneApi,
}

impl Targets {
    /// Reads the table.
    ///
    /// # Errors
    /// It is not as it should be, which a test rules out.
    pub(super) fn load() -> Result<Self, String> {
        toml::from_str(TABLE).map_err(|e| format!("providers.toml: {e}"))
    }

    /// The provider of a number.
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
    /// The address of a channel with this address there. `None` for that of the kind.
    ///
    /// # Errors
    /// Why there is none.
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

    /// A key as it is written here.
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
    fn every_provider_of_the_table_has_a_kind_and_is_there_once() {
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
    fn addresses_are_written_as_the_kinds_have_them() {
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
                (Err(error), Err(words)) => assert!(error.contains(words), "{error}"),
                _ => panic!("{name} {written:?}: {found:?}"),
            }
        }
    }
}
