//! Requests that are rejected: each rule of each format, with the format's own errors, on the enveloped paths and the vendors'.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::format::Format::{self, Chat, Generate, Responses};
use super::request::ChatRequest;
use crate::harness::*;

on_sqlite!(
    fields_are_rejected,
    bodies_are_rejected,
    limits_reject_with_429,
    errors_have_the_error_type_of_their_path,
);

const MODEL: &str = "gemini-2.5-flash";

/// Sets a member by its path, `a.b.0.c`.
fn set(body: &mut Value, path: &str, value: Value) {
    fn step<'a>(at: &'a mut Value, step: &str) -> &'a mut Value {
        match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        }
    }
    *path.split('.').fold(body, step) = value;
}

/// The type or status word of an error.
fn kind(format: Format, body: &Value) -> &str {
    let word = match format {
        Generate => &body["error"]["status"],
        _ => &body["error"]["type"],
    };
    word.as_str().unwrap_or_else(|| panic!("{body}"))
}

async fn fields_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let rows: Vec<(Format, String, Value, String)> = cases::rows("chat_fields_rejected");
    for (format, field, value, word) in rows {
        let mut request = ChatRequest::of_text(format, MODEL, false, "[[sandbox:say=ok]]");
        set(&mut request.body, &field, value.clone());
        for path in format.paths(MODEL, false) {
            eprintln!("{path}: {field} = {value}");
            let body = client.post(&path, &request.body).await.expect(400).json();
            let expected = match format {
                Generate => "INVALID_ARGUMENT",
                _ => "invalid_request_error",
            };
            assert_eq!(kind(format, &body), expected, "{body}");
            let message = format.error(400, &body).replace('_', "").to_lowercase();
            let name = match word.as_str() {
                "-" => "",
                "" => field.rsplit('.').next().unwrap(),
                word => word,
            };
            assert!(message.contains(&name.replace('_', "")), "{message}");
        }
    }
    gateway.close().await;
}

async fn bodies_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
    for format in Format::ALL {
        let valid = ChatRequest::of_text(format, MODEL, false, "hi").body;
        let mut nested = valid.clone();
        nested["metadata"] = serde_json::from_str(&deep).unwrap();
        let (valid, nested) = (valid.to_string(), nested.to_string());
        let mut invalid_utf8 = valid.clone().into_bytes();
        invalid_utf8[valid.find("\"hi").unwrap() + 1] = 0xff;
        for path in format.paths(MODEL, false) {
            let text = ["", "{", "[]", "7", "null", "hello", &nested].map(str::as_bytes);
            for body in text.into_iter().chain([&invalid_utf8[..]]) {
                eprintln!("{path} {:?}", body.escape_ascii().to_string());
                let reply = client.post_bytes(&path, "application/json", body).await;
                format.error(400, &reply.expect(400).json());
            }
            let reply = client.post_bytes(&path, "text/plain", valid.as_bytes());
            format.error(400, &reply.await.expect(400).json());
            let odd = "Application/JSON; charset=utf-8";
            let reply = client.post_bytes(&path, odd, valid.as_bytes());
            reply.await.expect(200);
            // One byte over the limit: the gateway responds before it has the body.
            let mut raw = gateway.raw().await;
            let head = client.raw_head(&path, "Content-Type: application/json\r\nContent-Length: 67108865\r\nExpect: 100-continue\r\n");
            raw.write(head.as_bytes()).await;
            let (status, _, body) = raw.response().await.expect("a response");
            assert_eq!(status, 413, "{path}");
            let message = format.error(413, &serde_json::from_slice(&body).unwrap());
            assert!(message.contains("67108864"), "{message}");
        }
    }
    gateway.close().await;
}

async fn limits_reject_with_429(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.user("busy", &[]).await;
    for format in Format::ALL {
        let request = ChatRequest::of_text(format, MODEL, true, "hi");
        let path = format.enveloped_path(MODEL, true);
        let few = gateway.key("busy", &["--rpm", "1"]).await;
        assert_eq!(few.open(&path, &request.body).await.status, 200);
        check_429(format, &few.post(&path, &request.body).await);

        let single = gateway.key("busy", &["--max-concurrency", "1"]).await;
        let long = ChatRequest::of_text(format, MODEL, true, "[[sandbox:words=1000000]]")
            // More tokens than the buffers of a connection hold.
            .max_tokens(100_000);
        let mut first = single.open(&path, &long.body).await;
        assert_eq!(first.status, 200);
        // The client reads no further events, so the request stays in flight.
        assert!(first.event().await.is_some());
        check_429(format, &single.post(&path, &request.body).await);
        drop(first);
        let is_free = async || single.post(&path, &request.body).await.status == 200;
        until_true("a free permit", is_free).await;
    }
    gateway.close().await;
}

#[track_caller]
fn check_429(format: Format, reply: &Reply) {
    let body = reply.clone().expect(429).json();
    format.error(429, &body);
    let expected = match format {
        Generate => "RESOURCE_EXHAUSTED",
        _ => "rate_limit_error",
    };
    assert_eq!(kind(format, &body), expected, "{body}");
    for name in [
        "retry-after",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ] {
        let value = reply.header(name);
        assert!(value.parse::<u64>().is_ok(), "{name}: {value}");
    }
}

async fn errors_have_the_error_type_of_their_path(backend: Backend) {
    let prices = "[price.\"gemini-2.5-flash\"]\noutput_per_million = 1000\n";
    let (gateway, client) = TestGateway::with_config(backend, prices).await;
    let poor = gateway.funded_client("0").await;
    gateway.user("bound", &[]).await;
    let bound = gateway.key("bound", &["--models", "gpt-5"]).await;
    let anonymous = gateway.anonymous();
    let unknown = "sk-nobody-has-this-key-0123456789abcdef".to_owned();
    let stranger = gateway.client(Some(unknown), String::new());
    let check = async |status: u16, format: Format, word: String, path: usize| {
        let (client, model, text, expected) = match status {
            200 => (&bound, "gpt-5", "hi", ""),
            400 => (
                &client,
                "gpt-image-2-official",
                "hi",
                "/v1/images/generations",
            ),
            401 if word.is_empty() => (&stranger, MODEL, "hi", ""),
            401 => (&anonymous, MODEL, "hi", ""),
            402 => (&poor, MODEL, "hi", ""),
            403 => (&bound, MODEL, "hi", ""),
            404 => (&client, "no-such-model", "hi", "no-such-model"),
            _ => (&client, MODEL, "[[sandbox:fail]]", ""),
        };
        let body = ChatRequest::of_text(format, model, false, text).body;
        let url = &format.paths(model, false)[path];
        let body = client.post(url, &body).await.expect(status).json();
        if status == 200 {
            return;
        }
        let message = format.error(status, &body);
        assert!(message.contains(expected), "{message}");
        if !word.is_empty() {
            assert_eq!(kind(format, &body), word, "{url} {status}: {body}");
        }
        if path == 0 && status > 400 && matches!(format, Chat | Responses) {
            assert_has(&body, json!({ "error": { "code": status } }));
        }
    };
    let rows: Vec<(u16, Format, String, String)> = cases::rows("chat_errors");
    let both = |(status, format, one, two)| [(status, format, one, 0), (status, format, two, 1)];
    let all = rows.into_iter().flat_map(both);
    let checks = all.map(|(status, format, word, path)| check(status, format, word, path));
    join_all(checks).await;
    gateway.close().await;
}
