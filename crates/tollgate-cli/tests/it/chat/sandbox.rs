//! The sandbox through every format: the envelope and the vendors' own shapes, directives, lists of models, counts.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::format::{ChatReply, Format};
use super::request::ChatRequest;
use crate::harness::*;

on_sqlite!(
    every_format_returns_complete_and_streamed_responses,
    a_generate_stream_without_sse_is_a_json_list,
    replies_have_the_documented_shape,
    directives_control_the_sandbox,
    token_limits_and_stop_sequences_end_the_reply,
    models_are_listed_in_each_format,
    counting_tokens_is_free,
    keys_are_accepted_in_any_header,
    cross_origin_requests_of_browsers_are_allowed,
    unknown_paths_and_methods_are_errors_of_the_format,
);
on_both!(chat_holds_are_counted_by_kind);

const MODEL: &str = "gemini-2.5-flash";
const SAY: &str = "[[sandbox:say=one two three]]";

fn request(format: Format, stream: bool, text: &str) -> ChatRequest {
    ChatRequest::of_text(format, MODEL, stream, text)
}

async fn send(client: &Client, format: Format, stream: bool, request: &ChatRequest) -> ChatReply {
    let reply = format.send(client, MODEL, stream, &request.body).await;
    reply.unwrap_or_else(|error| panic!("{format:?} {stream}: {error:?}"))
}

async fn chat_holds_are_counted_by_kind(backend: Backend) {
    let price = "[price.\"gemini-2.5-flash\"]\ninput_per_million = 1\noutput_per_million = 1";
    let gateway = Setup::new(backend).config(price).start().await;
    let client = gateway.funded_client("10").await;
    for _ in 0..3 {
        let request = request(Format::Chat, false, SAY);
        send(&client, Format::Chat, false, &request).await;
    }
    let held = async |kind: &str| {
        let name = format!("tollgate_chat_holds_total{{place=\"{kind}\"}}");
        gateway.metric(&name).await
    };
    let held = [
        held("memory").await,
        held("grant").await,
        held("database").await,
    ];
    let expected = match backend {
        Backend::Sqlite => [3.0, 0.0, 0.0],
        // The first chat of a key has a stored hold: it does not wait for a grant.
        Backend::Postgres => [0.0, 2.0, 1.0],
    };
    assert_eq!(held, expected);
    // A node returns grants that no chat has needed for some seconds.
    until_true("no grant to be left", async || {
        gateway.metric("tollgate_grants").await < 0.5
    })
    .await;
    gateway.close().await;
}

async fn every_format_returns_complete_and_streamed_responses(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    gateway.user("bare", &[]).await;
    let bare = gateway.key("bare", &["--envelope", "none"]).await;
    for (format, stream) in Format::all_and_streamed() {
        let request = request(format, stream, SAY);
        let reply = send(&client, format, stream, &request).await;
        assert_eq!(reply.text, "one two three", "{format:?}");
        let ends = ["stop", "completed", "end_turn", "STOP"];
        assert_eq!(reply.end, ends[format as usize], "{format:?}");
        assert!(reply.usage[0] > 0 && reply.usage[2] == 4, "{reply:?}");
        // The same path with the envelope, and without it for a key that has it switched off. Streams are never enveloped.
        let path = format.enveloped_path(MODEL, stream);
        if stream {
            for client in [&client, &bare] {
                let events = client.open(&path, &request.body).await.events().await;
                let reply = format.parse(&format.join(&events));
                assert_eq!(reply.text, "one two three", "{format:?}");
            }
            continue;
        }
        let wrapped = client.post(&path, &request.body).await.expect(200).json();
        let data = wrapped["data"].clone();
        assert_eq!(wrapped, json!({ "code": 200, "data": data }), "{format:?}");
        let reply = bare.post(&path, &request.body).await.expect(200).json();
        assert_eq!(format.parse(&reply).text, "one two three", "{format:?}");
    }
    // Many clients only support this path.
    let body = request(Format::Chat, false, SAY).body;
    let reply = client.post("/v1/chat/completions", &body).await;
    let reply = Format::Chat.parse(&reply.expect(200).json());
    assert_eq!(reply.text, "one two three");
    gateway.close().await;
}

