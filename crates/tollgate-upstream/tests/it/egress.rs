//! Tests the HTTP client against servers on this machine that send valid and invalid responses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate_upstream::egress::{
    Client, ClientOptions, EgressError, FetchLimits, Fetched, Resolve, Timeouts, body,
};

use crate::tls;

/// A server that responds to each path as the tests need it, and records the heads of the requests that it received.
pub(crate) struct Server {
    address: SocketAddr,
    received: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), "here").await
    }

    async fn at(address: SocketAddr, name: &'static str) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let heads = received.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, heads.clone(), name));
            }
        });
        Self { address, received }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

/// Reads one request and responds by its path.
pub(crate) async fn serve<S>(mut stream: S, received: Arc<Mutex<Vec<String>>>, name: &'static str)
where
    S: tokio::io::AsyncRead + AsyncWrite + Unpin,
{
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    received.lock().unwrap().push(head.clone());
    let path = head.split(' ').nth(1).unwrap().to_owned();
    // An error here means that the client closed the connection, which many tests intend.
    let _ = reply(&mut stream, &path, name).await;
}

async fn reply(stream: &mut (impl AsyncWrite + Unpin), path: &str, name: &str) -> io::Result<()> {
    let ok = |headers: &str, body: &str| format!("HTTP/1.1 200 OK\r\n{headers}\r\n{body}");
    let text = match path {
        "/ok" => ok("content-type: image/png\r\ncontent-length: 5\r\n", "hello"),
        "/name" => ok("", name),
        "/empty" => "HTTP/1.1 204 No Content\r\n\r\n".into(),
        "/missing" => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into(),
        "/gzip" => ok("content-encoding: gzip\r\ncontent-length: 1\r\n", "x"),
        "/long" => ok("content-length: 1000000\r\n", ""),
        "/cut" => ok("content-length: 100\r\n", "only this"),
        "/garbage" => "SSH-2.0-OpenSSH_9.2\r\n\r\n".into(),
        "/nowhere" => "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".into(),
        "/loop" => "HTTP/1.1 307 Again\r\nlocation: /loop\r\ncontent-length: 0\r\n\r\n".into(),
        "/hang" => return std::future::pending().await,
        "/stall" => {
            let text = ok("content-length: 5\r\n", "x");
            stream.write_all(text.as_bytes()).await?;
            return std::future::pending().await;
        }
        "/chunks" => {
            stream
                .write_all(ok("transfer-encoding: chunked\r\n", "").as_bytes())
                .await?;
            loop {
                stream.write_all(b"400\r\n").await?;
                stream.write_all(&[b'x'; 1024]).await?;
                stream.write_all(b"\r\n").await?;
            }
        }
        "/drip" => {
            stream.write_all(ok("", "").as_bytes()).await?;
            loop {
                stream.write_all(b"x").await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        "/headers" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n").await?;
            loop {
                stream.write_all(b"x-more: and more\r\n").await?;
            }
        }
        other => match other.strip_prefix("/to/") {
            Some(target) => {
                format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n")
            }
            None => ok("", other),
        },
    };
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

fn client(allowed: &[&str]) -> Client {
    Client::new(options(allowed))
}

fn options(allowed: &[&str]) -> ClientOptions {
    ClientOptions {
        allow_private: allowed.iter().map(|net| net.parse().unwrap()).collect(),
        ..ClientOptions::default()
    }
}

const LIMITS: FetchLimits = FetchLimits {
    max_bytes: 10_000,
    total_time: Duration::from_secs(20),
    max_redirects: 3,
};

async fn fetch(client: &Client, url: &str) -> Result<(Fetched, Vec<u8>), EgressError> {
    let mut sink = Vec::new();
    let fetched = client.fetch_guarded(url, &LIMITS, &mut sink).await?;
    assert_eq!(fetched.bytes, sink.len() as u64);
    Ok((fetched, sink))
}

#[tokio::test]
async fn a_fetch_returns_the_bytes_and_sends_only_these_headers() {
    let server = Server::start().await;
    let client = client(&["127.0.0.0/8"]);
    let (fetched, bytes) = fetch(&client, &server.url("/ok")).await.unwrap();
    assert_eq!(bytes, b"hello");
    assert_eq!(fetched.content_type.as_deref(), Some("image/png"));
    assert_eq!(fetched.final_url, server.url("/ok"));
    let (_, bytes) = fetch(&client, &server.url("/a%20b?q=1#part"))
        .await
        .unwrap();
    assert_eq!(bytes, b"/a%20b?q=1");
    let (fetched, bytes) = fetch(&client, &server.url("/empty")).await.unwrap();
    assert_eq!((fetched.bytes, bytes.len()), (0, 0));
    let mut head: Vec<String> = server.requests()[0]
        .lines()
        .map(str::to_lowercase)
        .collect();
    head.retain(|line| !line.is_empty());
    let expected = [
        "get /ok http/1.1".to_owned(),
        format!("host: {}", server.address),
        concat!("user-agent: tollgate/", env!("CARGO_PKG_VERSION")).to_owned(),
        "accept: */*".to_owned(),
        "accept-encoding: identity".to_owned(),
        "connection: close".to_owned(),
    ];
    assert_eq!(head, expected);
}

/// Private, reserved and local addresses in the notations that URL parsers accept.
const PRIVATE_HOSTS: &str = "\
    127.0.0.1 127.0.0.1. 127.1 127.0.1 2130706433 017700000001 0x7f000001 0x7f.1 0177.0.0.1 \
    0x7F.0x0.0x0.0x1 127.0.0.01 %31%32%37.0.0.1 １２７.０.０.１ 127。0。0。1 ①②⑦.0.0.1 localhost \
    LOCALHOST 0 0.0.0.0 0x0 [::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1] \
    [::ffff:7f00:1] [64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] \
    169.254.169.254 0xa9fea9fe 2852039166 [fd00:ec2::254] [fe80::1] 10.0.0.1 192.168.0.1 \
    172.16.0.1 100.64.0.1 198.18.0.1 224.0.0.1 255.255.255.255";

#[tokio::test]
async fn private_addresses_are_rejected_in_every_notation() {
    let server = Server::start().await;
    let port = server.address.port();
    let client = client(&[]);
    for host in PRIVATE_HOSTS.split_whitespace() {
        let url = format!("http://{host}:{port}/ok");
        let error = fetch(&client, &url).await.expect_err(&url);
        assert!(matches!(error, EgressError::NotPublic), "{url}: {error}");
        assert_eq!(
            error.to_string(),
            "the URL leads to an address that is not public"
        );
        assert!(!error.may_have_been_sent());
    }
    assert!(server.requests().is_empty());
}

const INVALID_URLS: &str = "\
    127.0.0.1/ok //127.0.0.1/ok ftp://127.0.0.1/ok file:///etc/passwd gopher://127.0.0.1/ \
    data:image/png;base64,AAAA javascript:alert(1) http:// http:/// http://user@127.0.0.1/ \
    http://user:word@127.0.0.1/ http://:word@127.0.0.1/ http://127.0.0.1:99999/ http://[::1 \
    http://[fe80::1%25eth0]/ http://256.0.0.1/ http://1.2.3.4.5/";

#[tokio::test]
async fn invalid_urls_are_rejected_before_any_lookup() {
    let client = client(&["0.0.0.0/0", "::/0"]);
    let long = format!("http://127.0.0.1/{}", "x".repeat(9000));
    let others = ["", "http://exa mple.com/", &long];
    for url in INVALID_URLS.split_whitespace().chain(others) {
        let error = fetch(&client, url).await.expect_err(url);
        assert!(
            matches!(error, EgressError::InvalidUrl(_)),
            "{url}: {error}"
        );
    }
}

#[tokio::test]
async fn redirects_are_followed_and_checked() {
    let server = Server::start().await;
    let client = client(&["127.0.0.1/32"]);
    let (fetched, bytes) = fetch(&client, &server.url("/to//to//ok")).await.unwrap();
    assert_eq!(bytes, b"hello");
    assert_eq!(fetched.final_url, server.url("/ok"));

    let third = fetch(&client, &server.url("/to//to//to//ok")).await;
    assert!(third.is_ok(), "three are allowed");
    let error = fetch(&client, &server.url("/to//to//to//to//ok"))
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::TooManyRedirects(3)), "{error}");
    let before = server.requests().len();
    let error = fetch(&client, &server.url("/loop")).await.unwrap_err();
    assert!(matches!(error, EgressError::TooManyRedirects(3)), "{error}");
    assert_eq!(server.requests().len(), before + 4);

    for (target, expected) in [
        ("http://127.0.0.2/", "not public"),
        ("http://[::1]:1/", "not public"),
        ("//169.254.169.254/latest/meta-data/", "not public"),
        ("http://0x7f.2/", "not public"),
        ("http://user:word@127.0.0.1/", "not allowed"),
        ("ftp://127.0.0.1/", "not allowed"),
        ("file:///etc/passwd", "not allowed"),
        ("http://[", "nowhere"),
    ] {
        let url = server.url(&format!("/to/{target}"));
        let error = fetch(&client, &url).await.expect_err(target);
        assert!(error.to_string().contains(expected), "{target}: {error}");
    }
    let error = fetch(&client, &server.url("/nowhere")).await.unwrap_err();
    assert!(matches!(error, EgressError::InvalidRedirect(_)), "{error}");
}

async fn fetch_own(client: &Client, url: &str) -> Result<(Fetched, Vec<u8>), EgressError> {
    let mut sink = Vec::new();
    let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_static("Bearer key"))]);
    let fetched = client.fetch_own(url, &headers, &LIMITS, &mut sink).await?;
    assert_eq!(fetched.bytes, sink.len() as u64);
    Ok((fetched, sink))
}

