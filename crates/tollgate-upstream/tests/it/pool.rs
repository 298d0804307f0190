//! Tests the connection pool: connections are reused, shared, replaced and closed.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, mpsc};
use tollgate_upstream::egress::{
    Client, ClientOptions, EgressError, RequestBody, SentOnce, Timeouts, body,
};

use crate::tls;

const TIMEOUTS: Timeouts = Timeouts {
    connect: None,
    first_byte: Duration::from_secs(5),
    idle: Duration::from_secs(5),
};

/// A server whose connections the test reads and writes itself, in the order in which they were accepted.
async fn server() -> (SocketAddr, mpsc::UnboundedReceiver<Connection>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (accepted, connections) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = accepted.send(Connection(stream));
        }
    });
    (address, connections)
}

/// The server's end of a connection.
struct Connection(TcpStream);

impl Connection {
    /// The head and body of the next request. `None` if the connection ended.
    async fn request(&mut self) -> Option<String> {
        let mut read = Vec::new();
        while !read.ends_with(b"\r\n\r\ndata") {
            read.push(self.0.read_u8().await.ok()?);
        }
        Some(String::from_utf8(read).unwrap())
    }

    async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }
}

fn client() -> Client {
    Client::new(ClientOptions::default())
}

fn post(address: SocketAddr) -> Request<RequestBody> {
    let request = Request::post(format!("http://{address}/v1/chat?a=b"));
    request.body(body("data")).unwrap()
}

async fn send(client: &Client, address: SocketAddr) -> Result<Bytes, EgressError> {
    let response = client.send(post(address), TIMEOUTS).await?;
    response.into_body().collect(1000).await
}

/// Sends a request over a new connection and completes its response; returns the server's end of the connection.
async fn first_request(
    client: &Client,
    address: SocketAddr,
    connections: &mut mpsc::UnboundedReceiver<Connection>,
) -> Connection {
    let (response, connection) = tokio::join!(send(client, address), async {
        let mut connection = connections.recv().await.unwrap();
        assert!(connection.request().await.is_some());
        connection.write(COMPLETE).await;
        connection
    });
    assert_eq!(response.unwrap(), "word");
    connection
}

const COMPLETE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nword";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nwo\r\n2\r\nrd\r\n0\r\n\r\n";
const EMPTY: &str = "HTTP/1.1 204 No Content\r\n\r\n";