/// Google's own API returns a JSON list that grows if events are not requested.
async fn a_generate_stream_without_sse_is_a_json_list(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let body = request(Format::Generate, true, SAY).body;
    for version in ["v1beta", "v1"] {
        let path = format!("/gemini/{version}/models/{MODEL}:streamGenerateContent");
        let reply = client.post(&path, &body).await.expect(200);
        assert_eq!(reply.header("content-type"), "application/json");
        let list = reply.json();
        let chunks = list.as_array().expect("a list");
        assert!(chunks.len() > 1, "{list}");
        let text = |chunk: &Value| {
            let part = &chunk["candidates"][0]["content"]["parts"][0]["text"];
            part.as_str().unwrap_or_default().to_owned()
        };
        assert_eq!(chunks.iter().map(text).collect::<String>(), "one two three");
        let last = &chunks[chunks.len() - 1];
        assert_eq!(last["candidates"][0]["finishReason"], "STOP");
        assert_eq!(last["usageMetadata"]["candidatesTokenCount"], 4);
    }
    gateway.close().await;
}

async fn replies_have_the_documented_shape(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let shapes: Vec<(Format, Value)> = cases::rows("chat_shapes");
    for (format, shape) in shapes {
        let body = request(format, false, SAY).body;
        let path = format.enveloped_path(MODEL, false);
        let data = client.post(&path, &body).await.expect(200).json()["data"].clone();
        assert_has(&data, shape);
        match format {
            Format::Chat | Format::Responses => {
                let tokens = |name: &str| data["usage"][name].as_u64().unwrap();
                let sum = tokens("prompt_tokens") + tokens("completion_tokens");
                assert_eq!(tokens("total_tokens"), sum, "{data}");
            }
            Format::Messages => {}
            Format::Generate => {
                let ratings = [
                    &data["candidates"][0]["safetyRatings"],
                    &data["promptFeedback"]["safetyRatings"],
                ];
                assert!(ratings.iter().all(|list| list.is_array()), "{data}");
                let details = &data["usageMetadata"]["promptTokensDetails"];
                assert_eq!(details[0]["modality"], "TEXT", "{data}");
            }
        }
    }
    gateway.close().await;
}

async fn directives_control_the_sandbox(backend: Backend) {
    let limits = "time_limits.chat_first_byte_s = 3\ntime_limits.chat_idle_s = 3\n";
    let (gateway, client) = TestGateway::with_config(backend, limits).await;
    let all = Format::all_and_streamed();
    join_all(all.map(|(format, stream)| check_directives(&client, format, stream))).await;
    // These directives put the channel into cooldown, or take a second: one format is enough.
    let path = Format::Chat.enveloped_path(MODEL, false);
    for (directive, status) in [("hang", 504), ("status=429", 429)] {
        let text = format!("[[sandbox:{directive}]]");
        let body = request(Format::Chat, false, &text).body;
        client.post(&path, &body).await.rejected(status, "");
    }
    gateway.close().await;
}

/// Every directive in one format.
async fn check_directives(client: &Client, format: Format, stream: bool) {
    let send_text =
        async |text: &str| send(client, format, stream, &request(format, stream, text)).await;
    for (directive, status, expected) in [
        ("fail", 502, ""),
        ("status=500", 502, ""),
        ("status=401", 502, ""),
        ("status=400", 400, ""),
        ("moderated", 400, "safety"),
    ] {
        let body = request(format, stream, &format!("[[sandbox:{directive}]]")).body;
        let error = format.send(client, MODEL, stream, &body).await;
        let (got, body) = error.expect_err(directive);
        assert_eq!(got, status, "{format:?} {directive}: {body}");
        let message = format.error(status, &serde_json::from_str(&body).unwrap());
        assert!(message.contains(expected), "{message}");
    }
    for (text, expected) in [
        ("[[sandbox:fail=2]][[sandbox:say=ok]]", "ok"),
        (
            "[[sandbox:delay=30]][[sandbox:say=late\nlines]]",
            "late\nlines",
        ),
    ] {
        assert_eq!(send_text(text).await.text, expected, "{format:?}");
    }
    let words = send_text("[[sandbox:words=17]]").await.text;
    assert_eq!(words.split_whitespace().count(), 17, "{format:?}");
    let tool = request(format, stream, "[[sandbox:tool=get_weather]]").tools();
    let reply = send(client, format, stream, &tool).await;
    assert_eq!(reply.calls.len(), 1, "{format:?}: {reply:?}");
    assert_eq!(reply.calls[0].name, "get_weather");
    assert_eq!(reply.calls[0].arguments, json!({}));
    if stream {
        let cut = request(format, true, "[[sandbox:cut=3]][[sandbox:words=20]]");
        let path = format.vendor_path(MODEL, true);
        let events = client.open(&path, &cut.body).await.events().await;
        let last = events.last().unwrap();
        assert!(format.error_event(last).is_some(), "{format:?}: {events:?}");
        assert!(
            !events.iter().any(|event| format.is_end(event)),
            "{format:?}"
        );
    }
}

