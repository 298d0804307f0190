//! The sandbox through every format: the envelope and the vendors' own shapes, directives, lists of models, counts.

use futures_util::future::join_all;
use http::Method;
use http_body_util::Full;
use serde_json::{Value, json};

use super::talk::Talk;
use super::wire::{Said, Wire};
use crate::gate::{Backend, Client, Gate, Setup, on_one};

on_one!(
    every_format_whole_and_streamed,
    a_stream_as_one_list,
    shapes_of_the_specification,
    directives,
    caps_and_stops,
    lists_of_models,
    tokens_are_counted_for_free,
    keys_in_any_header,
    browsers,
    unknown_paths_and_methods,
);

const MODEL: &str = "gemini-2.5-flash";
const SAY: &str = "[[sandbox:say=one two three]]";

fn keys(value: &Value) -> Vec<&str> {
    let object = value.as_object().unwrap_or_else(|| panic!("{value}"));
    let mut keys: Vec<&str> = object.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

/// Every format, whole and streamed.
fn ways() -> impl Iterator<Item = (Wire, bool)> {
    Wire::ALL
        .into_iter()
        .flat_map(|wire| [(wire, false), (wire, true)])
}

async fn said(client: &Client, wire: Wire, stream: bool, talk: &Talk) -> Said {
    let said = wire.ask(client, MODEL, stream, &talk.body).await;
    said.unwrap_or_else(|error| panic!("{wire:?} {stream}: {error:?}"))
}

async fn every_format_whole_and_streamed(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    gate.user("bare", &[]).await;
    let bare = gate.key("bare", &["--envelope", "none"]).await;
    for (wire, stream) in ways() {
        let talk = Talk::saying(wire, MODEL, stream, SAY);
        let ends = ["stop", "completed", "end_turn", "STOP"];
        let answer = said(&client, wire, stream, &talk).await;
        assert_eq!(answer.text, "one two three", "{wire:?}");
        assert_eq!(answer.end, ends[wire as usize], "{wire:?}");
        assert_eq!(answer.usage[2], 4, "{wire:?}: {:?}", answer.usage);
        assert!(answer.usage[0] > 0, "{wire:?}: {:?}", answer.usage);
        // The same path in the envelope, and bare for a key that wants it so. Streams are never wrapped.
        let path = wire.spec_path(MODEL, stream);
        if stream {
            for client in [&client, &bare] {
                let events = client.open(&path, &talk.body).await.events().await;
                assert_eq!(
                    wire.said(&wire.folded(&events)).text,
                    "one two three",
                    "{wire:?}"
                );
            }
            continue;
        }
        let wrapped = client.post(&path, &talk.body).await.expect(200).json();
        assert_eq!(keys(&wrapped), ["code", "data"], "{wire:?}");
        assert_eq!(wrapped["code"], 200);
        let reply = bare.post(&path, &talk.body).await.expect(200).json();
        assert_eq!(wire.said(&reply).text, "one two three", "{wire:?}: {reply}");
    }
    // What many clients know as the only address.
    let talk = Talk::saying(Wire::Chat, MODEL, false, SAY);
    let reply = client
        .post("/v1/chat/completions", &talk.body)
        .await
        .expect(200)
        .json();
    assert_eq!(Wire::Chat.said(&reply).text, "one two three");
    gate.close().await;
}

/// What Google's own API answers where nobody asks for events: a JSON list that grows.
async fn a_stream_as_one_list(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let talk = Talk::saying(Wire::Generate, MODEL, true, SAY);
    for version in ["v1beta", "v1"] {
        let path = format!("/gemini/{version}/models/{MODEL}:streamGenerateContent");
        let reply = client.post(&path, &talk.body).await.expect(200);
        assert_eq!(reply.header("content-type"), "application/json");
        let pieces = reply.json();
        let pieces = pieces.as_array().expect("a list");
        assert!(pieces.len() > 1, "{pieces:?}");
        let text = |piece: &Value| {
            let part = &piece["candidates"][0]["content"]["parts"][0]["text"];
            part.as_str().unwrap_or_default().to_owned()
        };
        let said: String = pieces.iter().map(text).collect();
        assert_eq!(said, "one two three");
        let last = &pieces[pieces.len() - 1];
        assert_eq!(last["candidates"][0]["finishReason"], "STOP");
        assert_eq!(last["usageMetadata"]["candidatesTokenCount"], 4);
    }
    gate.close().await;
}

async fn shapes_of_the_specification(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let data = async |wire: Wire| {
        let talk = Talk::saying(wire, MODEL, false, SAY);
        let reply = client.post(&wire.spec_path(MODEL, false), &talk.body).await;
        reply.expect(200).json()["data"].clone()
    };
    for wire in [Wire::Chat, Wire::Responses] {
        let data = data(wire).await;
        assert!(data["id"].is_string() && data["created"].is_u64(), "{data}");
        let object = if wire == Wire::Chat {
            "chat.completion"
        } else {
            "response"
        };
        assert_eq!(
            (&data["object"], &data["model"]),
            (&json!(object), &json!(MODEL))
        );
        let choice = &data["choices"][0];
        assert_eq!(choice["index"], 0);
        assert_eq!(choice["message"]["role"], "assistant");
        assert_eq!(choice["message"]["content"], "one two three");
        assert_eq!(choice["finish_reason"], "stop");
        let usage = &data["usage"];
        let sum =
            usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], sum, "{usage}");
    }
    let message = data(Wire::Messages).await;
    assert!(message["id"].is_string());
    assert_eq!(
        (&message["type"], &message["role"]),
        (&json!("message"), &json!("assistant"))
    );
    assert_eq!(
        message["content"],
        json!([{"type": "text", "text": "one two three"}])
    );
    assert_eq!(
        (&message["model"], &message["stop_reason"]),
        (&json!(MODEL), &json!("end_turn"))
    );
    assert_eq!(message["stop_sequence"], Value::Null);
    assert!(keys(&message).contains(&"stop_sequence"));
    assert!(
        message["usage"]["input_tokens"].is_u64() && message["usage"]["output_tokens"].is_u64()
    );
    let content = data(Wire::Generate).await;
    let candidate = &content["candidates"][0];
    assert_eq!(
        candidate["content"],
        json!({"role": "model", "parts": [{"text": "one two three"}]})
    );
    assert_eq!(
        (&candidate["finishReason"], &candidate["index"]),
        (&json!("STOP"), &json!(0))
    );
    assert!(candidate["safetyRatings"].is_array(), "{candidate}");
    assert!(
        content["promptFeedback"]["safetyRatings"].is_array(),
        "{content}"
    );
    let usage = &content["usageMetadata"];
    for name in [
        "promptTokenCount",
        "candidatesTokenCount",
        "totalTokenCount",
        "thoughtsTokenCount",
    ] {
        assert!(usage[name].is_u64(), "{name}: {usage}");
    }
    assert_eq!(
        usage["promptTokensDetails"][0]["modality"], "TEXT",
        "{usage}"
    );
    gate.close().await;
}

