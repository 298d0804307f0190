//! Connections to providers: kept, shared, replaced and given up.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tollgate_upstream::egress::{Client, ClientOptions, EgressError, RequestBody, Timeouts, body};

use crate::tls;

const TIMEOUTS: Timeouts = Timeouts {
    connect: None,
    first_byte: Duration::from_secs(5),
    idle: Duration::from_secs(5),
};

/// A server whose connections are in the hands of the test, in the order in which they were made.
async fn server() -> (SocketAddr, mpsc::UnboundedReceiver<Line>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (made, lines) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = made.send(Line(stream));
        }
    });
    (address, lines)
}

/// The server's end of a connection.
struct Line(TcpStream);

impl Line {
    /// The head and body of the next request; none at the connection's end.
    async fn request(&mut self) -> Option<String> {
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\nask") {
            read.push(self.0.read_u8().await.ok()?);
        }
        Some(String::from_utf8(read).unwrap())
    }

    async fn say(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }
}

fn client() -> Client {
    Client::new(ClientOptions::default())
}

fn post(address: SocketAddr) -> Request<RequestBody> {
    let request = Request::post(format!("http://{address}/v1/chat?a=b"));
    request.body(body("ask")).unwrap()
}

async fn ask(client: &Client, address: SocketAddr) -> Result<Bytes, EgressError> {
    let answer = client.send(post(address), TIMEOUTS).await?;
    answer.into_body().collect(1000).await
}

/// A request over a new connection, answered whole; the server's end of that.
async fn first(
    client: &Client,
    address: SocketAddr,
    lines: &mut mpsc::UnboundedReceiver<Line>,
) -> Line {
    let (answer, line) = tokio::join!(ask(client, address), async {
        let mut line = lines.recv().await.unwrap();
        assert!(line.request().await.is_some());
        line.say(ANSWER).await;
        line
    });
    assert_eq!(answer.unwrap(), "word");
    line
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nword";
const CHUNKS: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nwo\r\n2\r\nrd\r\n0\r\n\r\n";
const NOTHING: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let (address, mut lines) = server().await;
    let client = client();
    let asked = tokio::spawn(async move {
        for expected in ["word", "word", ""] {
            assert_eq!(ask(&client, address).await.unwrap(), expected);
        }
        // Two at a time need two.
        let (one, other) = tokio::join!(ask(&client, address), ask(&client, address));
        assert_eq!(
            (&*one.unwrap(), &*other.unwrap()),
            (&b"word"[..], &b"word"[..])
        );
    });
    let mut line = lines.recv().await.unwrap();
    let head = line.request().await.unwrap();
    assert!(head.starts_with("POST /v1/chat?a=b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
    line.say(ANSWER).await;
    for answer in [CHUNKS, NOTHING] {
        assert!(line.request().await.is_some());
        line.say(answer).await;
    }
    let mut second = lines.recv().await.unwrap();
    for line in [&mut line, &mut second] {
        assert!(line.request().await.is_some());
        line.say(ANSWER).await;
    }
    asked.await.unwrap();
    assert!(lines.try_recv().is_err());
}

#[tokio::test]
async fn one_that_was_closed_meanwhile_is_replaced() {
    let (address, mut lines) = server().await;
    let client = client();
    for _ in 0..3 {
        let mut line = first(&client, address, &mut lines).await;
        line.0.shutdown().await.unwrap();
        drop(line);
        // Until the end has come through the loopback device.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_ends_before_its_answer_is_broken_and_is_not_sent_again() {
    let (address, mut lines) = server().await;
    let client = client();
    let mut line = first(&client, address, &mut lines).await;
    // On a kept connection as well: the other side may have done what it was asked for.
    let (answer, ()) = tokio::join!(ask(&client, address), async move {
        assert!(line.request().await.is_some());
        drop(line);
    });
    let error = answer.unwrap_err();
    assert!(matches!(error, EgressError::Broken), "{error}");
    assert!(lines.try_recv().is_err());
}

#[tokio::test]
async fn what_nobody_waits_for_is_closed() {
    let (address, mut lines) = server().await;
    let client = client();
    // Before the head, and before the last byte of the body.
    let waiting = tokio::spawn(client.send(post(address), TIMEOUTS));
    let mut line = lines.recv().await.unwrap();
    assert!(line.request().await.is_some());
    waiting.abort();
    assert!(line.request().await.is_none());

    let (answer, mut line) = tokio::join!(client.send(post(address), TIMEOUTS), async {
        let mut line = lines.recv().await.unwrap();
        assert!(line.request().await.is_some());
        line.say("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nword")
            .await;
        line
    });
    let mut answer = answer.unwrap().into_body();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "word");
    drop(answer);
    assert!(line.request().await.is_none());
}

#[tokio::test]
async fn a_server_that_says_close_is_believed() {
    let (address, mut lines) = server().await;
    let client = client();
    for _ in 0..2 {
        let (answer, ()) = tokio::join!(ask(&client, address), async {
            let mut line = lines.recv().await.unwrap();
            assert!(line.request().await.is_some());
            let answer = ANSWER.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
            line.say(&answer).await;
            assert!(line.request().await.is_none());
        });
        assert_eq!(answer.unwrap(), "word");
    }
}

#[tokio::test]
async fn requests_share_a_connection_of_http2() {
    let (acceptor, roots) = tls::speaking("localhost", &["h2", "http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let answer = service_fn(|request: Request<Incoming>| async move {
                    let said = format!("{:?} {}", request.version(), request.uri());
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(said))))
                });
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), answer).await;
            });
        }
    });
    let client = Client::trusting(roots, ClientOptions::default());
    let url = format!("https://localhost:{port}/v1/chat");
    let ask = async || {
        let request = Request::post(&url).body(body("ask")).unwrap();
        let answer = client.send(request, TIMEOUTS).await.unwrap();
        answer.into_body().collect(1000).await.unwrap()
    };
    let expected = format!("HTTP/2.0 {url}");
    assert_eq!(ask().await, expected);
    let all = tokio::join!(ask(), ask(), ask(), ask());
    assert!(
        [all.0, all.1, all.2, all.3]
            .iter()
            .all(|said| *said == expected)
    );
    assert_eq!(made.load(Ordering::Relaxed), 1);
}