#[tokio::test]
async fn the_key_goes_to_the_providers_own_origin_only() {
    let (own, other) = (Server::start().await, Server::start().await);
    let has_key = |head: &String| {
        head.to_lowercase()
            .contains("\r\nauthorization: bearer key\r\n")
    };

    let redirected = own.url("/to//ok");
    let (fetched, bytes) = fetch_own(&client(&[]), &redirected).await.unwrap();
    assert_eq!(bytes, b"hello");
    assert_eq!(fetched.final_url, own.url("/ok"));
    assert_eq!(
        own.requests().iter().filter(|head| has_key(head)).count(),
        2
    );

    let elsewhere = own.url(&format!("/to/{}", other.url("/ok")));
    let error = fetch_own(&client(&[]), &elsewhere).await.unwrap_err();
    assert!(matches!(error, EgressError::NotPublic), "{error}");
    assert!(other.requests().is_empty());
    let (fetched, bytes) = fetch_own(&client(&["127.0.0.0/8"]), &elsewhere)
        .await
        .unwrap();
    assert_eq!(bytes, b"hello");
    assert_eq!(fetched.final_url, other.url("/ok"));
    assert_eq!(other.requests().len(), 1);
    assert!(!has_key(&other.requests()[0]));
}

#[tokio::test]
async fn a_fetch_from_the_provider_has_limits() {
    let server = Server::start().await;
    for (path, expected) in [
        ("/missing", "the URL's host responded with HTTP status 404"),
        ("/long", "the body is larger than 10000 bytes"),
        ("/chunks", "the body is larger than 10000 bytes"),
        ("/loop", "the URL redirects more than 3 times"),
        ("/nowhere", "the URL redirects to nowhere"),
    ] {
        let error = fetch_own(&client(&[]), &server.url(path))
            .await
            .expect_err(path);
        assert!(error.to_string().contains(expected), "{path}: {error}");
    }
    let error = fetch_own(&client(&[]), "not a URL").await.unwrap_err();
    assert!(matches!(error, EgressError::InvalidUrl(_)), "{error}");
}

