//! Finds the providers whose keys are in the environment.

use tollgate_config::providers::providers;
use tollgate_upstream::ProviderEntry;
use tollgate_upstream::provider::EnvironmentChannel;

/// A provider whose key was found, and the variable with the key.
pub(super) struct FoundProvider {
    /// The kind of its channel, which is also the channel's name.
    pub(super) kind: &'static str,
    /// The environment variable with its key.
    pub(super) key: &'static str,
    /// The server that the key is for, if it is not the provider's own.
    pub(super) base_url: Option<String>,
    /// The models that its channel lists.
    pub(super) models: &'static [&'static str],
}

/// For each provider that was not found, the usual variable of its key.
pub(super) fn missing_keys(found: &[FoundProvider]) -> Vec<&'static str> {
    let is_found = |entry: &&ProviderEntry| found.iter().any(|found| found.kind == entry.kind);
    let others = providers().filter(|entry| !is_found(entry));
    others
        .filter_map(|entry| entry.environment?.keys.first().copied())
        .collect()
}

/// The providers whose keys are set; `variable` returns the value of an environment variable.
pub(super) fn find_providers(variable: impl Fn(&str) -> Option<String>) -> Vec<FoundProvider> {
    let find = |entry: &'static ProviderEntry| {
        let EnvironmentChannel {
            keys,
            base_url,
            models,
        } = *entry.environment?;
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
        Some(FoundProvider {
            kind: entry.kind,
            key: keys.iter().find(|name| is_set(name))?,
            base_url: base_url.and_then(&variable).filter(|url| !url.is_empty()),
            models,
        })
    };
    providers().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use tollgate_media::Catalogue;

    use super::*;

    #[test]
    fn every_provider_that_needs_a_key_is_found_with_models_of_the_catalogue() {
        let catalogue = Catalogue::new(&[]).unwrap();
        let all = find_providers(|_| Some("set".to_owned()));
        let with_key =
            providers().filter(|entry| !tollgate_config::providers::is_free_of_charge(entry.kind));
        assert_eq!(all.len(), with_key.count());
        for found in &all {
            for model in found.models {
                assert!(catalogue.endpoint(model).is_some(), "{model}");
            }
        }
        assert!(missing_keys(&all).is_empty());
        let other = find_providers(|name| (name == "GOOGLE_API_KEY").then(|| "set".to_owned()));
        assert_eq!(other.len(), 1);
        assert_eq!(missing_keys(&other).len(), all.len() - 1);
    }
}
