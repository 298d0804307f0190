//! Tests of chat providers: the formats that they support, their headers, timeouts and connections. The requests that they send and the
//! classification of errors are tested by the cases.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use http::HeaderMap;
use tollgate_chat::Format;
use tollgate_core::Secret;
use tollgate_upstream::egress::{Client, ClientOptions, EgressError};
use tollgate_upstream::provider::Settings;
use tollgate_upstream::{
    Channel, ChatBody, ChatCall, ChatProvider, ChatTimeouts, ProviderError, UpstreamErrorKind,
};

use crate::adapter::{KEY, channel, entry};
use crate::fixture_server::{FixtureServer, broken_off, chunked, reply};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";
const EVENT: Bytes = Bytes::from_static(b"data: {}\n\n");

/// The provider of a channel, opened as the server opens it.
pub(crate) fn open(channel: Channel) -> Arc<dyn ChatProvider> {
    let egress = Client::new(ClientOptions::default());
    let open = entry(&channel.kind).open;
    let provider = open(&Arc::new(channel), &Settings::default(), &egress);
    provider.chat.expect("the provider supports chats")
}

/// A request of a client.
pub(crate) struct Chat {
    format: &'static dyn Format,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) headers: HeaderMap,
    body: Bytes,
    timeouts: ChatTimeouts,
}

impl Chat {
    pub(crate) fn new(format: &str) -> Self {
        let timeout = Duration::from_secs(5);
        Self {
            format: tollgate_chat::by_name(format).expect(format),
            model: "test-model".to_owned(),
            stream: false,
            headers: HeaderMap::new(),
            body: Bytes::from_static(b"{\"as\": \"it is\"}"),
            timeouts: ChatTimeouts {
                connect: timeout,
                first_byte: timeout,
                idle: timeout,
            },
        }
    }

    pub(crate) async fn send(
        &self,
        provider: &dyn ChatProvider,
    ) -> Result<ChatBody, ProviderError> {
        let key = Secret::new(KEY);
        let call = ChatCall {
            format: self.format,
            model: &self.model,
            stream: self.stream,
            body: self.body.clone(),
            key: Some(&key),
            headers: &self.headers,
            request_id: "req-1",
            trace: None,
            failed_attempts: 0,
            timeouts: self.timeouts,
        };
        provider.send(call).await
    }

    async fn error(&self, channel: Channel) -> ProviderError {
        let sent = self.send(&*open(channel)).await;
        sent.err().expect("an error")
    }
}

/// Reads the complete body.
async fn read_body(mut body: ChatBody) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(chunk) = body.chunk().await.unwrap() {
        all.extend_from_slice(&chunk);
    }
    all
}

fn openai(base: String) -> Channel {
    channel("openai", base, "m")
}

#[tokio::test]
async fn openai_receives_the_unchanged_body_and_only_these_headers() {
    let server = FixtureServer::start(|_| reply(200, JSON, "{}")).await;
    let mut chat = Chat::new("chat-completions");
    for (name, value) in [
        ("authorization", "Bearer the-clients-own"),
        ("cookie", "a=b"),
        ("openai-organization", "o"),
    ] {
        chat.headers.insert(name, value.parse().unwrap());
    }
    let response = chat.send(&*open(openai(server.url("/v1")))).await.unwrap();
    assert_eq!(read_body(response).await, b"{}");
    let request = &server.received()[0];
    assert_eq!(request.line, "POST /v1/chat/completions");
    assert_eq!(request.body, chat.body);
    let mut expected = HeaderMap::new();
    for (name, value) in [
        ("content-type", JSON),
        ("accept", JSON),
        ("accept-encoding", "identity"),
        ("authorization", &format!("Bearer {KEY}")),
        ("x-client-request-id", "req-1"),
        (
            "user-agent",
            concat!("tollgate/", env!("CARGO_PKG_VERSION")),
        ),
        ("host", &server.host()),
        ("content-length", &chat.body.len().to_string()),
    ] {
        expected.insert(name, value.parse().unwrap());
    }
    assert_eq!(request.headers, expected);
}

