//! Requests that are refused: each rule of each format, in the format's own words, on the enveloped paths and the vendors'.

use futures_util::future::join_all;
use http::Method;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};

use super::talk::Talk;
use super::wire::Wire::{self, Chat, Generate, Messages, Responses};
use crate::bad::head;
use crate::gate::{Backend, Client, Gate, Reply, Setup, on_one, until};

on_one!(
    ranges_and_types,
    who_and_which_model,
    bodies_that_are_none,
    limits,
    errors_in_every_place,
);

const MODEL: &str = "gemini-2.5-flash";

/// Sets a member by its path, `a.b.0.c`.
fn set(body: &mut Value, path: &str, value: Value) {
    let mut at = body;
    for step in path.split('.') {
        at = match step.parse::<usize>() {
            Ok(index) => &mut at[index],
            Err(_) => &mut at[step],
        };
    }
    *at = value;
}

/// A field, a value that breaks its rule, and a word that the message must hold, if not the field's last name.
type Rule = (&'static str, Value, &'static str);

fn rules(wire: Wire) -> Vec<Rule> {
    match wire {
        Chat => vec![
            ("model", json!(7), ""),
            ("model", Value::Null, ""),
            ("messages", Value::Null, ""),
            ("messages", json!([]), ""),
            ("messages", json!("hi"), ""),
            ("messages.0.role", json!("wizard"), "role"),
            ("messages.0.content", json!(7), "content"),
            ("temperature", json!(2.1), ""),
            ("temperature", json!(-0.1), ""),
            ("temperature", json!("1"), ""),
            ("top_p", json!(1.1), ""),
            ("max_tokens", json!(0), ""),
            ("max_tokens", json!(1.5), ""),
            ("max_tokens", json!("5"), ""),
            ("stream", json!("true"), ""),
            ("frequency_penalty", json!(2.5), ""),
            ("presence_penalty", json!(-2.5), ""),
            ("stop", json!(["a", "b", "c", "d", "e"]), ""),
            ("stop", json!([1]), ""),
            ("n", json!(0), ""),
            ("n", json!("1"), ""),
            ("n", json!(1.5), ""),
        ],
        Responses => vec![
            ("model", json!([]), ""),
            ("input", Value::Null, ""),
            ("input", json!(7), ""),
            ("input.0.role", json!("wizard"), "role"),
            ("temperature", json!(2.1), ""),
            ("top_p", json!(-0.1), ""),
            ("max_tokens", json!(0), ""),
            ("max_output_tokens", json!("7"), ""),
            ("stream", json!(1), ""),
            ("tools", json!({}), ""),
            (
                "tools",
                json!([{"type": "function", "function": {"description": "no name"}}]),
                "name",
            ),
        ],
        Messages => vec![
            ("model", Value::Null, ""),
            ("messages", Value::Null, ""),
            ("messages", json!([]), ""),
            ("messages.0.role", json!("wizard"), "role"),
            ("max_tokens", json!(0), ""),
            ("max_tokens", json!("5"), ""),
            ("temperature", json!(1.1), ""),
            ("top_p", json!(2), ""),
            ("top_k", json!("5"), ""),
            ("stop_sequences", json!(["a", "b", "c", "d", "e"]), ""),
            ("stream", json!("yes"), ""),
            ("system", json!(7), ""),
            ("tools", json!([{"description": "no name"}]), "name"),
            ("tool_choice", json!({"type": "perhaps"}), ""),
        ],
        Generate => vec![
            ("contents", Value::Null, ""),
            ("contents", json!([]), ""),
            ("contents", json!(7), ""),
            ("contents.0.role", json!("wizard"), "role"),
            ("contents.0.parts", json!("hi"), "parts"),
            (
                "generationConfig",
                json!({"temperature": 2.1}),
                "temperature",
            ),
            ("generationConfig", json!({"topP": 1.1}), ""),
            ("generationConfig", json!({"maxOutputTokens": "many"}), ""),
            ("generationConfig", json!({"stopSequences": 7}), ""),
        ],
    }
}

/// The type or status word of an error of 400 on the enveloped path.
fn kind(wire: Wire, body: &Value) -> &str {
    let word = if wire == Generate {
        &body["error"]["status"]
    } else {
        &body["error"]["type"]
    };
    word.as_str().unwrap_or_else(|| panic!("{body}"))
}