async fn directives(backend: Backend) {
    let limits = "time_limits.chat_first_byte_s = 3\ntime_limits.chat_idle_s = 3\n";
    let gate = Setup::new(backend).config(limits).start().await;
    let client = gate.somebody().await;
    let asking = ways().map(|(wire, stream)| obeyed(&client, wire, stream));
    join_all(asking).await;
    // It costs a second: one format is enough, whose errors have the same words as all.
    let hang = Talk::saying(Wire::Chat, MODEL, false, "[[sandbox:hang]]");
    let reply = client
        .post(&Wire::Chat.spec_path(MODEL, false), &hang.body)
        .await;
    reply.error(504, "bad_gateway");
    // Only 429 passes as it is, and rests what was asked: for another format it is the same.
    let limited = Talk::saying(Wire::Chat, MODEL, false, "[[sandbox:status=429]]");
    let reply = client
        .post(&Wire::Chat.spec_path(MODEL, false), &limited.body)
        .await;
    reply.error(429, "rate_limit_error");
    gate.close().await;
}

/// Every directive in one format.
async fn obeyed(client: &Client, wire: Wire, stream: bool) {
    let name = format!("{wire:?} {stream}");
    let talk = |text: &str| Talk::saying(wire, MODEL, stream, text);
    for (text, status) in [
        ("[[sandbox:fail]]", 502),
        ("[[sandbox:status=500]]", 502),
        ("[[sandbox:status=401]]", 502),
        ("[[sandbox:status=400]]", 400),
        ("[[sandbox:moderated]]", 400),
    ] {
        let refused = wire.ask(client, MODEL, stream, &talk(text).body).await;
        let (got, body) = refused.expect_err(text);
        assert_eq!(got, status, "{name} {text}: {body}");
        let message = wire.error(status, &serde_json::from_str(&body).unwrap());
        assert!(
            !text.contains("moderated") || message.contains("safety"),
            "{message}"
        );
    }
    let again = said(
        client,
        wire,
        stream,
        &talk("[[sandbox:fail=2]][[sandbox:say=ok]]"),
    )
    .await;
    assert_eq!(again.text, "ok", "{name}");
    let late = said(
        client,
        wire,
        stream,
        &talk("[[sandbox:delay=30]][[sandbox:say=late\nlines]]"),
    )
    .await;
    assert_eq!(late.text, "late\nlines", "{name}");
    let words = said(client, wire, stream, &talk("[[sandbox:words=17]]")).await;
    assert_eq!(words.text.split_whitespace().count(), 17, "{name}");
    let call = said(
        client,
        wire,
        stream,
        &talk("[[sandbox:tool=get_weather]]").tools(),
    )
    .await;
    assert_eq!(call.calls.len(), 1, "{name}: {call:?}");
    assert_eq!(
        (call.calls[0].name.as_str(), &call.calls[0].arguments),
        ("get_weather", &json!({}))
    );
    if stream {
        let cut = talk("[[sandbox:cut=3]][[sandbox:words=20]]");
        let mut reply = client.open(&wire.bare_path(MODEL, true), &cut.body).await;
        let events = reply.events().await;
        assert!(
            wire.error_event(events.last().unwrap()).is_some(),
            "{name}: {events:?}"
        );
        assert!(!events.iter().any(|event| wire.is_end(event)), "{name}");
    }
}

