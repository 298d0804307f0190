//! [`Client`]: TLS configuration, connection pool and guarded client in one cheap handle.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use rustls::ClientConfig;

use super::fetch_guarded::GuardedClient;
use super::pool::Pool;
use super::resolve::{Resolve, SystemResolver};

/// The `user-agent` of every outgoing request.
pub(super) const USER_AGENT: &str = concat!("tollgate/", env!("CARGO_PKG_VERSION"));

/// Options of a [`Client`].
pub struct ClientOptions {
    /// Private address blocks that client-given URLs may lead to as well (`media.allow_private_urls`).
    pub allow_private: Vec<IpNet>,
    /// Timeout for a connection: DNS lookup, TCP and TLS together.
    pub connect_timeout: Duration,
    /// Resolves the host names of client-given URLs.
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
    pub(super) pool: Arc<Pool>,
    pub(super) guarded: Arc<GuardedClient>,
}

impl Client {
    /// A client that trusts the certificate authorities of the web (the embedded Mozilla list).
    pub fn new(options: ClientOptions) -> Self {
        let roots = rustls::RootCertStore {
            roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
        };
        Self::trusting(roots, options)
    }

    /// A client that trusts only `roots`.
    pub fn trusting(roots: rustls::RootCertStore, options: ClientOptions) -> Self {
        let tls = tls_config(roots);
        Self {
            pool: Pool::new(tls.clone(), options.connect_timeout),
            guarded: Arc::new(GuardedClient::new(tls, options)),
        }
    }
}

fn tls_config(roots: rustls::RootCertStore) -> ClientConfig {
    // Given explicitly: the process-wide default is a global that other code could set.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
