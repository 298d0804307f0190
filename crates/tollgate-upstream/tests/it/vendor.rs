//! A provider on this machine: remembers what it is asked and answers what a test tells it to.

use std::convert::Infallible;
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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tollgate_chat::Format;
use tollgate_core::Secret;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::Settings;
use tollgate_upstream::{
    Channel, ChatBody, ChatCall, ChatProvider, ChatTimeouts, PROVIDERS, ProviderError,
};

/// A body that may end in an error: the connection is cut.
pub(crate) type Parts = BoxStream<'static, Result<Bytes, std::io::Error>>;
pub(crate) type Reply = Response<Parts>;

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

pub(crate) struct Vendor {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
}

type Answers = dyn Fn(&Seen) -> Reply + Send + Sync;

/// Answers what comes over one connection.
async fn serve<S>(stream: S, notes: Arc<Mutex<Vec<Seen>>>, reply: Arc<Answers>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (notes, reply) = (notes.clone(), reply.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let seen = Seen {
                line: format!("{} {}", head.method, head.uri),
                headers: head.headers,
                body,
            };
            notes.lock().unwrap().push(seen.clone());
            let reply = reply(&seen);
            let frames = |parts: Parts| StreamBody::new(parts.map(|part| part.map(Frame::data)));
            Ok::<_, Infallible>(reply.map(frames))
        }
    });
    // An error here is the client hanging up, which is often the point.
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl Vendor {
    /// Answers every request with what `reply` makes.
    pub(crate) async fn start(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Self {
        Self::answering(move |_| reply()).await
    }

    /// Answers every request with what `reply` makes of it.
    pub(crate) async fn answering(reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        Self::listening(None, Arc::new(reply)).await
    }

    /// The same behind TLS as `name`, and who vouches for it.
    pub(crate) async fn secure(
        name: &str,
        reply: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    ) -> (Self, RootCertStore) {
        let (acceptor, roots) = crate::tls::acceptor(name);
        (
            Self::listening(Some(acceptor), Arc::new(reply)).await,
            roots,
        )
    }

    async fn listening(tls: Option<TlsAcceptor>, reply: Arc<Answers>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let connections: Arc<AtomicUsize> = Arc::default();
        let (notes, counter) = (seen.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                let (notes, reply) = (notes.clone(), reply.clone());
                match tls.clone() {
                    None => drop(tokio::spawn(serve(stream, notes, reply))),
                    Some(tls) => drop(tokio::spawn(async move {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, notes, reply).await;
                        }
                    })),
                }
            }
        });
        Self {
            address,
            seen,
            connections,
        }
    }

    /// Answers every request with that status, type and text.
    pub(crate) async fn saying(status: u16, kind: &'static str, text: &'static str) -> Self {
        Self::start(move || answer(status, kind, text)).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

impl Seen {
    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

pub(crate) fn answer(status: u16, kind: &str, text: impl Into<Bytes>) -> Reply {
    let text = text.into();
    let parts = stream::once(async move { Ok(text) });
    let mut response = Response::new(parts.boxed());
    *response.status_mut() = status.try_into().unwrap();
    if !kind.is_empty() {
        let headers = response.headers_mut();
        headers.insert("content-type", kind.parse().unwrap());
    }
    response
}

/// A channel of that kind whose provider is opened as the server opens it.
pub(crate) fn open(channel: Channel) -> Arc<dyn ChatProvider> {
    let entry = PROVIDERS.iter().find(|entry| entry.kind == channel.kind);
    let egress = Client::new(ClientOptions::default());
    let channel = Arc::new(channel);
    let open = entry.expect("the kind is registered").open;
    let provider = open(&channel, &Settings::default(), &egress);
    provider.chat.expect("it answers chats")
}

/// A channel at `base` with the key [`KEY`].
pub(crate) fn channel(kind: &str, base: String) -> Channel {
    Channel {
        base_url: Some(base),
        api_keys: vec![Secret::new(KEY)],
        ..Channel::new("main", kind)
    }
}

pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// A call, with what tests change of it.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) format: &'static dyn Format,
    pub(crate) model: &'static str,
    pub(crate) stream: bool,
    pub(crate) body: Bytes,
    pub(crate) headers: HeaderMap,
    pub(crate) failed_attempts: u32,
    pub(crate) timeouts: ChatTimeouts,
}

impl Ask {
    pub(crate) fn of(format: &str) -> Self {
        Self {
            format: tollgate_chat::by_name(format).unwrap(),
            model: "test-model",
            stream: false,
            body: Bytes::from_static(b"{\"as\": \"it is\"}"),
            headers: HeaderMap::new(),
            failed_attempts: 0,
            timeouts: ChatTimeouts {
                connect: Duration::from_secs(5),
                first_byte: Duration::from_secs(5),
                idle: Duration::from_secs(5),
            },
        }
    }

    pub(crate) async fn send(
        &self,
        provider: &dyn ChatProvider,
    ) -> Result<ChatBody, ProviderError> {
        let key = Secret::new(KEY);
        provider
            .send(ChatCall {
                format: self.format,
                model: self.model,
                stream: self.stream,
                body: self.body.clone(),
                key: Some(&key),
                headers: &self.headers,
                request_id: "req-1",
                failed_attempts: self.failed_attempts,
                timeouts: self.timeouts,
            })
            .await
    }

    /// The error of a call that fails.
    pub(crate) async fn refused(&self, provider: &dyn ChatProvider) -> ProviderError {
        match self.send(provider).await {
            Ok(_) => panic!("it was answered"),
            Err(error) => error,
        }
    }
}
