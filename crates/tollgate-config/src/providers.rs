//! The channel kinds of this program: the providers of tollgate-upstream, and providers that the program adds when it starts.

use std::sync::OnceLock;

use tollgate_upstream::ProviderEntry;

static ADDED: OnceLock<&'static [ProviderEntry]> = OnceLock::new();

/// Adds providers of other crates, such as the sandbox. They are added at run time and not listed here so that the server, which depends on this
/// crate, can be compiled before them. Must be called before a configuration is read; a second call has no effect.
pub fn add_providers(entries: &'static [ProviderEntry]) {
    let _ = ADDED.set(entries);
}

/// Every provider that a channel can use.
pub fn providers() -> impl Iterator<Item = &'static ProviderEntry> {
    let added = ADDED.get().copied().unwrap_or_default();
    tollgate_upstream::PROVIDERS.iter().chain(added)
}

/// The provider of a channel's `kind`, or `None` if this program has none of that name.
pub fn provider_of_kind(kind: &str) -> Option<&'static ProviderEntry> {
    providers().find(|entry| entry.kind == kind)
}

/// Whether the provider of that kind needs no key, charges nothing and stores nothing: only the sandbox.
pub fn is_free_of_charge(kind: &str) -> bool {
    provider_of_kind(kind).is_some_and(|entry| entry.environment.is_none())
}

/// The names of all kinds, comma-separated, for error messages.
pub fn kind_names() -> String {
    let mut names: Vec<_> = providers().map(|entry| entry.kind).collect();
    names.sort_unstable();
    names.join(", ")
}