#[tokio::test]
async fn responses_without_a_complete_file_are_errors() {
    let server = Server::start().await;
    let client = client(&["127.0.0.0/8"]);
    let broken_off = "the connection broke off before the response was complete";
    let compressed = "the URL's host sent a compressed body, which was not requested";
    for (path, expected) in [
        ("/missing", "the URL's host responded with HTTP status 404"),
        ("/gzip", compressed),
        ("/long", "the body is larger than 10000 bytes"),
        ("/chunks", "the body is larger than 10000 bytes"),
        ("/cut", broken_off),
        ("/garbage", broken_off),
        ("/headers", broken_off),
    ] {
        let error = fetch(&client, &server.url(path)).await.expect_err(path);
        assert_eq!(error.to_string(), expected, "{path}");
    }
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = fetch(&client, &format!("http://{closed}/"))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no connection could be made to the URL's host"
    );
}

#[tokio::test]
async fn a_fetch_has_a_total_timeout() {
    let server = Server::start().await;
    let client = client(&["127.0.0.0/8"]);
    let limits = FetchLimits {
        total_time: Duration::from_millis(300),
        ..LIMITS
    };
    for path in ["/drip", "/hang"] {
        let start = Instant::now();
        let error = client
            .fetch_guarded(&server.url(path), &limits, &mut Vec::new())
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "no complete response came within 0.3 s",
            "{path}"
        );
        assert!(start.elapsed() < Duration::from_secs(10), "{path}");
    }
}

