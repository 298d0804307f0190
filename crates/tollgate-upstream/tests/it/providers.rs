//! What the providers of chat send, and what they make of answers.

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt as _};
use tollgate_upstream::egress::EgressError;
use tollgate_upstream::{Channel, ChatTimeouts, UpstreamErrorKind};

use crate::vendor::{Ask, KEY, Vendor, answer, channel, open};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream; charset=utf-8";

#[tokio::test]
async fn openai_is_asked_as_it_documents() {
    let vendor = Vendor::saying(200, JSON, "{}").await;
    let provider = open(channel("openai", vendor.url("/v1")));
    let mut ask = Ask::of("chat-completions");
    for (name, value) in [
        ("authorization", "Bearer the-clients-own"),
        ("cookie", "a=b"),
        ("openai-organization", "o"),
    ] {
        ask.headers.insert(name, value.parse().unwrap());
    }
    let reply = ask.send(&*provider).await.unwrap();
    assert_eq!(reply.collect(100).await.unwrap(), "{}");
    Ask::of("responses").send(&*provider).await.unwrap();
    let seen = vendor.seen();
    assert_eq!(seen[0].line, "POST /v1/chat/completions");
    assert_eq!(seen[1].line, "POST /v1/responses");
    assert_eq!(seen[0].body, ask.body);
    let expected = [
        ("content-type", JSON.to_owned()),
        ("accept", JSON.to_owned()),
        ("accept-encoding", "identity".to_owned()),
        ("authorization", format!("Bearer {KEY}")),
        ("x-client-request-id", "req-1".to_owned()),
        (
            "user-agent",
            concat!("tollgate/", env!("CARGO_PKG_VERSION")).to_owned(),
        ),
        ("host", vendor.host()),
        ("content-length", ask.body.len().to_string()),
    ];
    for (name, value) in &expected {
        assert_eq!(seen[0].headers[*name], value.as_str(), "{name}");
    }
    assert_eq!(
        seen[0].headers.len(),
        expected.len(),
        "{:?}",
        seen[0].headers
    );
}

#[tokio::test]
async fn a_server_like_openai_may_speak_fewer_formats() {
    let names = |apis: Option<&[&str]>, model: &str| {
        let apis = apis.map(|list| list.iter().map(|name| (*name).to_owned()).collect());
        let provider = open(Channel {
            apis,
            ..Channel::new("main", "openai")
        });
        let names: Vec<_> = provider
            .formats_for(model)
            .iter()
            .map(|f| f.name())
            .collect();
        names
    };
    assert_eq!(names(None, "gpt-5"), ["chat-completions", "responses"]);
    assert_eq!(names(None, "gpt-5-pro"), ["responses"]);
    assert_eq!(
        names(Some(&["chat-completions"]), "gpt-5"),
        ["chat-completions"]
    );
    assert_eq!(
        names(Some(&["chat-completions"]), "gpt-5-pro"),
        ["chat-completions"]
    );
    assert_eq!(names(Some(&["responses"]), "gpt-5"), ["responses"]);
    let strict = |base: Option<&str>| {
        let base_url = base.map(str::to_owned);
        let provider = open(Channel {
            base_url,
            ..Channel::new("main", "openai")
        });
        provider.model("gpt-4o").traits.rejects_unknown_fields
    };
    assert!(strict(None) && strict(Some("https://api.openai.com/v1")));
    assert!(!strict(Some("https://llm.example/v1")));
}

#[tokio::test]
async fn anthropic_is_asked_as_it_documents() {
    let vendor = Vendor::saying(200, EVENTS, "event: ping\ndata: {}\n\n").await;
    let provider = open(channel("anthropic", vendor.url("")));
    let mut ask = Ask::of("messages");
    ask.stream = true;
    ask.headers
        .append("anthropic-beta", "one-2025-01-01".parse().unwrap());
    ask.headers
        .append("anthropic-beta", "two-2025-01-01".parse().unwrap());
    ask.headers
        .insert("anthropic-version", "2025-10-01".parse().unwrap());
    ask.headers
        .insert("x-api-key", "the-clients-own".parse().unwrap());
    ask.send(&*provider).await.unwrap();
    let seen = &vendor.seen()[0];
    assert_eq!(seen.line, "POST /v1/messages");
    assert_eq!(seen.headers["x-api-key"], KEY);
    assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
    assert_eq!(seen.headers["accept"], "text/event-stream");
    let betas: Vec<_> = seen.headers.get_all("anthropic-beta").iter().collect();
    assert_eq!(betas, ["one-2025-01-01", "two-2025-01-01"]);
    assert!(!seen.headers.contains_key("authorization"));
}

