//! `admin.listen`: a separate listener for operators, optionally with client certificates.

use std::net::TcpListener as StdListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use http::{Method, Request};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd, generate_simple_self_signed,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::harness::fake_oidc::FakeOidc;
use crate::harness::*;

on_sqlite!(
    operators_have_a_separate_listener,
    the_first_admin_signs_in_at_the_listener_of_operators,
    sign_in_by_a_provider_redirects_to_the_listener_of_the_pages,
    connections_without_a_certificate_of_the_client_ca_are_rejected,
    a_changed_client_ca_applies_to_new_connections,
    the_admin_socket_of_a_service_manager_is_found_by_its_name,
    admin_connections_are_counted_separately_and_drained,
);

const OWNER: &str = "the-owner-of-this-gateway";
const LISTEN: &str = "[admin]\nlisten = \"127.0.0.1:0\"\n";
const NAME: &str = "gateway.example";

/// `HOST:PORT` of the listener, from the log.
async fn admin_address(gateway: &TestGateway) -> String {
    let find = async || {
        let log = gateway.log();
        let mut lines = log.lines().rev();
        let line = lines.find(|line| line.contains("the admin API and the console are served"))?;
        let line: Value = serde_json::from_str(line).unwrap();
        Some(line["address"].as_str().unwrap().to_owned())
    };
    until("the listener's address in the log", find).await
}

async fn operators_have_a_separate_listener(backend: Backend) {
    let gateway = Setup::new(backend)
        .config(LISTEN)
        .admin_key(OWNER)
        .start()
        .await;
    let admin = admin_address(&gateway).await;
    let main = gateway.address();
    let client = gateway.unlimited_client().await;
    let owner = format!("Bearer {OWNER}");
    let key = format!("Bearer {}", client.secret.as_deref().unwrap());
    let html = ("accept", "text/html");
    for (path, headers, on_main, on_admin) in [
        (
            "/admin/v1/me",
            vec![("authorization", owner.as_str())],
            404,
            200,
        ),
        ("/admin/v1/me", vec![], 404, 401),
        ("/admin/openapi.json", vec![], 404, 200),
        ("/", vec![html], 404, 303),
        ("/console", vec![html], 404, 303),
        ("/console/", vec![html], 404, 200),
        ("/console/tasks", vec![html], 404, 200),
        ("/portal/", vec![html], 200, 404),
        ("/v1/me", vec![("authorization", key.as_str())], 200, 404),
        (
            "/v1/models",
            vec![("authorization", key.as_str())],
            200,
            200,
        ),
        ("/docs", vec![html], 200, 200),
        ("/openapi.json", vec![], 200, 200),
        ("/healthz", vec![], 200, 200),
        ("/readyz", vec![], 200, 200),
        // On a loopback address, the gateway's own listener serves metrics without a key.
        ("/metrics", vec![], 200, 401),
        (
            "/metrics",
            vec![("authorization", owner.as_str())],
            200,
            200,
        ),
    ] {
        for (address, status) in [(&main, on_main), (&admin, on_admin)] {
            let url = format!("http://{address}{path}");
            let reply = client.fetch_with(Method::GET, &url, &headers).await;
            assert_eq!(reply.status, status, "{url} {headers:?}");
        }
    }
    // Both listeners serve the files of the pages. The console's page names the clients' address; the portal's does not name the operators'.
    let page = async |url: String| client.fetch(&url).await.expect(200).text();
    let console = page(format!("http://{admin}/console/")).await;
    let clients = format!("name=\"tollgate-clients\" content=\"http://{main}\"");
    assert!(console.contains(&clients), "{console}");
    let portal = page(format!("http://{main}/portal/")).await;
    assert!(portal.contains("tollgate-console") && !portal.contains(&admin));
    let assets = portal
        .split('"')
        .filter(|part| part.starts_with("/console/assets/"));
    for asset in assets {
        for address in [&main, &admin] {
            let reply = client.fetch(&format!("http://{address}{asset}")).await;
            reply.expect(200);
        }
    }
    // Commands read the address from the configuration.
    let link = gateway
        .cli_json(&["admin", "create", "ann", "--role", "viewer"])
        .await;
    let link = link["link"].as_str().unwrap();
    assert!(
        link.starts_with("http://127.0.0.1:0/console/setup"),
        "{link}"
    );
    gateway.close().await;
}