#[tokio::test]
async fn a_fetch_from_a_silent_host_times_out() {
    let server = Server::start().await;
    let client = client(&["127.0.0.0/8"]);
    let limits = FetchLimits {
        total_time: Duration::from_secs(1_800),
        ..LIMITS
    };
    for (path, received) in [("/hang", 1), ("/stall", 2)] {
        let mut sink = Vec::new();
        let url = server.url(path);
        let mut fetch = std::pin::pin!(client.fetch_guarded(&url, &limits, &mut sink));
        while server.requests().len() < received {
            let step = Duration::from_millis(1);
            assert!(tokio::time::timeout(step, &mut fetch).await.is_err());
        }
        tokio::time::pause();
        let error = fetch.await.unwrap_err();
        tokio::time::resume();
        let silence = Duration::from_secs(20);
        assert!(
            matches!(error, EgressError::TimedOut(time) if time == silence),
            "{path}: {error}"
        );
    }
}

/// Resolves each name to the next of its lists, and after the last one always to that.
struct ChangingResolver {
    results: Vec<Vec<IpAddr>>,
    lookups: AtomicUsize,
}

impl ChangingResolver {
    fn new(results: &[&[&str]]) -> Arc<Self> {
        let parse = |list: &&[&str]| list.iter().map(|ip| ip.parse().unwrap()).collect();
        Arc::new(Self {
            results: results.iter().map(parse).collect(),
            lookups: AtomicUsize::new(0),
        })
    }
}

