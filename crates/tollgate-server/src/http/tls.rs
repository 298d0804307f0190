//! TLS of the gateway's listeners (`tls`, `admin.tls`): loads the files, and replaces certificates in use when the files change.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tollgate_config::TlsFiles;
use tollgate_core::Millis;
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// Interval at which the files are compared with the certificates in use.
const RELOAD_INTERVAL: Duration = Duration::from_secs(5);
/// The setting with the authorities of client certificates.
const CLIENT_CA: &str = "admin.tls.client_ca";
/// The name of HTTP/2 in ALPN (RFC 9113, 3.2).
pub(super) const H2: &[u8] = b"h2";

/// The certificates in use. Clones share them.
#[derive(Clone)]
pub struct ServerTls {
    files: TlsFiles,
    current: Arc<RwLock<Arc<ServerConfig>>>,
    /// A hash of the contents that were read last, whether or not they could be used.
    seen: Arc<Mutex<[u8; 32]>>,
}

impl ServerTls {
    /// Loads the certificate, its key, and the authorities of clients.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn load(files: &TlsFiles) -> Result<Self, String> {
        let contents = Contents::read(files)?;
        Ok(Self {
            files: files.clone(),
            current: Arc::new(RwLock::new(contents.config(files)?)),
            seen: Arc::new(Mutex::new(contents.digest())),
        })
    }

    /// Uses the files for new connections whenever they have changed; if they cannot be used, that is logged, and the previous ones stay in use.
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

    /// Reads the files; returns whether they had changed and are now in use. Contents that cannot be used cause an error once.
    fn reload(&self) -> Result<bool, String> {
        let contents = Contents::read(&self.files);
        let digest = match &contents {
            Ok(contents) => contents.digest(),
            Err(e) => Sha256::digest(e).into(),
        };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut *seen, digest) == digest {
            return Ok(false);
        }
        let config = contents?.config(&self.files)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(true)
    }

    fn current(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The server side of a TLS handshake.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        TlsAcceptor::from(self.current()).accept(stream).await
    }
}

/// When the certificate expires.
///
/// # Errors
/// A sentence for the operator.
pub fn certificate_expires_at(files: &TlsFiles) -> Result<Millis, String> {
    let unreadable = |e| format!("{}.cert: {}: {e}", files.table, files.cert.display());
    let pem = fs::read(&files.cert).map_err(|e| unreadable(e.to_string()))?;
    let first = CertificateDer::from_pem_slice(&pem).map_err(|e| unreadable(e.to_string()))?;
    certificate_end(&first).map_err(unreadable)
}

/// When the first of the authorities for client certificates expires. `None` if clients need no certificate.
///
/// # Errors
/// A sentence for the operator.
pub fn client_ca_expires_at(files: &TlsFiles) -> Result<Option<Millis>, String> {
    let Some(path) = &files.client_ca else {
        return Ok(None);
    };
    let unreadable = |e| format!("{CLIENT_CA}: {}: {e}", path.display());
    let pem = fs::read(path).map_err(|e| unreadable(e.to_string()))?;
    let mut first: Option<Millis> = None;
    for authority in CertificateDer::pem_slice_iter(&pem) {
        let authority = authority.map_err(|e| unreadable(e.to_string()))?;
        let end = certificate_end(&authority).map_err(unreadable)?;
        first = Some(first.map_or(end, |first| first.min(end)));
    }
    Ok(first)
}

/// The end of a certificate's validity.
fn certificate_end(der: &[u8]) -> Result<Millis, String> {
    let certificate = Certificate::from_der(der).map_err(|e| e.to_string())?;
    let end = certificate.tbs_certificate.validity.not_after;
    Ok(Millis::try_from(end.to_unix_duration().as_millis()).unwrap_or(Millis::MAX))
}

/// The contents of the files.
struct Contents {
    cert: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

impl Contents {
    fn read(files: &TlsFiles) -> Result<Self, String> {
        let read = |setting: &str, path: &PathBuf| {
            fs::read(path).map_err(|e| format!("{setting}: cannot read {}: {e}", path.display()))
        };
        let table = files.table;
        let client_ca = files.client_ca.as_ref();
        Ok(Self {
            cert: read(&format!("{table}.cert"), &files.cert)?,
            key: read(&format!("{table}.key"), &files.key)?,
            client_ca: client_ca.map(|path| read(CLIENT_CA, path)).transpose()?,
        })
    }

    fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        for part in [
            &self.cert,
            &self.key,
            self.client_ca.as_deref().unwrap_or_default(),
        ] as [&[u8]; 3]
        {
            hasher.update(Sha256::digest(part));
        }
        hasher.finalize().into()
    }

    /// The configuration: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1.
    fn config(&self, files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
        let (table, cert) = (files.table, files.cert.display());
        let certificates = read_certificates(&self.cert)
            .map_err(|e| format!("{table}.cert: {cert} is no PEM file of certificates: {e}"))?;
        if certificates.is_empty() {
            return Err(format!("{table}.cert: {cert} has no certificate in PEM"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|e| {
            let key = files.key.display();
            format!("{table}.key: {key} has no private key in PEM: {e}")
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = match (&self.client_ca, &files.client_ca) {
            (Some(pem), Some(path)) => client_verifier(pem, &provider)
                .map_err(|e| format!("{CLIENT_CA}: {}: {e}", path.display()))?,
            _ => WebPkiClientVerifier::no_client_auth(),
        };
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_client_cert_verifier(verifier)
                    .with_single_cert(certificates, key)
            })
            .map_err(|e| format!("{table}.cert and {table}.key cannot be used together: {e}"))?;
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        if self.client_ca.is_some() {
            // The client's certificate of a resumed session is not checked again, so the session could outlive the certificate.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

fn read_certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_slice_iter(pem);
    certificates
        .collect::<Result<_, _>>()
        .map_err(|e| e.to_string())
}

/// Accepts only clients with a certificate that one of these authorities has signed.
fn client_verifier(
    pem: &[u8],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let mut authorities = RootCertStore::empty();
    for authority in read_certificates(pem)? {
        authorities.add(authority).map_err(|e| e.to_string())?;
    }
    if authorities.is_empty() {
        return Err("it has no certificate in PEM".to_owned());
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(provider));
    let verifier = verifier.build().map_err(|e| e.to_string())?;
    Ok(verifier)
}
