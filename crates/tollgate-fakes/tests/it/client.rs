//! A client for the tests: one connection for each request, and tables of requests.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tollgate_fakes::{Fake, Options, Provider, Scenario};

/// A image of one pixel: its beginning is that of a PNG.
pub(crate) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: hyper::HeaderMap,
    /// How the bytes came.
    pub(crate) pieces: Vec<Bytes>,
    /// What ended the body before its end.
    pub(crate) broken: Option<hyper::Error>,
}

impl Reply {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.pieces.concat()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("UTF-8")
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

    /// The data of the events; the name of each must be the type that it gives itself.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text().replace("\r\n", "\n");
        let mut events = Vec::new();
        for block in text.split("\n\n") {
            let lines = block.lines();
            let line = |begin: &'static str| lines.clone().find_map(|l| l.strip_prefix(begin));
            let Some(data) = line("data: ").filter(|data| *data != "[DONE]") else {
                continue;
            };
            let data: Value = serde_json::from_str(data).expect("JSON");
            if let Some(name) = line("event: ") {
                assert_eq!(data["type"], name);
            }
            events.push(data);
        }
        events
    }
}

/// Sends a request with exactly these headers.
pub(crate) async fn send(
    fake: &Fake,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> Result<Reply, hyper::Error> {
    send_to(fake.address(), method, path, headers, body).await
}

/// Sends a request to an address.
pub(crate) async fn send_to(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> Result<Reply, hyper::Error> {
    let response = open_at(address, method, path, headers, body).await?;
    let (head, mut body) = response.into_parts();
    let mut reply = Reply {
        status: head.status.as_u16(),
        headers: head.headers,
        pieces: Vec::new(),
        broken: None,
    };
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => reply.pieces.extend(frame.into_data()),
            Err(error) => {
                reply.broken = Some(error);
                break;
            }
        }
    }
    Ok(reply)
}

/// Sends a request and gives the answer while it comes.
pub(crate) async fn open(
    fake: &Fake,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> Result<hyper::Response<Incoming>, hyper::Error> {
    open_at(fake.address(), method, path, headers, body).await
}

async fn open_at(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl AsRef<[u8]>,
) -> Result<hyper::Response<Incoming>, hyper::Error> {
    let stream = TcpStream::connect(address).await.expect("the fake listens");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The connection's own error is that of the request too.
    tokio::spawn(async move { connection.await.unwrap_or_default() });
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "fake");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::new(Bytes::copy_from_slice(body.as_ref()));
    sender
        .send_request(request.body(body).expect("a request"))
        .await
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

/// One way to ask a fake.
#[derive(Clone, Copy)]
pub(crate) struct Wire {
    pub(crate) provider: Provider,
    pub(crate) path: &'static str,
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// A request in order, whose user says this.
    pub(crate) body: fn(&str) -> Value,
}

const JSON: (&str, &str) = ("content-type", "application/json");

pub(crate) const CHAT: Wire = Wire {
    provider: Provider::OpenAi,
    path: "/v1/chat/completions",
    headers: &[JSON, ("authorization", "Bearer k")],
    body: |text| json!({"model": "gpt-4o", "messages": [{"role": "user", "content": text}]}),
};

pub(crate) const RESPONSES: Wire = Wire {
    provider: Provider::OpenAi,
    path: "/v1/responses",
    headers: &[JSON, ("authorization", "Bearer k")],
    body: |text| json!({"model": "gpt-4o", "input": text}),
};

pub(crate) const MESSAGES: Wire = Wire {
    provider: Provider::Anthropic,
    path: "/v1/messages",
    headers: &[
        JSON,
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
    ],
    body: |text| {
        json!({"model": "claude-haiku-4-5", "max_tokens": 4000,
            "messages": [{"role": "user", "content": text}]})
    },
};

pub(crate) const GENERATE: Wire = Wire {
    provider: Provider::Gemini,
    path: "/v1beta/models/gemini-2.5-flash:generateContent",
    headers: &[JSON, ("x-goog-api-key", "k")],
    body: |text| json!({"contents": [{"role": "user", "parts": [{"text": text}]}]}),
};

pub(crate) const WIRES: &[Wire] = &[CHAT, RESPONSES, MESSAGES, GENERATE];

impl Wire {
    pub(crate) fn at(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    pub(crate) async fn start(self) -> Fake {
        self.start_with(Options::default()).await
    }

    pub(crate) async fn start_with(self, options: Options) -> Fake {
        tollgate_fakes::start(self.provider, options)
            .await
            .expect("a port")
    }

    pub(crate) async fn post(self, fake: &Fake, body: &Value) -> Reply {
        self.try_post(fake, body).await.expect("an answer")
    }

    pub(crate) async fn try_post(self, fake: &Fake, body: &Value) -> Result<Reply, hyper::Error> {
        send(fake, "POST", self.path, self.headers, &body.to_string()).await
    }

    /// The same as a stream: where and with which body.
    pub(crate) fn streamed(self, mut body: Value) -> (Self, Value) {
        if self.provider == Provider::Gemini {
            let path = if self.path.contains("gemini-3") {
                "/v1beta/models/gemini-3-flash:streamGenerateContent?alt=sse"
            } else {
                "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
            };
            return (self.at(path), body);
        }
        body["stream"] = json!(true);
        if self.path == CHAT.path {
            body["stream_options"] = json!({"include_usage": true});
        }
        (self, body)
    }

    /// Asks for an answer in one piece, or for a stream, under a scenario.
    pub(crate) async fn under(
        self,
        fake: &Fake,
        scenario: Scenario,
        text: &str,
        stream: bool,
    ) -> Result<Reply, hyper::Error> {
        fake.set(scenario);
        let body = (self.body)(text);
        let (wire, body) = if stream {
            self.streamed(body)
        } else {
            (self, body)
        };
        wire.try_post(fake, &body).await
    }
}