async fn the_first_admin_signs_in_at_the_listener_of_operators(backend: Backend) {
    // A public address with TLS, behind a proxy, must not make the cookie of the plain listener `Secure`.
    let setup = Setup::new(backend).config("public_url = \"https://ai.example.com\"\n");
    let gateway = setup.config(LISTEN).admin_key(OWNER).start().await;
    let admin = admin_address(&gateway).await;
    let log = gateway.log();
    let mut lines = log.lines();
    let link = lines.find_map(|line| line.strip_prefix("first sign-in: "));
    let prefix = format!("http://{admin}/console/setup#code=");
    let code = link
        .expect("a link")
        .strip_prefix(&prefix)
        .expect("its code");
    let client = gateway.anonymous();
    let body = json!({ "code": code, "name": "ann", "password": "a long password" }).to_string();
    let sign_in = async |address: &str, origin: &str| {
        let request = Request::post(format!("http://{address}/admin/v1/session"))
            .header("content-type", "application/json")
            .header("x-tollgate-console", "1")
            .header("origin", origin);
        client
            .send(request.body(body.clone().into()).unwrap())
            .await
    };
    let (main, own) = (gateway.address(), format!("http://{admin}"));
    sign_in(&main, &own).await.expect(404);
    // Requests from pages of the portal must not act as an admin.
    for origin in [
        format!("http://{main}"),
        "https://ai.example.com".to_owned(),
    ] {
        sign_in(&admin, &origin).await.expect(403);
    }
    let reply = sign_in(&admin, &own).await.expect(201);
    let cookie = reply.header("set-cookie");
    assert!(
        cookie.starts_with("tollgate_session=") && !cookie.contains("Secure"),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    let me = async |address: &str| {
        let url = format!("http://{address}/admin/v1/me");
        client
            .fetch_with(Method::GET, &url, &[("cookie", cookie)])
            .await
    };
    assert_eq!(me(&admin).await.expect(200).json()["name"], "ann");
    me(&main).await.expect(404);
    gateway.close().await;
}

async fn sign_in_by_a_provider_redirects_to_the_listener_of_the_pages(backend: Backend) {
    let provider = FakeOidc::start().await;
    let config = provider.config("roles = { \"*\" = \"user\" }\n");
    let setup = Setup::new(backend).config(LISTEN).config(&config);
    let gateway = setup.admin_key(OWNER).start().await;
    let (main, admin) = (gateway.address(), admin_address(&gateway).await);
    let client = gateway.anonymous();
    for (address, query, status) in [
        (&main, "", 303),
        (&main, "?to=portal", 303),
        (&main, "?to=console", 400),
        (&admin, "", 303),
        (&admin, "?to=console", 303),
        (&admin, "?to=portal", 400),
    ] {
        let url = format!("http://{address}/oidc/start{query}");
        let reply = client.fetch(&url).await.expect(status);
        if status == 303 {
            let encoded = address.replace(':', "%3A");
            let back = format!("redirect_uri=http%3A%2F%2F{encoded}%2Foidc%2Fcallback");
            assert!(reply.header("location").contains(&back), "{url}");
        }
    }
    gateway.close().await;
}

/// A certificate authority that signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate of a client and its key.
type Identity = (CertificateDer<'static>, PrivateKeyDer<'static>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Signs a certificate that expires at the end of this year.
    fn sign(&self, year: i32) -> Identity {
        let mut params = CertificateParams::new(["ann".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
        (certificate.der().clone(), key)
    }

    fn pem(&self) -> String {
        self.0.pem()
    }
}

/// Sends a request over TLS as a client with a certificate or without one. `None` if the gateway rejects the connection.
async fn get(
    address: &str,
    server: &CertificateDer<'static>,
    identity: Option<&Identity>,
    path: &str,
) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots.add(server.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => config
            .with_client_auth_cert(vec![certificate.clone()], key.clone_key())
            .unwrap(),
    };
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from(NAME).unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.ok()?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: {NAME}\r\nauthorization: Bearer {OWNER}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.ok()?;
    // In TLS 1.3 a client only notices at this point that its certificate was rejected.
    let mut response = String::new();
    stream.read_to_string(&mut response).await.ok()?;
    (!response.is_empty()).then_some(response)
}

fn is_ok(response: Option<String>) -> bool {
    response.is_some_and(|response| response.starts_with("HTTP/1.1 200"))
}

/// Starts a gateway whose listeners have the same certificate. Operators need a certificate of `authority`.
async fn start(backend: Backend, authority: &Authority) -> (TestGateway, CertificateDer<'static>) {
    let config = format!(
        "[tls]\ncert = \"cert.pem\"\nkey = \"key.pem\"\n{LISTEN}tls.client_ca = \"ca.pem\"\n"
    );
    let setup = Setup::new(backend).config(&config).admin_key(OWNER);
    let mut gateway = setup.prepare().await;
    let own = generate_simple_self_signed([NAME.to_owned()]).unwrap();
    for (name, text) in [
        ("cert.pem", own.cert.pem()),
        ("key.pem", own.signing_key.serialize_pem()),
        ("ca.pem", authority.pem()),
    ] {
        std::fs::write(gateway.dir().join(name), text).unwrap();
    }
    gateway.start_server().await;
    (gateway, own.cert.der().clone())
}

async fn connections_without_a_certificate_of_the_client_ca_are_rejected(backend: Backend) {
    let (own, other) = (Authority::new(), Authority::new());
    let (mut gateway, server) = start(backend, &own).await;
    let (main, admin) = (gateway.address(), admin_address(&gateway).await);
    let (valid, expired, foreign) = (own.sign(2999), own.sign(2001), other.sign(2999));
    for (identity, path, expected) in [
        (Some(&valid), "/admin/v1/me", true),
        (Some(&valid), "/healthz", true),
        (None, "/admin/v1/me", false),
        (None, "/healthz", false),
        (Some(&expired), "/admin/v1/me", false),
        (Some(&foreign), "/admin/v1/me", false),
    ] {
        let response = get(&admin, &server, identity, path).await;
        let described = format!("{path} {response:?}");
        assert_eq!(
            response.is_some(),
            expected,
            "rejected in the handshake: {described}"
        );
        assert_eq!(is_ok(response), expected, "{described}");
    }
    // Clients of the gateway need no certificate, and their listener serves nothing for operators.
    assert!(is_ok(get(&main, &server, None, "/healthz").await));
    let reply = get(&main, &server, None, "/admin/v1/me").await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 404"), "{reply}");
    let doctor = gateway.cli(&["doctor", "--offline"]).await;
    let lines = doctor
        .stdout
        .lines()
        .filter(|line| line.contains("certificates: "));
    let named = ["cert.pem", "cert.pem", "ca.pem"];
    for (line, name) in lines.clone().zip(named) {
        assert!(line.contains(name), "{line}");
    }
    assert_eq!(lines.count(), named.len(), "{doctor:?}");
    gateway.terminate().await;
    std::fs::write(gateway.dir().join("ca.pem"), "nothing").unwrap();
    let output = run_command(&mut gateway.serve_command()).await;
    output.check_failure("admin.tls.client_ca");
    gateway.close().await;
}

async fn a_changed_client_ca_applies_to_new_connections(backend: Backend) {
    let (first, second) = (Authority::new(), Authority::new());
    let (mut gateway, server) = start(backend, &first).await;
    let admin = admin_address(&gateway).await;
    let (old, new) = (first.sign(2999), second.sign(2999));
    let is_served =
        async |identity: &Identity| is_ok(get(&admin, &server, Some(identity), "/healthz").await);
    let write = |text: String| std::fs::write(gateway.dir().join("ca.pem"), text).unwrap();
    assert!(is_served(&old).await && !is_served(&new).await);
    // The file has both authorities while clients get new certificates.
    write(first.pem() + &second.pem());
    until_true("the second authority", async || is_served(&new).await).await;
    assert!(is_served(&old).await);
    write(second.pem());
    until_true("the end of the first", async || !is_served(&old).await).await;
    assert!(is_served(&new).await);
    // If the new file cannot be used, the gateway keeps the authority that it has.
    write("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned());
    let message = "the TLS certificate was not replaced";
    until_true(message, async || gateway.log().contains(message)).await;
    assert!(is_served(&new).await && !is_served(&old).await);
    gateway.terminate().await;
    gateway.close().await;
}

async fn the_admin_socket_of_a_service_manager_is_found_by_its_name(backend: Backend) {
    const ACTIVATE: &str =
        "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_FDNAMES=admin LISTEN_PID=$$ exec \"$@\"";
    let socket = StdListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let setup = Setup::new(backend).config("[admin]\nlisten = \"127.0.0.1:1\"\n");
    let mut gateway = setup.admin_key(OWNER).prepare().await;
    let mut command = gateway.serve_command_under("sh", &["-c", ACTIVATE, "sh"]);
    command.stdin(OwnedFd::from(socket));
    gateway.start_command(command).await;
    assert_eq!(admin_address(&gateway).await, address);
    assert_ne!(gateway.address(), address);
    let client = gateway.anonymous();
    client
        .fetch(&format!("http://{address}/console/"))
        .await
        .expect(200);
    client.get("/console/").await.expect(404);
    gateway.close().await;
}

async fn admin_connections_are_counted_separately_and_drained(backend: Backend) {
    const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n";
    let setup = Setup::new(backend).env("TOLLGATE_LIMITS__MAX_CONNECTIONS", "1");
    let mut gateway = setup.config(LISTEN).admin_key(OWNER).start().await;
    let admin = admin_address(&gateway).await;
    // Clients use up their only connection and the reserve beside it.
    let mut of_clients = Vec::new();
    for _ in 0..40 {
        of_clients.push(gateway.raw().await);
    }
    let mut of_operators = Vec::new();
    for _ in 0..10 {
        let mut connection = RawConnection::connect(&admin).await;
        connection.write(HEALTH).await;
        assert_eq!(connection.status().await, Some(200));
        of_operators.push(connection);
    }
    drop(of_clients);
    gateway.signal("TERM").await;
    let is_draining = async || gateway.log().contains("draining");
    until_true("the drain to begin", is_draining).await;
    for connection in &mut of_operators {
        connection.write(HEALTH).await;
    }
    for connection in &mut of_operators {
        assert_eq!(connection.status().await, Some(200));
    }
    assert!(gateway.wait_for_exit().await.success());
    gateway.start_server().await;
    gateway.close().await;
}
