//! A client for the tests: one fake, and a new connection for each request to it.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tollgate_fakes::{Fake, Options, Provider};

pub(crate) type Headers = Vec<(String, String)>;

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) pieces: Vec<Bytes>,
    /// The error that ended the body early.
    pub(crate) error: Option<hyper::Error>,
}

impl Reply {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes()).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// The headers of a request that the provider accepts.
pub(crate) fn headers_of(provider: Provider) -> Headers {
    let headers: &[(&str, &str)] = match provider {
        Provider::Anthropic => &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")],
        Provider::Gemini => &[("x-goog-api-key", "k")],
        Provider::Fal => &[("authorization", "Key k")],
        _ => &[("authorization", "Bearer k")],
    };
    headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// A fake and the headers of requests to it.
pub(crate) struct Client {
    pub(crate) fake: Fake,
    pub(crate) headers: Headers,
}

impl Client {
    pub(crate) async fn start(provider: Provider, options: Options) -> Self {
        let fake = tollgate_fakes::start(provider, options)
            .await
            .expect("a port");
        Self {
            fake,
            headers: headers_of(provider),
        }
    }

    pub(crate) async fn try_post(&self, path: &str, body: &Value) -> Result<Reply, hyper::Error> {
        read_reply(self.open(path, body).await?).await
    }

    /// Sends a POST request and returns the response while its body arrives.
    pub(crate) async fn open(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<hyper::Response<Incoming>, hyper::Error> {
        let mut headers = self.headers.clone();
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let body = body.to_string().into_bytes();
        open(self.fake.address(), "POST", path, &headers, body).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.try_post(path, body).await.expect("a response")
    }

    pub(crate) async fn send(&self, method: &str, path: &str) -> Reply {
        let reply = send(self.fake.address(), method, path, &self.headers, Vec::new()).await;
        reply.expect("a response")
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.send("GET", path).await
    }

    /// Requests a link to the fake, without a key.
    pub(crate) async fn fetch(&self, link: &Value) -> Reply {
        let origin = format!("http://{}", self.fake.address());
        let path = link.as_str().and_then(|link| link.strip_prefix(&origin));
        let path = path.expect("a link of the fake's own origin");
        let reply = send(self.fake.address(), "GET", path, &Vec::new(), Vec::new()).await;
        reply.expect("a response")
    }
}

/// Sends a request with exactly these headers.
pub(crate) async fn send(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &Headers,
    body: Vec<u8>,
) -> Result<Reply, hyper::Error> {
    read_reply(open(address, method, path, headers, body).await?).await
}

async fn read_reply(response: hyper::Response<Incoming>) -> Result<Reply, hyper::Error> {
    let (head, mut body) = response.into_parts();
    let mut reply = Reply {
        status: head.status.as_u16(),
        headers: head.headers,
        pieces: Vec::new(),
        error: None,
    };
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => reply.pieces.extend(frame.into_data()),
            Err(error) => {
                reply.error = Some(error);
                break;
            }
        }
    }
    Ok(reply)
}

async fn open(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &Headers,
    body: Vec<u8>,
) -> Result<hyper::Response<Incoming>, hyper::Error> {
    let stream = TcpStream::connect(address).await.expect("the fake listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // An error of the connection is also returned by the request.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "fake");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    sender.send_request(request).await
}

/// Whether the error is a reset of the connection.
pub(crate) fn is_reset(error: &hyper::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return error.kind() == io::ErrorKind::ConnectionReset;
        }
        source = error.source();
    }
    false
}

/// A request of each kind (`tests/cases/exchanges.jsonl`): in the chat formats, complete and streamed, or for
/// media, with or without a task.
pub(crate) struct Exchange {
    pub(crate) provider: Provider,
    pub(crate) path: String,
    pub(crate) streams: bool,
    pub(crate) starts_task: bool,
    body: String,
}

impl Exchange {
    pub(crate) fn chats() -> Vec<Self> {
        Self::having("stream")
    }

    pub(crate) fn media() -> Vec<Self> {
        Self::having("task")
    }

    fn having(field: &str) -> Vec<Self> {
        let lines = include_str!("../cases/exchanges.jsonl").lines();
        let lines = lines.map(|line| serde_json::from_str::<Value>(line).expect("a line"));
        let lines = lines.filter(|line| line.get(field).is_some());
        let exchange = |line: Value| Self {
            provider: line["provider"]
                .as_str()
                .and_then(|name| name.parse().ok())
                .expect("known"),
            path: line["path"].as_str().expect("a path").to_owned(),
            streams: line["stream"] == true,
            starts_task: line["task"] == true,
            body: line["body"].to_string(),
        };
        lines.map(exchange).collect()
    }

    /// The body with this text as prompt.
    pub(crate) fn body(&self, text: &str) -> Value {
        serde_json::from_str(&self.body.replace("TEXT", text)).expect("a body")
    }

    pub(crate) async fn start(&self) -> Client {
        Client::start(self.provider, Options::default()).await
    }
}
