//! The channel kinds of this build: the providers of tollgate-upstream and the sandbox.

use tollgate_upstream::ProviderEntry;

/// Every provider that a channel can have.
pub fn providers() -> impl Iterator<Item = &'static ProviderEntry> {
    tollgate_upstream::PROVIDERS
        .iter()
        .chain([&tollgate_sandbox::PROVIDER])
}

/// The provider of a channel's `kind`, or `None` if this build has none of that name.
pub fn provider_of_kind(kind: &str) -> Option<&'static ProviderEntry> {
    providers().find(|entry| entry.kind == kind)
}

/// Whether the provider of that kind charges nothing and keeps nothing: the sandbox.
pub fn is_free_of_charge(kind: &str) -> bool {
    kind == tollgate_sandbox::PROVIDER.kind
}

/// The names of all kinds, comma-separated, for error messages.
pub fn kind_names() -> String {
    let mut names: Vec<_> = providers().map(|entry| entry.kind).collect();
    names.sort_unstable();
    names.join(", ")
}
