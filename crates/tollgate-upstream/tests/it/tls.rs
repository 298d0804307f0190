//! An HTTPS server with a certificate made for the test.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::egress::answer;

/// What proves on this side of a connection to be `name`, and who vouches for it.
pub(crate) fn acceptor(name: &str) -> (TlsAcceptor, RootCertStore) {
    speaking(name, &[])
}

/// The same of a server that offers to speak `protocols`.
pub(crate) fn speaking(name: &str, protocols: &[&str]) -> (TlsAcceptor, RootCertStore) {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
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

/// Starts a server that proves to be `name`; where it listens, and who vouches for it.
pub(crate) async fn start(name: &str) -> (SocketAddr, RootCertStore) {
    let (acceptor, roots) = acceptor(name);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    answer(stream, Arc::default(), "tls").await;
                }
            });
        }
    });
    (address, roots)
}