async fn token_limits_and_stop_sequences_end_the_reply(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    for (format, stream) in Format::all_and_streamed() {
        let long = request(format, stream, "[[sandbox:words=200]]").max_tokens(12);
        let reply = send(&client, format, stream, &long).await;
        assert!((1..=12).contains(&reply.usage[2]), "{format:?}: {reply:?}");
        let ends = ["length", "incomplete", "max_tokens", "MAX_TOKENS"];
        assert_eq!(reply.end, ends[format as usize], "{format:?}");
        if format != Format::Responses {
            let stop = request(format, stream, "[[sandbox:say=to be or not]]").stop("or");
            let reply = send(&client, format, stream, &stop).await;
            assert_eq!(reply.text, "to be ", "{format:?}");
            let ends = ["stop", "", "stop_sequence", "STOP"];
            assert_eq!(reply.end, ends[format as usize], "{format:?}");
        }
        let schema = request(format, stream, "a town").schema();
        let text = send(&client, format, stream, &schema).await.text;
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(value["town"].is_string(), "{format:?}: {value}");
    }
    gateway.close().await;
}

async fn models_are_listed_in_each_format(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    gateway.user("bound", &[]).await;
    let models = ["--models", "gpt-5,gemini-2.5-pro"];
    let bound = gateway.key("bound", &models).await;
    for base in [
        "/openai/v1",
        "/anthropic/v1",
        "/gemini/v1beta",
        "/gemini/v1",
        "/v1beta",
    ] {
        let models = format!("{base}/models");
        let names = [
            json!([{ "id": "gemini-2.5-pro" }, { "id": "gpt-5" }]),
            json!([{ "name": "models/gemini-2.5-pro" }, { "name": "models/gpt-5" }]),
        ];
        let list = bound.get_json(&models).await;
        assert_has(&list, json!({ "data": names[0], "models": names[1] }));
        let all = client.get_json(&models).await;
        let all = all["data"].as_array().unwrap();
        let has_videos = all
            .iter()
            .any(|model| model["id"].as_str().unwrap().contains("sora"));
        assert!(all.len() > 15 && !has_videos, "{all:?}");
        let one = bound.get_json(&format!("{models}/gpt-5")).await;
        assert_eq!(one["id"], "gpt-5");
        for name in ["gpt-4o", "nothing", "sora-2"] {
            let reply = bound.get(&format!("{models}/{name}")).await;
            let error = json!({ "message": "<string>" });
            assert_has(&reply.expect(404).json(), json!({ "error": error }));
        }
        gateway.anonymous().get(&models).await.expect(401);
    }
    gateway.close().await;
}

async fn counting_tokens_is_free(backend: Backend) {
    let prices =
        "[price.\"gemini-2.5-flash\"]\ninput_per_million = 1000\noutput_per_million = 1000\n";
    let gateway = Setup::new(backend).config(prices).start().await;
    let client = gateway.funded_client("1").await;
    let text = "some words to be counted by the gateway itself";
    let message = request(Format::Messages, false, text).body;
    let content = request(Format::Generate, false, text).body;
    let wrapped = json!({"generateContentRequest": {"model": format!("models/{MODEL}"), "contents": content["contents"]}});
    let mut requests = Vec::new();
    for base in ["/v1", "/anthropic/v1"] {
        requests.push((
            format!("{base}/messages/count_tokens"),
            &message,
            "input_tokens",
        ));
    }
    for base in ["/v1beta", "/gemini/v1beta", "/gemini/v1"] {
        let path = format!("{base}/models/{MODEL}:countTokens");
        requests.push((path.clone(), &content, "totalTokens"));
        requests.push((path, &wrapped, "totalTokens"));
    }
    let mut counts = Vec::new();
    for (path, body, name) in requests {
        let reply = client.post(&path, body).await.expect(200).json();
        let count = &reply.get("data").unwrap_or(&reply)[name];
        counts.push(count.as_u64().unwrap());
    }
    let equal = counts.iter().all(|count| *count == counts[0]);
    assert!(equal && counts[0] > 8, "{counts:?}");
    assert_eq!(client.balances().await, (1.0, 0.0));
    gateway.close().await;
}