async fn caps_and_stops(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let capped = ["length", "incomplete", "max_tokens", "MAX_TOKENS"];
    let stopped = ["stop", "", "stop_sequence", "STOP"];
    for (wire, stream) in ways() {
        let talk = Talk::saying(wire, MODEL, stream, "[[sandbox:words=200]]").cap(12);
        let answer = said(&client, wire, stream, &talk).await;
        assert!((1..=12).contains(&answer.usage[2]), "{wire:?}: {answer:?}");
        assert_eq!(answer.end, capped[wire as usize], "{wire:?}");
        if wire != Wire::Responses {
            let talk = Talk::saying(wire, MODEL, stream, "[[sandbox:say=to be or not]]").stop("or");
            let answer = said(&client, wire, stream, &talk).await;
            assert_eq!(answer.text, "to be ", "{wire:?}");
            assert_eq!(answer.end, stopped[wire as usize], "{wire:?}");
        }
        let talk = Talk::saying(wire, MODEL, stream, "a town").schema();
        let answer: Value =
            serde_json::from_str(&said(&client, wire, stream, &talk).await.text).unwrap();
        assert!(answer["town"].is_string(), "{wire:?}: {answer}");
    }
    gate.close().await;
}

async fn lists_of_models(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    gate.user("bound", &[]).await;
    let bound = gate
        .key("bound", &["--models", "gpt-5,gemini-2.5-pro"])
        .await;
    for path in [
        "/openai/v1",
        "/anthropic/v1",
        "/gemini/v1beta",
        "/gemini/v1",
        "/v1beta",
    ] {
        let models = format!("{path}/models");
        let list = bound.get(&models).await.expect(200).json();
        let named = |list: &Value, name: &str, part: &str| -> Vec<String> {
            let list = list[name]
                .as_array()
                .unwrap_or_else(|| panic!("{list}"))
                .iter();
            list.map(|model| model[part].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(
            named(&list, "data", "id"),
            ["gemini-2.5-pro", "gpt-5"],
            "{path}"
        );
        assert_eq!(
            named(&list, "models", "name"),
            ["models/gemini-2.5-pro", "models/gpt-5"],
            "{path}"
        );
        let all = client.get(&models).await.expect(200).json();
        let all = named(&all, "data", "id");
        assert!(
            all.len() > 15 && !all.iter().any(|id| id.contains("sora")),
            "{all:?}"
        );
        let one = bound
            .get(&format!("{models}/gpt-5"))
            .await
            .expect(200)
            .json();
        assert_eq!(one["id"], "gpt-5");
        for name in ["gpt-4o", "nothing", "sora-2"] {
            let gone = bound
                .get(&format!("{models}/{name}"))
                .await
                .expect(404)
                .json();
            assert!(gone["error"]["message"].is_string(), "{gone}");
        }
        gate.nobody().get(&models).await.expect(401);
    }
    gate.close().await;
}

async fn tokens_are_counted_for_free(backend: Backend) {
    let prices =
        "[price.\"gemini-2.5-flash\"]\ninput_per_million = 1000\noutput_per_million = 1000\n";
    let gate = Setup::new(backend).config(prices).start().await;
    let client = gate.somebody_with("payer", &["--balance", "1"]).await;
    let words = "some words to be counted by the gateway itself";
    let message = Talk::saying(Wire::Messages, MODEL, false, words).body;
    let content = Talk::saying(Wire::Generate, MODEL, false, words).body;
    let mut counts = Vec::new();
    for path in [
        "/v1/messages/count_tokens",
        "/anthropic/v1/messages/count_tokens",
    ] {
        let reply = client.post(path, &message).await.expect(200).json();
        let reply = reply.get("data").cloned().unwrap_or(reply);
        counts.push(reply["input_tokens"].as_u64().unwrap());
    }
    for mount in ["/v1beta", "/gemini/v1beta", "/gemini/v1"] {
        let path = format!("{mount}/models/{MODEL}:countTokens");
        let wrapped = json!({"generateContentRequest": {"model": format!("models/{MODEL}"), "contents": content["contents"]}});
        for body in [&content, &wrapped] {
            let reply = client.post(&path, body).await.expect(200).json();
            let reply = reply.get("data").cloned().unwrap_or(reply);
            counts.push(reply["totalTokens"].as_u64().unwrap());
        }
    }
    assert!(
        counts.iter().all(|count| *count == counts[0]) && counts[0] > 8,
        "{counts:?}"
    );
    assert_eq!(client.purse().await, (1.0, 0.0));
    gate.close().await;
}

async fn keys_in_any_header(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let key = client.secret.clone().unwrap();
    let nobody = gate.nobody();
    for wire in Wire::ALL {
        let talk = Talk::saying(wire, MODEL, false, "hi");
        let path = wire.bare_path(MODEL, false);
        let bearer = format!("Bearer {key}");
        for (name, value) in [
            ("authorization", &bearer),
            ("x-api-key", &key),
            ("x-goog-api-key", &key),
        ] {
            nobody
                .post_with(&path, &talk.body, &[(name, value)])
                .await
                .expect(200);
        }
        let refused = nobody.post(&format!("{path}?key={key}"), &talk.body).await;
        let expected = if wire == Wire::Generate { 200 } else { 401 };
        assert_eq!(refused.status, expected, "{wire:?}");
        let wrong = nobody
            .post_with(&path, &talk.body, &[("x-api-key", "sk-wrong")])
            .await;
        wire.error(401, &wrong.expect(401).json());
    }
    gate.close().await;
}

async fn browsers(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    for wire in Wire::ALL {
        for path in [wire.spec_path(MODEL, true), wire.bare_path(MODEL, true)] {
            let asked = "authorization,content-type,x-stainless-os";
            let request = gate.nobody().request(Method::OPTIONS, &path);
            let request = request.header("origin", "https://app.example");
            let request = request.header("access-control-request-headers", asked);
            let reply = client
                .send(request.body(Full::default()).unwrap())
                .await
                .expect(204);
            assert_eq!(reply.header("access-control-allow-origin"), "*");
            assert_eq!(reply.header("access-control-allow-headers"), asked);
            assert!(
                reply
                    .header("access-control-allow-methods")
                    .contains("POST")
            );
            let talk = Talk::saying(wire, MODEL, true, "hi");
            let origin = [("origin", "https://app.example")];
            let reply = client.open_with(&path, &talk.body, &origin).await;
            let allowed = reply.headers.get("access-control-allow-origin");
            assert!(
                allowed.is_some_and(|any| any == "*"),
                "{path}: {:?}",
                reply.headers
            );
            // Nor is an error kept from a page.
            let reply = gate.nobody().post_with(&path, &talk.body, &origin).await;
            let reply = reply.expect(401);
            assert_eq!(reply.header("access-control-allow-origin"), "*", "{path}");
        }
    }
    gate.close().await;
}

async fn unknown_paths_and_methods(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    for (wire, mount) in [
        (Wire::Chat, "/openai/v1"),
        (Wire::Messages, "/anthropic/v1"),
        (Wire::Generate, "/gemini/v1beta"),
    ] {
        let talk = Talk::saying(wire, MODEL, false, "hi");
        let path = wire.bare_path(MODEL, false);
        // SDKs whose base URL ends with a slash.
        let doubled = path.replacen("/v1", "//v1", 1);
        client.post(&doubled, &talk.body).await.expect(200);
        let reply = client
            .post(&format!("{mount}/embeddings"), &json!({}))
            .await;
        wire.error(404, &reply.expect(404).json());
        let reply = client.get(&path).await;
        if wire == Wire::Generate {
            wire.error(404, &reply.expect(404).json());
        } else {
            wire.error(405, &reply.clone().expect(405).json());
            assert!(reply.header("allow").contains("POST"));
        }
    }
    let talk = Talk::saying(Wire::Generate, MODEL, false, "hi").body;
    for path in [
        format!("/gemini/v1beta/models/{MODEL}:embedContent"),
        format!("/v1beta/models/{MODEL}"),
    ] {
        let reply = client.post(&path, &talk).await;
        assert!(
            matches!(reply.status, 404 | 405),
            "{path}: {}",
            reply.status
        );
        Wire::Generate.error(reply.status, &reply.json());
    }
    gate.close().await;
}
