//! An HTTPS server with a certificate that the test generates.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::egress::serve;

/// A TLS acceptor for `name` with these ALPN protocols, and the root certificate that signs its certificate.
pub(crate) fn acceptor(name: &str, protocols: &[&str]) -> (TlsAcceptor, RootCertStore) {
    let generated = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = generated.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(
        generated.signing_key.serialize_der(),
    ));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    (TlsAcceptor::from(Arc::new(config)), roots)
}

/// Starts a server for `name` that responds like [`serve`]; returns its address, and the root certificate that signs its certificate.
pub(crate) async fn start(name: &str) -> (SocketAddr, RootCertStore) {
    let (acceptor, roots) = acceptor(name, &[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, Arc::default(), "tls").await;
                }
            });
        }
    });
    (address, roots)
}