async fn keys_are_accepted_in_any_header(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let key = gateway.unlimited_client().await.secret.unwrap();
    let anonymous = gateway.anonymous();
    let bearer = format!("Bearer {key}");
    for format in Format::ALL {
        let body = request(format, false, "hi").body;
        let path = format.vendor_path(MODEL, false);
        for header in [
            ("authorization", bearer.as_str()),
            ("x-api-key", &key),
            ("x-goog-api-key", &key),
        ] {
            anonymous
                .post_with(&path, &body, &[header])
                .await
                .expect(200);
        }
        let reply = anonymous.post(&format!("{path}?key={key}"), &body).await;
        let expected = if format == Format::Generate { 200 } else { 401 };
        assert_eq!(reply.status, expected, "{format:?}");
        let invalid_key = [("x-api-key", "sk-invalid")];
        let reply = anonymous.post_with(&path, &body, &invalid_key).await;
        format.error(401, &reply.expect(401).json());
    }
    gateway.close().await;
}

async fn cross_origin_requests_of_browsers_are_allowed(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let anonymous = gateway.anonymous();
    let origin = ("origin", "https://app.example");
    let allow = "access-control-allow-origin";
    for format in Format::ALL {
        for path in format.paths(MODEL, true) {
            let headers = "authorization,content-type,x-stainless-os";
            let preflight = [origin, ("access-control-request-headers", headers)];
            let reply = anonymous.send_with("OPTIONS", &path, &preflight, "").await;
            let reply = reply.expect(204);
            assert_eq!(reply.header(allow), "*");
            assert_eq!(reply.header("access-control-allow-headers"), headers);
            assert!(
                reply
                    .header("access-control-allow-methods")
                    .contains("POST")
            );
            let body = request(format, true, "hi").body;
            let reply = client.open_with(&path, &body, &[origin]).await;
            assert_eq!(reply.headers[allow], "*", "{path}");
            // Pages may also read errors.
            let reply = anonymous.post_with(&path, &body, &[origin]).await;
            assert_eq!(reply.expect(401).header(allow), "*", "{path}");
        }
    }
    gateway.close().await;
}

async fn unknown_paths_and_methods_are_errors_of_the_format(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    for (format, base) in [
        (Format::Chat, "/openai/v1"),
        (Format::Chat, "/v1/chat"),
        (Format::Messages, "/anthropic/v1"),
        (Format::Generate, "/gemini/v1beta"),
    ] {
        let body = request(format, false, "hi").body;
        let path = format.vendor_path(MODEL, false);
        // Some SDKs have a base URL that ends with a slash.
        let doubled = path.replacen("/v1", "//v1", 1);
        client.post(&doubled, &body).await.expect(200);
        let reply = client.post(&format!("{base}/embeddings"), &json!({})).await;
        format.error(404, &reply.expect(404).json());
        let status = if format == Format::Generate { 404 } else { 405 };
        let reply = client.get(&path).await.expect(status);
        format.error(status, &reply.json());
        assert!(status == 404 || reply.header("allow").contains("POST"));
    }
    let reply = client.get("/v1/chat/completions").await.expect(405);
    Format::Chat.error(405, &reply.json());
    let body = request(Format::Generate, false, "hi").body;
    for path in [
        "gemini/v1beta/models/MODEL:embedContent",
        "v1beta/models/MODEL",
    ] {
        let path = format!("/{}", path.replace("MODEL", MODEL));
        let reply = client.post(&path, &body).await;
        assert!(
            matches!(reply.status, 404 | 405),
            "{path}: {}",
            reply.status
        );
        Format::Generate.error(reply.status, &reply.json());
    }
    gateway.close().await;
}
