//! The one HTTP client that may leave the machine.
//!
//! It has two ways out. [`Client::send`] and [`Client::fetch_own`] go where the operator configured: providers' base URLs,
//! anywhere. [`Client::fetch_guarded`] and [`Client::post_guarded`] go where a client of the gateway, or a provider's
//! answer, points: only to public addresses. None of them reads proxies from the environment, follows `Set-Cookie`, or adds credentials.

mod address;
mod error;
mod guarded;
mod own;
mod parts;
mod plain;
mod pool;
mod post;
mod resolve;

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rustls::ClientConfig;

pub use error::EgressError;
pub use guarded::{FetchLimits, Fetched};
pub use parts::{Parts, PartsBody};
pub use plain::{RequestBody, ResponseBody, Timeouts, body};
pub use resolve::{Resolve, SystemResolver};

/// How the gateway names itself to the servers it asks.
const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// What a [`Client`] is made with.
pub struct ClientOptions {
    /// Address blocks that client-given URLs may also lead to (`media.allow_private_urls`).
    pub allow_private: Vec<IpNet>,
    /// Longest wait for a connection: resolving, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Who resolves the host names of client-given URLs.
    pub resolver: Arc<dyn Resolve>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            allow_private: Vec::new(),
            connect_timeout: Duration::from_secs(10),
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// The HTTP client. Cloning is cheap; clones share connections.
#[derive(Clone)]
pub struct Client {
    plain: Arc<pool::Pool>,
    guarded: Arc<guarded::Fetcher>,
}

impl Client {
    /// A client that trusts the certificate authorities of the web (the embedded Mozilla list).
    pub fn new(options: ClientOptions) -> Self {
        let roots = rustls::RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        Self::trusting(roots, options)
    }

    /// A client that trusts `roots` and nobody else.
    pub fn trusting(roots: rustls::RootCertStore, options: ClientOptions) -> Self {
        let tls = tls_config(roots);
        Self {
            plain: pool::Pool::new(tls.clone(), options.connect_timeout),
            guarded: Arc::new(guarded::Fetcher::new(tls, options)),
        }
    }
}

fn tls_config(roots: rustls::RootCertStore) -> ClientConfig {
    // Named, because a process-wide default provider is a global that others could set.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
