//! The HTTP client that sends every outgoing request: connection pool, timeouts, SSRF guard.
//!
//! [`Client::send`] and [`Client::fetch_own`] request URLs that the operator configured (providers' base URLs), on any network.
//! [`Client::fetch_guarded`] and [`Client::post_guarded`] request URLs from clients, from providers' responses and of alerts, at public addresses and
//! those in [`ClientOptions::allow_private`] only. None of them reads proxies from the environment, keeps cookies or adds credentials.

mod any_certificate;
mod client;
mod error;
mod fetch_guarded;
mod fetch_own;
mod options;
mod pool;
mod post_guarded;
mod private_host;
mod request;
mod resolve;
mod ssrf_guard;
mod streamed_body;

pub use client::Client;
pub use error::EgressError;
pub use fetch_guarded::{FetchLimits, Fetched};
pub use options::ClientOptions;
pub use pool::SentOnce;
pub(crate) use private_host::is_private_url;
pub use request::{ResponseBody, Timeouts};
pub use resolve::{Resolve, SystemResolver};
pub(crate) use ssrf_guard::is_public;
pub use streamed_body::{BodyParts, BodyPartsStream, RequestBody, body};