#[tokio::test]
async fn gemini_is_asked_as_it_documents() {
    let vendor = Vendor::saying(200, EVENTS, "data: {}\n\n").await;
    let provider = open(channel("gemini", vendor.url("")));
    let mut ask = Ask::of("generate-content");
    ask.model = "gemini-2.5-pro";
    ask.stream = true;
    ask.send(&*provider).await.unwrap();
    let seen = &vendor.seen()[0];
    assert_eq!(
        seen.line,
        "POST /v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"
    );
    assert_eq!(seen.headers["x-goog-api-key"], KEY);
    assert!(!seen.headers.contains_key("authorization"));
}

/// What an answer of `status` with `text` is to a channel of `kind`.
async fn check(
    kind: &str,
    format: &str,
    status: u16,
    text: &'static str,
    expected: UpstreamErrorKind,
) {
    let vendor = Vendor::saying(status, JSON, text).await;
    let provider = open(channel(kind, vendor.url("/v1")));
    let error = Ask::of(format).refused(&*provider).await;
    assert_eq!(
        (error.kind, error.status),
        (expected, Some(status)),
        "{text}: {error:?}"
    );
    assert!(!error.message.is_empty());
}

#[tokio::test]
async fn refusals_are_told_apart_in_every_format() {
    use UpstreamErrorKind::*;
    for (status, text, expected) in [
        (
            400,
            r#"{"error":{"message":"bad","type":"invalid_request_error","param":"n","code":null}}"#,
            Rejected,
        ),
        (
            401,
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            KeyRejected,
        ),
        (
            403,
            r#"{"error":{"message":"no access","type":"invalid_request_error","code":"model_not_found"}}"#,
            ModelNotFound,
        ),
        (
            404,
            r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#,
            ModelNotFound,
        ),
        (
            429,
            r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
            RateLimited,
        ),
        (
            429,
            r#"{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            QuotaExhausted,
        ),
        (413, "", Rejected),
        (
            500,
            r#"{"error":{"message":"oops","type":"server_error"}}"#,
            Unavailable,
        ),
        (502, "<html><body>Bad Gateway</body></html>", Unavailable),
    ] {
        check("openai", "chat-completions", status, text, expected).await;
        check("openai", "responses", status, text, expected).await;
    }
    for (status, text, expected) in [
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}"#,
            Rejected,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            QuotaExhausted,
        ),
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"x"}}"#,
            KeyRejected,
        ),
        (
            402,
            r#"{"type":"error","error":{"type":"billing_error","message":"x"}}"#,
            QuotaExhausted,
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}"#,
            ModelNotFound,
        ),
        (
            429,
            r#"{"type":"error","error":{"type":"rate_limit_error","message":"x"}}"#,
            RateLimited,
        ),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            Unavailable,
        ),
    ] {
        check("anthropic", "messages", status, text, expected).await;
    }
    for (status, text, expected) in [
        (
            400,
            r#"{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}"#,
            Rejected,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#,
            KeyRejected,
        ),
        (
            403,
            r#"{"error":{"code":403,"message":"x","status":"PERMISSION_DENIED"}}"#,
            KeyRejected,
        ),
        (
            404,
            r#"{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}"#,
            ModelNotFound,
        ),
        (
            429,
            r#"{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}"#,
            RateLimited,
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#,
            Unavailable,
        ),
    ] {
        check("gemini", "generate-content", status, text, expected).await;
    }
}

#[tokio::test]
async fn the_upstreams_wish_to_be_left_alone_is_heard() {
    let wish = async |name: &'static str,
                      value: &'static str,
                      text: &'static str,
                      kind: &str,
                      format: &str| {
        let vendor = Vendor::start(move || {
            let mut reply = answer(429, JSON, text);
            if !name.is_empty() {
                reply.headers_mut().insert(name, value.parse().unwrap());
            }
            reply
        });
        let provider = open(channel(kind, vendor.await.url("")));
        Ask::of(format).refused(&*provider).await.retry_after
    };
    let seconds = |s| Some(Duration::from_secs(s));
    assert_eq!(
        wish("retry-after", "7", "", "openai", "responses").await,
        seconds(7)
    );
    assert_eq!(
        wish("retry-after-ms", "500", "", "anthropic", "messages").await,
        Some(Duration::from_millis(500))
    );
    let info = r#"{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17s"}]}}"#;
    assert_eq!(
        wish("", "", info, "gemini", "generate-content").await,
        seconds(17)
    );
    assert_eq!(wish("", "", "", "openai", "chat-completions").await, None);
}

#[tokio::test]
async fn neither_key_nor_host_reach_the_client() {
    // The text names the key and the host that the vendor will have: both are put in by hand.
    let words = "key sk-test-0123456789abcdef of https://127.0.0.1/v1 is bad";
    let text = r#"{"error":{"message":"key sk-test-0123456789abcdef of https://127.0.0.1/v1 is bad","code":"invalid_api_key"}}"#;
    assert!(text.contains(words) && words.contains(KEY));
    let vendor = Vendor::saying(401, JSON, text).await;
    let provider = open(channel("openai", vendor.url("/v1")));
    let error = Ask::of("chat-completions").refused(&*provider).await;
    assert_eq!(error.message, "key *** of https://upstream/v1 is bad");
    assert!(!format!("{error:?}").contains(KEY));
}