#[async_trait]
impl Resolve for ChangingResolver {
    async fn resolve(&self, _host: &str) -> io::Result<Vec<IpAddr>> {
        let lookup = self.lookups.fetch_add(1, Ordering::SeqCst);
        Ok(self.results[lookup.min(self.results.len() - 1)].clone())
    }
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_connected_to() {
    // 127.0.0.1 represents a public address, 127.0.0.2 a private one on the same port.
    let public = Server::at("127.0.0.1:0".parse().unwrap(), "public").await;
    let port = public.address.port();
    let private = Server::at(SocketAddr::from(([127, 0, 0, 2], port)), "private").await;
    let resolver = ChangingResolver::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = Client::new(ClientOptions {
        resolver: resolver.clone(),
        ..options(&["127.0.0.1/32"])
    });
    let url = format!("http://rebinding.example:{port}/name");
    let (_, bytes) = fetch(&client, &url).await.unwrap();
    assert_eq!(bytes, b"public");
    assert_eq!(resolver.lookups.load(Ordering::SeqCst), 1, "resolved once");
    assert!(public.requests()[0].contains(&format!("host: rebinding.example:{port}")));
    // The second fetch resolves the name again and is rejected.
    let error = fetch(&client, &url).await.unwrap_err();
    assert!(matches!(error, EgressError::NotPublic), "{error}");
    assert!(private.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_to_a_rebound_name_is_rejected() {
    let server = Server::start().await;
    let port = server.address.port();
    let client = Client::new(ClientOptions {
        resolver: ChangingResolver::new(&[&["127.0.0.1"], &["127.0.0.2"]]),
        ..options(&["127.0.0.1/32"])
    });
    let url = format!("http://a.example:{port}/to/http://a.example:{port}/ok");
    let error = fetch(&client, &url).await.unwrap_err();
    assert!(matches!(error, EgressError::NotPublic), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_host_with_any_private_address_is_rejected() {
    for addresses in [&["8.8.8.8", "10.0.0.1"], &["::1", "8.8.8.8"]] {
        let client = Client::new(ClientOptions {
            resolver: ChangingResolver::new(&[addresses]),
            ..ClientOptions::default()
        });
        let error = fetch(&client, "http://mixed.example/").await.unwrap_err();
        assert!(matches!(error, EgressError::NotPublic), "{error}");
    }
    let client = Client::new(ClientOptions {
        resolver: ChangingResolver::new(&[&[]]),
        ..ClientOptions::default()
    });
    let error = fetch(&client, "http://none.example/").await.unwrap_err();
    assert!(matches!(error, EgressError::Unresolved), "{error}");
}

#[tokio::test]
async fn tls_names_are_verified_and_a_redirect_to_http_is_rejected() {
    let (server, roots) = tls::start("images.example").await;
    let client = |name_known: bool| {
        let roots = if name_known {
            roots.clone()
        } else {
            rustls::RootCertStore::empty()
        };
        Client::trusting(
            roots,
            ClientOptions {
                resolver: ChangingResolver::new(&[&["127.0.0.1"]]),
                ..options(&["127.0.0.1/32"])
            },
        )
    };
    let url = |host: &str, path: &str| format!("https://{host}:{}{path}", server.port());
    let (_, bytes) = fetch(&client(true), &url("images.example", "/ok"))
        .await
        .unwrap();
    assert_eq!(bytes, b"hello");
    for (client, host) in [
        (client(true), "other.example"),
        (client(true), "127.0.0.1"),
        (client(false), "images.example"),
    ] {
        let error = fetch(&client, &url(host, "/ok")).await.expect_err(host);
        assert!(matches!(error, EgressError::Connect), "{host}: {error}");
    }
    let error = fetch(
        &client(true),
        &url("images.example", "/to/http://127.0.0.1/"),
    )
    .await
    .unwrap_err();
    assert_eq!(error.to_string(), "the URL redirects to http from https");
}

fn get(url: &str) -> Request<tollgate_upstream::egress::RequestBody> {
    Request::get(url).body(body("")).unwrap()
}

const TIMEOUTS: Timeouts = Timeouts {
    connect: None,
    first_byte: Duration::from_millis(400),
    idle: Duration::from_millis(400),
};

#[tokio::test]
async fn unguarded_requests_reach_private_addresses_and_follow_no_redirect() {
    let server = Server::start().await;
    let client = client(&[]);
    let response = client
        .send(get(&server.url("/ok")), TIMEOUTS)
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.into_body().collect(5).await.unwrap(), "hello");
    assert!(
        server.requests()[0].contains(concat!("user-agent: tollgate/", env!("CARGO_PKG_VERSION")))
    );
    let response = client
        .send(get(&server.url("/to//ok")), TIMEOUTS)
        .await
        .unwrap();
    assert_eq!(response.status(), 302);
    let response = client
        .send(get(&server.url("/chunks")), TIMEOUTS)
        .await
        .unwrap();
    let error = response.into_body().collect(10_000).await.unwrap_err();
    assert!(
        matches!(error, EgressError::TooLarge { max: 10_000 }),
        "{error}"
    );
}

#[tokio::test]
async fn unguarded_requests_stream_and_time_out() {
    let server = Server::start().await;
    let client = client(&[]);
    let response = client
        .send(get(&server.url("/drip")), TIMEOUTS)
        .await
        .unwrap();
    let mut drops = response.into_body();
    for _ in 0..5 {
        assert_eq!(drops.chunk().await.unwrap().unwrap()[0], b'x');
    }
    let error = client
        .send(get(&server.url("/hang")), TIMEOUTS)
        .await
        .unwrap_err();
    assert!(matches!(error, EgressError::TimedOut(_)) && error.may_have_been_sent());
    let response = client
        .send(get(&server.url("/cut")), TIMEOUTS)
        .await
        .unwrap();
    let error = response.into_body().collect(1000).await.unwrap_err();
    assert!(matches!(error, EgressError::Broken), "{error}");
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let error = client
        .send(get(&format!("http://{closed}/")), TIMEOUTS)
        .await
        .unwrap_err();
    assert!(
        matches!(error, EgressError::Connect) && !error.may_have_been_sent(),
        "{error}"
    );
}

#[tokio::test]
async fn a_call_has_its_own_connect_timeout() {
    // Accepts connections but never starts TLS.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/", mute.local_addr().unwrap());
    let timeouts = Timeouts {
        connect: Some(Duration::from_millis(100)),
        first_byte: Duration::from_secs(20),
        idle: Duration::from_secs(20),
    };
    let start = Instant::now();
    let error = client(&[]).send(get(&url), timeouts).await.unwrap_err();
    assert!(matches!(error, EgressError::Connect), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_cancelled_read_does_not_restart_the_timeout() {
    let server = Server::start().await;
    let response = client(&[]).send(get(&server.url("/stall")), TIMEOUTS).await;
    let mut parts = response.unwrap().into_body();
    assert_eq!(parts.chunk().await.unwrap().unwrap(), "x");
    let start = Instant::now();
    let error = loop {
        match tokio::time::timeout(Duration::from_millis(50), parts.chunk()).await {
            Ok(ended) => break ended.unwrap_err(),
            Err(_) => assert!(start.elapsed() < Duration::from_secs(5)),
        }
    };
    assert!(matches!(error, EgressError::TimedOut(_)), "{error}");
    assert!(start.elapsed() >= TIMEOUTS.idle - Duration::from_millis(50));
}
