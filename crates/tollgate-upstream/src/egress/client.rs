//! [`Client`]: TLS configuration, connection pool and guarded client in one cheap handle.

use std::sync::Arc;

use rustls::ClientConfig;
use tokio::io::AsyncWrite;
use tokio::time::timeout;

use super::any_certificate::AnyCertificate;
use super::error::EgressError;
use super::fetch_guarded::{FetchLimits, Fetched, GuardedClient};
use super::options::ClientOptions;
use super::pool::{Pool, SendRequest};

/// The HTTP client. Cloning is cheap; clones share connections.
#[derive(Clone)]
pub struct Client {
    pub(super) pool: Arc<dyn SendRequest>,
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
        Self::with_tls(tls_config(roots), options)
    }

    /// A client that accepts every certificate: for requests without secrets to a gateway on this machine.
    pub fn accepting_any_certificate(options: ClientOptions) -> Self {
        let mut tls = tls_config(rustls::RootCertStore::empty());
        let provider = Arc::clone(tls.crypto_provider());
        let verifier = Arc::new(AnyCertificate(provider));
        tls.dangerous().set_certificate_verifier(verifier);
        Self::with_tls(tls, options)
    }

    fn with_tls(tls: ClientConfig, options: ClientOptions) -> Self {
        Self {
            pool: Pool::new(tls.clone(), options.connect_timeout),
            guarded: Arc::new(GuardedClient::new(tls, options)),
        }
    }

    /// Fetches a URL from a client or from a provider's response into `sink`, within `limits`.
    ///
    /// Only http and https, only public addresses and those allowed by configuration; every
    /// redirect is checked like the URL itself. On an error part of the body may be in the sink.
    pub async fn fetch_guarded<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        limits: &FetchLimits,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        timeout(limits.total_time, self.guarded.fetch(url, limits, sink))
            .await
            .map_err(|_| EgressError::TimedOut(limits.total_time))?
    }
}

fn tls_config(roots: rustls::RootCertStore) -> ClientConfig {
    // The provider is passed explicitly: the process-wide default is a global that other code could set.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
