//! The configuration (docs/configuration.md): command line, environment and file, checked.
//!
//! Precedence: command line, environment (`TOLLGATE_` + path in capitals joined by `__`; an empty
//! variable counts as unset), file, default.

mod addresses;
mod admin;
mod channels;
mod checks;
mod config;
mod deserializer;
mod document;
mod error;
mod fields;
mod json;
mod log;
mod multiplier;
mod oidc;
mod origins;
mod part_prices;
mod prices;
pub mod providers;
pub mod redis_url;
mod report;
mod safety;
mod settings;
mod source;
mod storage;
mod traces;
mod values;

#[cfg(test)]
mod tests;

pub use addresses::TlsFiles;
pub use admin::AdminListener;
pub use config::{Config, Overrides};
pub use error::ConfigError;
pub use json::{SettingError, channel_from_json, price_from_json};
pub use log::{Log, LogFormat, Ratio};
pub use multiplier::Multiplier;
pub use oidc::{Oidc, OidcRole, is_safe_url};
pub use part_prices::PartPrices;
pub use prices::{ModelPrice, PriceWhen, UnitPrice};
pub use report::Setting;
pub use safety::Safety;
pub use source::Source;
pub use storage::{S3Location, ServeMode};
pub use traces::Traces;
pub use values::{
    Chat, Currency, Expiry, Fairness, Leases, Limits, OnRedisLoss, TimeLimits, Workers,
};
