//! A provider's server on this machine: it records the requests that it receives and sends the responses that a test specifies.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::RootCertStore;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A body; an error in it breaks the connection.
pub(crate) type Chunks = BoxStream<'static, Result<Bytes, std::io::Error>>;
/// A response; `None` breaks the connection before its head.
pub(crate) type Reply = Option<Response<Chunks>>;
type Handler = dyn Fn(&ReceivedRequest) -> Reply + Send + Sync;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    /// Method and path with query.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ReceivedRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    /// The value of a header; empty if it is missing.
    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("a text"))
    }
}

/// A complete response of that content type; without the header if `content_type` is empty.
pub(crate) fn reply(status: u16, content_type: &str, body: impl Into<Bytes>) -> Reply {
    let body = body.into();
    chunked(status, content_type, stream::iter([Ok(body)]).boxed())
}

/// A complete JSON response.
pub(crate) fn reply_json(status: u16, body: &Value) -> Reply {
    reply(status, "application/json", body.to_string())
}

/// A response whose body arrives in these chunks.
pub(crate) fn chunked(status: u16, content_type: &str, chunks: Chunks) -> Reply {
    let mut response = Response::new(chunks);
    *response.status_mut() = status.try_into().expect("a status");
    if !content_type.is_empty() {
        let headers = response.headers_mut();
        headers.insert("content-type", content_type.parse().expect("a type"));
    }
    Some(response)
}

/// The beginning of a response; then the connection breaks.
pub(crate) fn broken_off(content_type: &str, beginning: impl Into<Bytes>) -> Reply {
    let first = stream::iter([Ok(beginning.into())]);
    let broken = stream::once(async {
        // By then, the bytes written before have been sent.
        tokio::time::sleep(Duration::from_millis(50)).await;
        Err(std::io::Error::other("broken off"))
    });
    chunked(200, content_type, first.chain(broken).boxed())
}

/// Adds a header to the response.
pub(crate) fn with_header(reply: Reply, name: &str, value: &str) -> Reply {
    let mut reply = reply?;
    let name: http::HeaderName = name.parse().expect("a header's name");
    let headers = reply.headers_mut();
    headers.insert(name, value.parse().expect("a header's value"));
    Some(reply)
}

/// A running server; it ends with the test's runtime.
pub(crate) struct FixtureServer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    connections: Arc<AtomicUsize>,
}

impl FixtureServer {
    /// Responds to every request with the result of `handler`.
    pub(crate) async fn start(
        handler: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::listen(None, Arc::new(handler)).await
    }

    /// Starts a server with TLS for `name`; returns also the root certificate that signs its certificate.
    pub(crate) async fn start_tls(
        name: &str,
        handler: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
    ) -> (Self, RootCertStore) {
        let (acceptor, roots) = crate::tls::acceptor(name, &[]);
        let server = Self::listen(Some(acceptor), Arc::new(handler)).await;
        (server, roots)
    }

    async fn listen(tls: Option<TlsAcceptor>, handler: Arc<Handler>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (log, counter) = (received.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let (log, handler) = (log.clone(), handler.clone());
                match tls.clone() {
                    None => drop(tokio::spawn(serve(stream, log, handler))),
                    Some(tls) => drop(tokio::spawn(async move {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, log, handler).await;
                        }
                    })),
                }
            }
        });
        Self {
            address,
            received,
            connections,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The server's host and port.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }
}

/// Responds to the requests of one connection.
async fn serve<S>(stream: S, log: Arc<Mutex<Vec<ReceivedRequest>>>, handler: Arc<Handler>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (log, handler) = (log.clone(), handler.clone());
        async move {
            let (head, body) = request.into_parts();
            let received = ReceivedRequest {
                line: format!("{} {}", head.method, head.uri),
                headers: head.headers,
                body: body.collect().await.unwrap().to_bytes(),
            };
            log.lock().unwrap().push(received.clone());
            let frames =
                |chunks: Chunks| StreamBody::new(chunks.map(|chunk| chunk.map(Frame::data)));
            let reply = handler(&received).map(|reply| reply.map(frames));
            reply.ok_or_else(|| std::io::Error::other("no response"))
        }
    });
    // An error here means that the client closed the connection, which many tests intend.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