#[tokio::test]
async fn a_success_of_the_wrong_type_is_none() {
    for (stream, kind, text) in [
        (false, "text/html", "<html>sign in</html>"),
        (true, "text/html; charset=utf-8", "<html>sign in</html>"),
        (true, JSON, "{}"),
        (false, EVENTS, "data: {}\n\n"),
    ] {
        let vendor = Vendor::saying(200, kind, text).await;
        let provider = open(channel("openai", vendor.url("/v1")));
        let ask = Ask {
            stream,
            ..Ask::of("chat-completions")
        };
        let error = ask.refused(&*provider).await;
        assert_eq!(
            error.kind,
            UpstreamErrorKind::Unavailable,
            "{kind}: {error:?}"
        );
        assert!(!error.message.contains('<'), "{error:?}");
    }
    let vendor = Vendor::start(|| {
        let mut reply = answer(302, "", "");
        reply
            .headers_mut()
            .insert("location", "http://127.0.0.1:1/".parse().unwrap());
        reply
    });
    let provider = open(channel("openai", vendor.await.url("/v1")));
    let error = Ask::of("responses").refused(&*provider).await;
    assert_eq!(
        (error.kind, error.status),
        (UpstreamErrorKind::Unavailable, Some(302))
    );
}

#[tokio::test]
async fn errors_that_never_end_are_read_for_a_while() {
    let vendor = Vendor::start(|| {
        let mut reply = answer(500, JSON, "");
        *reply.body_mut() = stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 4096]))).boxed();
        reply
    })
    .await;
    let provider = open(channel("openai", vendor.url("/v1")));
    let begun = Instant::now();
    let error = Ask::of("chat-completions").refused(&*provider).await;
    assert_eq!(error.kind, UpstreamErrorKind::Unavailable);
    assert!(begun.elapsed() < Duration::from_secs(5) && error.message.len() < 5_000);
}

#[tokio::test]
async fn time_is_limited_until_connected_begun_and_between_parts() {
    let timeouts = ChatTimeouts {
        connect: Duration::from_millis(200),
        first_byte: Duration::from_millis(300),
        idle: Duration::from_millis(200),
    };
    let ask = Ask {
        stream: true,
        timeouts,
        ..Ask::of("chat-completions")
    };

    let nobody = channel("openai", "http://127.0.0.1:1/v1".to_owned());
    assert_eq!(
        ask.refused(&*open(nobody)).await.kind,
        UpstreamErrorKind::Connect
    );

    // Takes the connection and says nothing.
    let mute = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mute = channel(
        "openai",
        format!("http://{}/v1", mute.local_addr().unwrap()),
    );
    let error = ask.refused(&*open(mute)).await;
    assert_eq!(
        (error.kind, error.status),
        (UpstreamErrorKind::TimedOut, None)
    );

    let vendor = Vendor::start(|| {
        let mut reply = answer(200, EVENTS, "");
        let one = stream::once(async { Ok(Bytes::from_static(b"data: {}\n\n")) });
        *reply.body_mut() = one.chain(stream::pending()).boxed();
        reply
    });
    let provider = open(channel("openai", vendor.await.url("/v1")));
    let mut body = ask.send(&*provider).await.unwrap();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "data: {}\n\n");
    let error = body.chunk().await.unwrap_err();
    assert!(matches!(error, EgressError::TimedOut(_)), "{error}");

    let vendor = Vendor::start(|| {
        let mut reply = answer(200, EVENTS, "");
        let one = stream::once(async { Ok(Bytes::from_static(b"data: {}\n\n")) });
        let cut = stream::once(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(std::io::Error::other("gone"))
        });
        *reply.body_mut() = one.chain(cut).boxed();
        reply
    });
    let provider = open(channel("openai", vendor.await.url("/v1")));
    let mut body = ask.send(&*provider).await.unwrap();
    assert_eq!(body.chunk().await.unwrap().unwrap(), "data: {}\n\n");
    let error = body.chunk().await.unwrap_err();
    assert!(matches!(error, EgressError::Broken), "{error}");
}

#[tokio::test]
async fn many_calls_share_connections() {
    let vendor = Vendor::saying(200, JSON, "{}").await;
    let provider = open(channel("openai", vendor.url("/v1")));
    for _ in 0..20 {
        let reply = Ask::of("chat-completions").send(&*provider).await.unwrap();
        reply.collect(100).await.unwrap();
    }
    assert_eq!((vendor.seen().len(), vendor.connections()), (20, 1));
}