async fn ranges_and_types(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let mut taken = Vec::new();
    for wire in Wire::ALL {
        for (field, value, word) in rules(wire) {
            let mut talk = Talk::saying(wire, MODEL, false, "[[sandbox:say=ok]]");
            set(&mut talk.body, field, value.clone());
            for path in [wire.spec_path(MODEL, false), wire.bare_path(MODEL, false)] {
                let reply = client.post(&path, &talk.body).await;
                if reply.status != 400 {
                    taken.push(format!(
                        "{path}: {field} = {value}: {} {}",
                        reply.status,
                        reply.text()
                    ));
                    continue;
                }
                let body = reply.json();
                let expected = if wire == Generate {
                    "INVALID_ARGUMENT"
                } else {
                    "invalid_request_error"
                };
                assert_eq!(kind(wire, &body), expected, "{path}: {body}");
                let message = wire.error(400, &body);
                let name = if word.is_empty() {
                    field.split('.').next_back().unwrap()
                } else {
                    word
                };
                let snake = message.replace('_', "").to_lowercase();
                if field != "generationConfig" && !snake.contains(&name.replace('_', "")) {
                    taken.push(format!(
                        "{path}: {field} = {value}: names no {name}: {message}"
                    ));
                }
            }
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n"));
    gate.close().await;
}

/// What comes for a request to the model of that name.
async fn asked(client: &Client, wire: Wire, path: &str, model: &str) -> Reply {
    let path = path.replace(MODEL, model);
    client
        .post(&path, &Talk::saying(wire, model, false, "hi").body)
        .await
}

async fn who_and_which_model(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    gate.user("bound", &[]).await;
    let bound = gate.key("bound", &["--models", "gpt-5"]).await;
    let nobody = gate.nobody();
    let stranger = gate.client(
        Some("sk-nobody-has-this-key-0123456789abcdef".to_owned()),
        String::new(),
    );
    for wire in Wire::ALL {
        for path in [wire.spec_path(MODEL, false), wire.bare_path(MODEL, false)] {
            let message = wire.error(
                404,
                &asked(&client, wire, &path, "no-such-model")
                    .await
                    .expect(404)
                    .json(),
            );
            assert!(message.contains("no-such-model"), "{message}");
            let image = asked(&client, wire, &path, "gpt-image-2-official")
                .await
                .expect(400)
                .json();
            let message = wire.error(400, &image);
            assert!(message.contains("/v1/images/generations"), "{message}");
            wire.error(
                403,
                &asked(&bound, wire, &path, MODEL).await.expect(403).json(),
            );
            asked(&bound, wire, &path, "gpt-5").await.expect(200);
            for client in [&nobody, &stranger] {
                let reply = asked(client, wire, &path, MODEL).await;
                wire.error(401, &reply.expect(401).json());
            }
        }
    }
    gate.close().await;
}

/// POST of these bytes.
async fn bytes(client: &Client, path: &str, content_type: &str, body: &[u8]) -> Reply {
    let request = client
        .request(Method::POST, path)
        .header(CONTENT_TYPE, content_type);
    client
        .send(request.body(body.to_vec().into()).unwrap())
        .await
}

async fn bodies_that_are_none(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let deep = format!("{}{}", "[".repeat(80), "]".repeat(80));
    for wire in Wire::ALL {
        let good = Talk::saying(wire, MODEL, false, "hi").body;
        let mut nested = good.clone();
        nested["metadata"] = serde_json::from_str(&deep).unwrap();
        let mut broken = good.to_string().into_bytes();
        let at = broken.windows(2).position(|two| two == b"hi").unwrap();
        broken[at] = 0xff;
        for path in [wire.spec_path(MODEL, false), wire.bare_path(MODEL, false)] {
            for body in [
                &b""[..],
                b"{",
                b"[]",
                b"7",
                b"null",
                b"hello",
                &broken,
                nested.to_string().as_bytes(),
            ] {
                let reply = bytes(&client, &path, "application/json", body).await;
                let shown = String::from_utf8_lossy(body).into_owned();
                assert_eq!(reply.status, 400, "{path} {shown}: {}", reply.text());
                wire.error(400, &reply.json());
            }
            let reply = bytes(&client, &path, "text/plain", good.to_string().as_bytes()).await;
            wire.error(400, &reply.expect(400).json());
            let odd = bytes(
                &client,
                &path,
                "Application/JSON; charset=utf-8",
                good.to_string().as_bytes(),
            )
            .await;
            odd.expect(200);
            // One byte more than may come: said before it comes.
            let mut raw = gate.raw().await;
            let declared = "Content-Length: 67108865\r\nExpect: 100-continue\r\n";
            raw.write(head(&client, &path, declared).as_bytes()).await;
            let (status, _, body) = raw.answer().await.expect("an answer before the body");
            assert_eq!(status, 413, "{path}");
            let told = wire.error(413, &serde_json::from_slice(&body).unwrap());
            assert!(told.contains("67108864"), "{told}");
        }
    }
    gate.close().await;
}

async fn limits(backend: Backend) {
    let gate = Setup::new(backend).start().await;
    gate.user("busy", &[]).await;
    for wire in Wire::ALL {
        let talk = Talk::saying(wire, MODEL, true, "hi");
        let path = wire.spec_path(MODEL, true);
        let few = gate.key("busy", &["--rpm", "1"]).await;
        assert_eq!(few.open(&path, &talk.body).await.status, 200);
        let refused = few.post(&path, &talk.body).await;
        check_limit(wire, &refused);

        let single = gate.key("busy", &["--max-concurrency", "1"]).await;
        let long = Talk::saying(wire, MODEL, true, "[[sandbox:words=1000000]]");
        let mut first = single.open(&path, &long.body).await;
        assert_eq!(first.status, 200);
        // Nobody reads on: it stays in flight.
        assert!(first.event().await.is_some());
        check_limit(wire, &single.post(&path, &talk.body).await);
        drop(first);
        until("room for another", async || {
            (single.post(&path, &talk.body).await.status == 200).then_some(())
        })
        .await;
    }
    gate.close().await;
}

#[track_caller]
fn check_limit(wire: Wire, refused: &Reply) {
    let body = refused.clone().expect(429).json();
    wire.error(429, &body);
    let expected = if wire == Generate {
        "RESOURCE_EXHAUSTED"
    } else {
        "rate_limit_error"
    };
    assert_eq!(kind(wire, &body), expected, "{body}");
    for name in [
        "retry-after",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    ] {
        assert!(
            refused.header(name).parse::<u64>().is_ok(),
            "{name}: {:?}",
            refused.headers
        );
    }
}

/// The words for each status, on the enveloped path and on the vendor's own.
async fn errors_in_every_place(backend: Backend) {
    let prices = "[price.\"gemini-2.5-flash\"]\noutput_per_million = 1000\n";
    let gate = Setup::new(backend).config(prices).start().await;
    let client = gate.somebody().await;
    let poor = gate.somebody_with("poor", &["--balance", "0"]).await;
    gate.user("bound", &[]).await;
    let bound = gate.key("bound", &["--models", "gpt-5"]).await;
    let nobody = gate.nobody();
    let words = |wire, status| match (wire, status) {
        (Messages, 401) => ["authentication_error", "authentication_error"],
        (Messages, 402) => ["invalid_request_error", "billing_error"],
        (Messages, 403) => ["authentication_error", "permission_error"],
        (Messages, 404) => ["invalid_request_error", "not_found_error"],
        (Messages, _) => ["api_error", "api_error"],
        (Generate, 401) => ["UNAUTHENTICATED"; 2],
        (Generate, 402) => ["PAYMENT_REQUIRED"; 2],
        (Generate, 403) => ["PERMISSION_DENIED"; 2],
        (Generate, 404) => ["NOT_FOUND"; 2],
        (Generate, _) => ["BAD_GATEWAY"; 2],
        (_, 401) => ["authentication_error"; 2],
        (_, 402) => ["payment_required", "insufficient_quota"],
        (_, 403) => ["permission_error"; 2],
        (_, 404) => ["not_found_error", "invalid_request_error"],
        _ => ["bad_gateway"; 2],
    };
    let (nobody, poor, bound, client) = (&nobody, &poor, &bound, &client);
    let check = async |wire: Wire, place: usize| {
        let path = [wire.spec_path(MODEL, false), wire.bare_path(MODEL, false)][place].clone();
        for (status, client, model, text) in [
            (401, nobody, MODEL, "hi"),
            (402, poor, MODEL, "hi"),
            (403, bound, MODEL, "hi"),
            (404, client, "no-such-model", "hi"),
            (502, client, MODEL, "[[sandbox:fail]]"),
        ] {
            let body = Talk::saying(wire, model, false, text).body;
            let reply = client.post(&path.replace(MODEL, model), &body).await;
            let body = reply.expect(status).json();
            let expected = words(wire, status)[place];
            assert_eq!(kind(wire, &body), expected, "{path} {status}: {body}");
            if place == 0 && matches!(wire, Chat | Responses) {
                assert_eq!(body["error"]["code"], status, "{body}");
            }
        }
    };
    let places = Wire::ALL
        .into_iter()
        .flat_map(|wire| [(wire, 0), (wire, 1)]);
    join_all(places.map(|(wire, place)| check(wire, place))).await;
    gate.close().await;
}
