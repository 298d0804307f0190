//! Authentication by API key, and the rate limits of keys, users and the gateway.

pub mod caller;
pub mod keys;
pub mod limits;
pub mod passwords;
