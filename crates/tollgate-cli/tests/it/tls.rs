//! TLS on the gateway's own listener.

use std::sync::Arc;

use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion, version};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::harness::*;

on_sqlite!(
    http_1_and_2_are_served_over_tls,
    a_changed_certificate_is_used_and_an_unusable_one_is_not,
    unusable_certificates_are_reported_at_the_start,
);

const CONFIG: &str = "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n";
const NAME: &str = "gateway.example";
const BOTH: &[&SupportedProtocolVersion] = &[&version::TLS12, &version::TLS13];

/// Writes a new certificate and its key; returns the certificate.
fn write_pair(gateway: &TestGateway) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([NAME.to_owned()]).unwrap();
    std::fs::write(gateway.dir().join("key.pem"), signing_key.serialize_pem()).unwrap();
    std::fs::write(gateway.dir().join("cert.pem"), cert.pem()).unwrap();
    cert.der().clone()
}

/// Connects as a client that trusts only `cert`. `None` if the server has another certificate.
async fn connect(
    gateway: &TestGateway,
    cert: &CertificateDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
    protocols: &[&str],
) -> Option<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_protocol_versions(versions).unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    let stream = TcpStream::connect(gateway.address()).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.ok()
}

/// Starts a gateway with a certificate.
async fn start(backend: Backend) -> (TestGateway, CertificateDer<'static>) {
    let mut gateway = Setup::new(backend).config(CONFIG).prepare().await;
    let cert = write_pair(&gateway);
    gateway.start_server().await;
    (gateway, cert)
}

async fn http_1_and_2_are_served_over_tls(backend: Backend) {
    let (mut gateway, cert) = start(backend).await;
    for (versions, protocols, version, alpn) in [
        (
            BOTH,
            &["h2", "http/1.1"][..],
            ProtocolVersion::TLSv1_3,
            Some("h2"),
        ),
        (
            &BOTH[..1],
            &["http/1.1"],
            ProtocolVersion::TLSv1_2,
            Some("http/1.1"),
        ),
        (BOTH, &[], ProtocolVersion::TLSv1_3, None),
    ] {
        let mut stream = connect(&gateway, &cert, versions, protocols).await.unwrap();
        let session = stream.get_ref().1;
        assert_eq!(session.protocol_version(), Some(version));
        assert_eq!(session.alpn_protocol(), alpn.map(str::as_bytes));
        if alpn == Some("h2") {
            let io = hyper_util::rt::TokioIo::new(stream);
            let executor = hyper_util::rt::TokioExecutor::new();
            let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io)
                .await
                .unwrap();
            tokio::spawn(connection);
            let request = http::Request::get("https://gateway.example/healthz")
                .body(http_body_util::Empty::<bytes::Bytes>::new());
            let response = sender.send_request(request.unwrap()).await.unwrap();
            assert_eq!(response.status(), 200);
            continue;
        }
        let request = "GET /healthz HTTP/1.1\r\nhost: gateway.example\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
    // The TLS listener does not serve plain HTTP, and the gateway's own health check uses TLS.
    let mut plain = gateway.raw().await;
    plain
        .write(b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n")
        .await;
    assert_eq!(plain.status().await, None);
    let address = gateway.address();
    gateway.set_env("TOLLGATE_LISTEN", &address);
    let health = gateway.cli(&["health", "--ready"]).await;
    let is_https = health.stdout.starts_with(&format!("https://{address}"));
    assert!(health.code == 0 && is_https, "{health:?}");
    gateway.terminate().await;
    gateway.close().await;
}

async fn a_changed_certificate_is_used_and_an_unusable_one_is_not(backend: Backend) {
    let (mut gateway, first) = start(backend).await;
    let second = write_pair(&gateway);
    until_true("the new certificate", async || {
        connect(&gateway, &second, BOTH, &[]).await.is_some()
    })
    .await;
    assert!(connect(&gateway, &first, BOTH, &[]).await.is_none());
    // The key belongs to another certificate, as in the middle of a renewal.
    let other = KeyPair::generate().unwrap().serialize_pem();
    std::fs::write(gateway.dir().join("key.pem"), other).unwrap();
    until_true("the error in the log", async || {
        gateway
            .log()
            .contains("the TLS certificate was not replaced")
    })
    .await;
    assert!(connect(&gateway, &second, BOTH, &[]).await.is_some());
    let third = write_pair(&gateway);
    until_true("the third certificate", async || {
        connect(&gateway, &third, BOTH, &[]).await.is_some()
    })
    .await;
    gateway.terminate().await;
    gateway.close().await;
}

async fn unusable_certificates_are_reported_at_the_start(backend: Backend) {
    let gateway = Setup::new(backend).config(CONFIG).prepare().await;
    write_pair(&gateway);
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| gateway.dir().join(name));
    let [valid_cert, valid_key] = [&cert, &key].map(|path| std::fs::read(path).unwrap());
    let other = KeyPair::generate().unwrap().serialize_pem().into_bytes();
    for (cert_text, key_text, expected) in [
        (&valid_cert, &other, "tls.cert and tls.key"),
        (&valid_key, &valid_key, "tls.cert"),
        (&valid_cert, &valid_cert, "tls.key"),
    ] {
        std::fs::write(&cert, cert_text).unwrap();
        std::fs::write(&key, key_text).unwrap();
        run_command(&mut gateway.serve_command())
            .await
            .check_failure(expected);
    }
    std::fs::remove_file(&cert).unwrap();
    run_command(&mut gateway.serve_command())
        .await
        .check_failure("cert.pem");
    gateway.set_config("[tls]\ncert = \"cert.pem\"\n");
    run_command(&mut gateway.serve_command())
        .await
        .check_failure("tls.key");
    gateway.set_config("");
    gateway.close().await;
}