#[tokio::test]
async fn a_connection_is_reused_for_the_next_request() {
    let (address, mut connections) = server().await;
    let client = client();
    let client_task = tokio::spawn(async move {
        for expected in ["word", "word", ""] {
            assert_eq!(send(&client, address).await.unwrap(), expected);
        }
        // Two requests at the same time need two connections.
        let (one, other) = tokio::join!(send(&client, address), send(&client, address));
        assert_eq!(
            (&*one.unwrap(), &*other.unwrap()),
            (&b"word"[..], &b"word"[..])
        );
    });
    let mut connection = connections.recv().await.unwrap();
    let head = connection.request().await.unwrap();
    assert!(head.starts_with("POST /v1/chat?a=b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
    connection.write(COMPLETE).await;
    for response in [CHUNKED, EMPTY] {
        assert!(connection.request().await.is_some());
        connection.write(response).await;
    }
    let mut second = connections.recv().await.unwrap();
    for connection in [&mut connection, &mut second] {
        assert!(connection.request().await.is_some());
        connection.write(COMPLETE).await;
    }
    client_task.await.unwrap();
    assert!(connections.try_recv().is_err());
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let (address, mut connections) = server().await;
    let client = client();
    for _ in 0..3 {
        let mut connection = first_request(&client, address, &mut connections).await;
        connection.0.shutdown().await.unwrap();
        drop(connection);
        // Waits until the end of the connection has passed through the loopback device.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_request_without_a_response_is_not_sent_again() {
    let (address, mut connections) = server().await;
    let client = client();
    let mut connection = first_request(&client, address, &mut connections).await;
    // Not retried even on a reused connection: the server may have processed the request.
    let (response, ()) = tokio::join!(send(&client, address), async move {
        assert!(connection.request().await.is_some());
        drop(connection);
    });
    let error = response.unwrap_err();
    assert!(matches!(error, EgressError::Broken), "{error}");
    assert!(connections.try_recv().is_err());
}

#[tokio::test]
async fn a_request_that_is_sent_once_uses_no_connection_that_was_idle_for_long() {
    let (address, mut connections) = server().await;
    let client = client();
    let mut connection = first_request(&client, address, &mut connections).await;
    let send_once = async || {
        let mut request = post(address);
        request.extensions_mut().insert(SentOnce);
        let response = client.send(request, TIMEOUTS).await.unwrap();
        response.into_body().collect(1000).await.unwrap()
    };
    let (response, ()) = tokio::join!(send_once(), async {
        assert!(connection.request().await.is_some(), "it was just used");
        connection.write(COMPLETE).await;
    });
    assert_eq!(response, "word");

    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(4)).await;
    tokio::time::resume();
    let (response, _second) = tokio::join!(send_once(), async {
        let mut second = connections.recv().await.unwrap();
        assert!(second.request().await.is_some());
        second.write(COMPLETE).await;
        second
    });
    assert_eq!(response, "word");
}

#[tokio::test]
async fn a_connection_with_an_abandoned_request_is_closed() {
    let (address, mut connections) = server().await;
    let client = client();
    // Abandoned before the head, and before the last byte of the body.
    let waiting = tokio::spawn(client.send(post(address), TIMEOUTS));
    let mut connection = connections.recv().await.unwrap();
    assert!(connection.request().await.is_some());
    waiting.abort();
    assert!(connection.request().await.is_none());

    let (response, mut connection) = tokio::join!(client.send(post(address), TIMEOUTS), async {
        let mut connection = connections.recv().await.unwrap();
        assert!(connection.request().await.is_some());
        connection
            .write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nword")
            .await;
        connection
    });
    let mut response = response.unwrap().into_body();
    assert_eq!(response.chunk().await.unwrap().unwrap(), "word");
    drop(response);
    assert!(connection.request().await.is_none());
}

#[tokio::test]
async fn a_connection_that_the_server_announces_to_close_is_not_reused() {
    let (address, mut connections) = server().await;
    let client = client();
    for _ in 0..2 {
        let (response, ()) = tokio::join!(send(&client, address), async {
            let mut connection = connections.recv().await.unwrap();
            assert!(connection.request().await.is_some());
            let response = COMPLETE.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n");
            connection.write(&response).await;
            assert!(connection.request().await.is_none());
        });
        assert_eq!(response.unwrap(), "word");
    }
}

#[tokio::test]
async fn a_connection_is_not_reused_after_an_error() {
    const ERRORS: [&str; 3] = [
        "HTTP/1.1 429 Too Many Requests\r\ncontent-length: 4\r\n\r\nbusy",
        "HTTP/1.1 500 Internal Server Error\r\ntransfer-encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
    ];
    for error in ERRORS {
        let (address, mut connections) = server().await;
        let client = client();
        let (failed, mut failed_over) = tokio::join!(send(&client, address), async {
            let mut connection = connections.recv().await.unwrap();
            assert!(connection.request().await.is_some());
            connection.write(error).await;
            connection
        });
        assert!(failed.is_ok(), "{error}");
        first_request(&client, address, &mut connections).await;
        assert!(
            failed_over.request().await.is_none(),
            "closed after {error}"
        );
    }
}

#[tokio::test]
async fn requests_share_http2_connections() {
    // More exchanges than one connection gets, at the same time.
    const MANY: usize = 100;
    let (acceptor, roots) = tls::acceptor("localhost", &["h2", "http/1.1"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    let all_sent = Arc::new(Barrier::new(MANY));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::Relaxed);
            let (acceptor, all_sent) = (acceptor.clone(), Arc::clone(&all_sent));
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let service = service_fn(|request: Request<Incoming>| {
                    let all_sent = Arc::clone(&all_sent);
                    async move {
                        if request.uri().path() == "/many" {
                            all_sent.wait().await;
                        }
                        let text = format!("{:?} {}", request.version(), request.uri());
                        Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text))))
                    }
                });
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    });
    let client = Client::trusting(roots, ClientOptions::default());
    let request = async |path: &str| {
        let url = format!("https://localhost:{port}{path}");
        let post = Request::post(&url).body(body("data")).unwrap();
        let response = client.send(post, TIMEOUTS).await.unwrap();
        let text = response.into_body().collect(1000).await.unwrap();
        assert_eq!(text, format!("HTTP/2.0 {url}"));
    };
    request("/one").await;
    tokio::join!(
        request("/one"),
        request("/one"),
        request("/one"),
        request("/one")
    );
    assert_eq!(accepted.load(Ordering::Relaxed), 1);
    join_all((0..MANY).map(|_| request("/many"))).await;
    let connections = accepted.load(Ordering::Relaxed);
    assert!((2..MANY).contains(&connections), "{connections}");
}