#[test]
fn a_compatible_server_may_support_fewer_formats() {
    let names = |apis: Option<&[&str]>, model: &str| {
        let apis = apis.map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let provider = open(Channel {
            apis,
            ..Channel::new("main", "openai")
        });
        let formats = provider.formats_for(model).iter();
        formats.map(|format| format.name()).collect::<Vec<_>>()
    };
    let (chat, responses) = ("chat-completions", "responses");
    for (apis, model, expected) in [
        (None, "gpt-5", &[chat, responses][..]),
        (None, "gpt-5-pro", &[responses]),
        (Some(&[chat][..]), "gpt-5", &[chat]),
        (Some(&[chat]), "gpt-5-pro", &[chat]),
        (Some(&[responses]), "gpt-5", &[responses]),
    ] {
        assert_eq!(names(apis, model), expected, "{apis:?} {model}");
    }
    for (base, expected) in [
        (None, true),
        (Some("https://api.openai.com/v1"), true),
        (Some("https://llm.example/v1"), false),
    ] {
        let provider = open(Channel {
            base_url: base.map(str::to_owned),
            ..Channel::new("main", "openai")
        });
        let capabilities = provider.model("gpt-4o").capabilities;
        assert_eq!(capabilities.rejects_unknown_fields, expected, "{base:?}");
    }
}

#[tokio::test]
async fn an_endless_error_is_read_for_a_limited_time() {
    let server = FixtureServer::start(|_| {
        let endless = stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 4096])));
        chunked(500, JSON, endless.boxed())
    })
    .await;
    let start = Instant::now();
    let chat = Chat::new("chat-completions");
    let error = chat.error(openai(server.url("/v1"))).await;
    assert_eq!(error.kind, UpstreamErrorKind::Unavailable);
    assert!(start.elapsed() < Duration::from_secs(5) && error.message.len() < 5_000);
}

#[tokio::test]
async fn connecting_the_first_byte_and_every_chunk_have_timeouts() {
    let mut chat = Chat::new("chat-completions");
    chat.stream = true;
    chat.timeouts = ChatTimeouts {
        connect: Duration::from_millis(200),
        first_byte: Duration::from_millis(300),
        idle: Duration::from_millis(200),
    };
    let error = chat.error(openai("http://127.0.0.1:1/v1".to_owned())).await;
    assert_eq!(error.kind, UpstreamErrorKind::Connect);

    // Accepts the connection and never responds.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = format!("http://{}/v1", silent.local_addr().unwrap());
    let error = chat.error(openai(silent)).await;
    let expected = (UpstreamErrorKind::TimedOut, None);
    assert_eq!((error.kind, error.status), expected);

    let server = FixtureServer::start(|request| match request.line.contains("/stalled/") {
        true => {
            let one = stream::iter([Ok(EVENT)]);
            chunked(200, EVENTS, one.chain(stream::pending()).boxed())
        }
        false => broken_off(EVENTS, EVENT),
    })
    .await;
    for (path, times_out) in [("/stalled", true), ("/broken", false)] {
        let provider = open(openai(server.url(path)));
        let mut body = chat.send(&*provider).await.unwrap();
        assert_eq!(body.chunk().await.unwrap().unwrap(), EVENT);
        match body.chunk().await.unwrap_err() {
            EgressError::TimedOut(_) => assert!(times_out),
            EgressError::Broken => assert!(!times_out),
            other => panic!("{path}: {other}"),
        }
    }
}

#[tokio::test]
async fn calls_share_connections() {
    let server = FixtureServer::start(|_| reply(200, JSON, "{}")).await;
    let provider = open(openai(server.url("/v1")));
    for _ in 0..20 {
        let response = Chat::new("chat-completions").send(&*provider).await;
        read_body(response.unwrap()).await;
    }
    assert_eq!((server.received().len(), server.connections()), (20, 1));
}
