//! TLS of the gateway's listener (`tls.cert`, `tls.key`): loading the pair, replacing it when the files change.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tollgate_core::Millis;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// Interval at which the files are compared with what is in use.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
/// The name of HTTP/2 in ALPN (RFC 9113, 3.2).
pub(super) const H2: &[u8] = b"h2";

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and its intermediates, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// The certificate in use. Clones share it.
#[derive(Clone)]
pub struct ServerTls {
    files: TlsFiles,
    current: Arc<RwLock<Arc<ServerConfig>>>,
    /// What was read last, whether or not it could be used.
    seen: Arc<Mutex<[u8; 32]>>,
}

impl ServerTls {
    /// Loads the certificate and its key.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn load(files: &TlsFiles) -> Result<Self, String> {
        let pair = Pair::read(files)?;
        Ok(Self {
            files: files.clone(),
            current: Arc::new(RwLock::new(pair.config(files)?)),
            seen: Arc::new(Mutex::new(pair.digest())),
        })
    }

    /// Uses the files for new connections whenever they have changed; a pair that cannot be used is logged, and the one in use stays.
    /// Never returns.
    pub async fn watch(self) {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let tls = self.clone();
            let reloaded = tokio::task::spawn_blocking(move || tls.reload()).await;
            match reloaded {
                Ok(Ok(false)) | Err(_) => {}
                Ok(Ok(true)) => tracing::info!("a new TLS certificate is in use"),
                Ok(Err(e)) => {
                    tracing::error!(error = e, "the TLS certificate was not replaced");
                }
            }
        }
    }

    /// Whether there was another pair, which is now in use. Each unusable pair is an error once.
    fn reload(&self) -> Result<bool, String> {
        let pair = Pair::read(&self.files);
        let digest = match &pair {
            Ok(pair) => pair.digest(),
            Err(e) => Sha256::digest(e).into(),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *seen, digest) == digest {
            return Ok(false);
        }
        let config = pair?.config(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(true)
    }

    fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The server's side of a TLS handshake.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current()).accept(stream).await
    }
}

impl TlsFiles {
    /// When the certificate expires.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn expires_at(&self) -> Result<Millis, String> {
        let cert = self.cert.display();
        let unreadable = |e: &dyn std::fmt::Display| format!("tls.cert: {cert}: {e}");
        let pem = fs::read(&self.cert).map_err(|e| unreadable(&e))?;
        let first = CertificateDer::from_pem_slice(&pem).map_err(|e| unreadable(&e))?;
        let first = Certificate::from_der(&first).map_err(|e| unreadable(&e))?;
        let end = first.tbs_certificate.validity.not_after;
        Ok(Millis::try_from(end.to_unix_duration().as_millis()).unwrap_or(Millis::MAX))
    }
}

/// The contents of the two files.
struct Pair {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Pair {
    fn read(files: &TlsFiles) -> Result<Self, String> {
        let read = |setting: &str, path: &PathBuf| {
            fs::read(path).map_err(|e| format!("{setting}: cannot read {}: {e}", path.display()))
        };
        Ok(Self {
            cert: read("tls.cert", &files.cert)?,
            key: read("tls.key", &files.key)?,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let cert = Sha256::digest(&self.cert);
        Sha256::new()
            .chain_update(cert)
            .chain_update(&self.key)
            .finalize()
            .into()
    }

    /// TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
    fn config(&self, files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
        let cert = files.cert.display();
        let certificates = CertificateDer::pem_slice_iter(&self.cert)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|e| format!("tls.cert: {cert} is no PEM file of certificates: {e}"))?;
        if certificates.is_empty() {
            return Err(format!("tls.cert: {cert} has no certificate in PEM"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|e| {
            let key = files.key.display();
            format!("tls.key: {key} has no private key in PEM: {e}")
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(certificates, key)
            })
            .map_err(|e| format!("tls.cert and tls.key cannot be used together: {e}"))?;
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}
