//! Options of a request that change its price at the provider, or that store state there: service tiers, fast modes, background runs, stored
//! conversations, tools that the provider runs, long cache writes. They are forwarded only if a channel allows them or a price names them
//! (docs/channels.md#allowed-options).

mod beta_headers;
mod find;
mod option;
mod remove;
#[cfg(test)]
mod tests;

pub use beta_headers::{BETA_HEADERS, is_allowed_beta};
pub use find::{find_options, has_no_options};
pub use option::{FoundOption, IfNotAllowed, ProviderOption};
pub use remove::{add_store_false, remove_options};
