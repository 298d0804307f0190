//! Every scenario on every format, whole and streamed.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Provider, Scenario};

use crate::client::{CHAT, GENERATE, MESSAGES, RESPONSES, Reply, WIRES, Wire, is_reset, open};

/// Every format, whole and streamed.
fn cases() -> impl Iterator<Item = (Wire, bool)> {
    WIRES
        .iter()
        .flat_map(|wire| [(*wire, false), (*wire, true)])
}

async fn answered(wire: Wire, fake: &Fake, scenario: Scenario, stream: bool) -> Reply {
    let reply = wire
        .under(fake, scenario, "hello to all of you", stream)
        .await;
    reply.expect("an answer")
}

#[tokio::test]
async fn errors_of_status() {
    use Scenario::{KeyRefused, ModelMissing, Overloaded, QuotaExhausted, RateLimited, Status};
    let any = KeyRefused { key: None };
    let rows = [
        (Status(500, None), [500, 500, 500]),
        (Status(403, None), [403, 403, 403]),
        (RateLimited { retry_after: 7 }, [429, 429, 429]),
        (QuotaExhausted, [429, 402, 429]),
        (any, [401, 401, 400]),
        (ModelMissing, [404, 404, 404]),
        (Overloaded, [503, 529, 503]),
    ];
    for (wire, stream) in cases() {
        let fake = wire.start().await;
        for (scenario, statuses) in &rows {
            let reply = answered(wire, &fake, scenario.clone(), stream).await;
            let expected = match wire.provider {
                Provider::Anthropic => statuses[1],
                Provider::Gemini => statuses[2],
                _ => statuses[0],
            };
            assert_eq!(reply.status, expected, "{scenario:?}");
            let error = &reply.json()["error"];
            let kind = match wire.provider {
                Provider::Gemini => &error["status"],
                _ => &error["type"],
            };
            assert!(kind.is_string() && error["message"].is_string());
        }
        assert!(
            fake.requests()
                .iter()
                .all(|seen| seen.rejected_by.is_none())
        );
    }
}

#[tokio::test]
async fn errors_in_detail() {
    let fake = CHAT.start().await;
    let reply = answered(CHAT, &fake, Scenario::RateLimited { retry_after: 7 }, false).await;
    assert_eq!(reply.header("retry-after"), "7");
    assert_eq!(reply.json()["error"]["code"], "rate_limit_exceeded");
    let reply = answered(CHAT, &fake, Scenario::QuotaExhausted, false).await;
    assert_eq!(reply.json()["error"]["code"], "insufficient_quota");
    let body = "{\"odd\":true}".to_owned();
    let reply = answered(CHAT, &fake, Scenario::Status(418, Some(body)), false).await;
    assert_eq!((reply.status, reply.json()), (418, json!({"odd": true})));
    for (key, status) in [("k", 401), ("other", 200)] {
        let key = Some(key.to_owned());
        let reply = answered(CHAT, &fake, Scenario::KeyRefused { key }, false).await;
        assert_eq!(reply.status, status);
    }
    let fake = GENERATE.start().await;
    let reply = answered(
        GENERATE,
        &fake,
        Scenario::RateLimited { retry_after: 7 },
        false,
    )
    .await;
    assert_eq!(reply.json()["error"]["details"][1]["retryDelay"], "7s");
    let reply = answered(GENERATE, &fake, Scenario::KeyRefused { key: None }, false).await;
    assert_eq!(
        reply.json()["error"]["details"][0]["reason"],
        "API_KEY_INVALID"
    );
}

#[tokio::test]
async fn bodies_that_are_wrong() {
    for (wire, stream) in cases() {
        let fake = wire.start().await;
        let whole = answered(wire, &fake, Scenario::Normal, stream)
            .await
            .bytes();
        let reply = answered(wire, &fake, Scenario::Html200, stream).await;
        assert!(reply.status == 200 && reply.text().contains("<html>"));
        assert!(reply.header("content-type").starts_with("text/html"));
        let reply = answered(wire, &fake, Scenario::EmptyBody, stream).await;
        assert!(reply.status == 200 && reply.bytes().is_empty());
        let reply = answered(wire, &fake, Scenario::TruncatedJson, stream).await;
        assert!(reply.broken.is_none() && reply.bytes().len() < whole.len());
        assert!(!reply.bytes().ends_with(b"}") && !reply.bytes().ends_with(b"\n"));
        let reply = answered(wire, &fake, Scenario::WrongContentType, stream).await;
        assert_eq!(reply.header("content-type"), "text/plain");
        assert_eq!(reply.bytes().len(), whole.len());
        let reply = answered(wire, &fake, Scenario::InvalidUtf8, stream).await;
        assert!(std::str::from_utf8(&reply.bytes()).is_err());
        let huge = wire
            .under(&fake, Scenario::HugeHeaders, "hello", stream)
            .await;
        assert!(huge.is_err(), "more headers than the client takes");
        let bytes = 1 << 20;
        let reply = answered(wire, &fake, Scenario::HugeEvent { bytes }, stream).await;
        let text = reply.text();
        let longest = text.lines().map(str::len).max().unwrap_or(0);
        assert!(longest > bytes);
    }
}

#[tokio::test]
async fn connections_that_break() {
    for (wire, stream) in cases() {
        let fake = wire.start().await;
        let text = "hello to all of you";
        let reset = wire
            .under(&fake, Scenario::ResetBeforeHead, text, stream)
            .await;
        assert!(is_reset(&reset.err().expect("no answer")));
        let closed = wire
            .under(&fake, Scenario::CloseWithoutAnswer, text, stream)
            .await;
        let closed = closed.err().expect("no answer");
        assert!(
            closed.is_incomplete_message() && !is_reset(&closed),
            "{closed:?}"
        );
        let scenario = Scenario::ResetMidBody { after: 2 };
        let reply = answered(wire, &fake, scenario, stream).await;
        assert_eq!(reply.status, 200);
        let broken = reply.broken.as_ref().expect("a broken body");
        assert!(is_reset(broken), "{broken:?}");
        if stream {
            assert_eq!(reply.events().len(), 2);
        } else {
            assert!(!reply.bytes().is_empty());
        }
        assert_eq!(fake.open_streams(), 0);
    }
}

#[tokio::test]
async fn streams_that_end_badly() {
    for &wire in WIRES {
        let fake = wire.start().await;
        let whole = answered(wire, &fake, Scenario::Normal, true).await.events();
        let reply = answered(wire, &fake, Scenario::NoEnd, true).await;
        assert!(reply.broken.is_none() && !reply.text().contains("[DONE]"));
        let events = reply.events();
        assert!(!events.is_empty() && events.len() < whole.len());
        for name in ["message_stop", "response.completed", "\"STOP\"", "\"stop\""] {
            assert!(!reply.text().contains(name));
        }
        let reply = answered(wire, &fake, Scenario::ErrorEvent, true).await;
        let events = reply.events();
        assert!(events.len() > 1 && reply.broken.is_none());
        let last = events.last().expect("an event");
        let error = last.get("error").or_else(|| last["response"].get("error"));
        assert!(
            error.is_some_and(|error| error["message"].is_string()),
            "{last}"
        );
        let reply = answered(wire, &fake, Scenario::ErrorFirst, true).await;
        let events = reply.events();
        assert_eq!((reply.status, events.len()), (200, 1));
        assert!(events[0].get("error").is_some() || events[0]["type"] == "error");
        let whole = answered(wire, &fake, Scenario::NoEnd, false).await;
        assert!(serde_json::from_slice::<Value>(&whole.bytes()).is_err());
        for scenario in [Scenario::ErrorEvent, Scenario::ErrorFirst] {
            let reply = answered(wire, &fake, scenario, false).await;
            assert_eq!(reply.status, 200);
            assert!(reply.json()["error"]["message"].is_string());
        }
    }
}

#[tokio::test]
async fn dripping_changes_nothing_but_the_pieces() {
    for (wire, stream) in cases() {
        let fake = wire.start().await;
        let whole = wire
            .under(&fake, Scenario::Normal, "hi", stream)
            .await
            .expect("whole");
        let drops = wire
            .under(&fake, Scenario::Drip { ms: 0 }, "hi", stream)
            .await;
        let drops = drops.expect("an answer");
        assert_eq!(drops.bytes().len(), whole.bytes().len());
        assert!(drops.pieces.len() > whole.pieces.len());
    }
}

#[tokio::test]
async fn exchanges_that_never_end() {
    for (wire, stream) in cases() {
        let fake = wire.start().await;
        let body = (wire.body)("hello");
        let (wire, body) = if stream {
            wire.streamed(body)
        } else {
            (wire, body)
        };
        let body = body.to_string();
        for scenario in [Scenario::Stall { after: 2 }, Scenario::Endless] {
            fake.set(scenario.clone());
            let response = open(&fake, "POST", wire.path, wire.headers, &body).await;
            let mut incoming = response.expect("a head").into_body();
            let mut got = 0;
            let wanted = if scenario == Scenario::Endless {
                5000
            } else {
                10
            };
            while got < wanted {
                let frame = incoming.frame().await.expect("more").expect("no break");
                got += frame.into_data().as_ref().map_or(0, Bytes::len);
            }
            assert_eq!(fake.open_streams(), 1, "{scenario:?}");
            drop(incoming);
            until_closed(&fake).await;
        }
        fake.set(Scenario::Hang);
        let hanging = open(&fake, "POST", wire.path, wire.headers, &body);
        let arrived = async {
            while fake.open_streams() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = hanging => panic!("it hangs"),
            () = arrived => {}
        }
        until_closed(&fake).await;
    }
}

/// Waits until the fake has seen that the client went away.
async fn until_closed(fake: &Fake) {
    while fake.open_streams() > 0 {
        tokio::task::yield_now().await;
    }
}

fn usages(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                match name.as_str() {
                    "usage" | "usageMetadata" if !value.is_null() => found.push(value.clone()),
                    _ => usages(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| usages(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn usage_that_is_wrong() {
    for (wire, stream) in cases() {
        let fake = wire.start().await;
        for scenario in [
            Scenario::NoUsage,
            Scenario::NegativeUsage,
            Scenario::AbsurdUsage,
        ] {
            let reply = answered(wire, &fake, scenario.clone(), stream).await;
            let values = if stream {
                reply.events()
            } else {
                vec![reply.json()]
            };
            let mut found = Vec::new();
            usages(&json!(values), &mut found);
            if scenario == Scenario::NoUsage {
                assert!(found.is_empty());
                continue;
            }
            let names = ["prompt_tokens", "input_tokens", "promptTokenCount"];
            let last = found.last().expect("a usage");
            let count = names.iter().find_map(|name| last[*name].as_i64());
            let count = count.expect("a count");
            assert!(!(0..=i64::MAX / 2).contains(&count));
        }
    }
}

#[tokio::test]
async fn models_that_stop() {
    let rows = [
        (
            CHAT,
            Scenario::Refusal,
            "/choices/0/message/refusal",
            "echo: hello to all of you",
        ),
        (
            CHAT,
            Scenario::ContentFilter,
            "/choices/0/finish_reason",
            "content_filter",
        ),
        (CHAT, Scenario::Blocked, "/error/code", "content_filter"),
        (
            CHAT,
            Scenario::LengthStop,
            "/choices/0/finish_reason",
            "length",
        ),
        (
            RESPONSES,
            Scenario::Refusal,
            "/output/0/content/0/type",
            "refusal",
        ),
        (
            RESPONSES,
            Scenario::ContentFilter,
            "/incomplete_details/reason",
            "content_filter",
        ),
        (
            RESPONSES,
            Scenario::Blocked,
            "/error/code",
            "invalid_prompt",
        ),
        (
            RESPONSES,
            Scenario::LengthStop,
            "/incomplete_details/reason",
            "max_output_tokens",
        ),
        (MESSAGES, Scenario::Refusal, "/stop_details/type", "refusal"),
        (
            MESSAGES,
            Scenario::ContentFilter,
            "/error/type",
            "invalid_request_error",
        ),
        (MESSAGES, Scenario::Blocked, "/stop_reason", "refusal"),
        (MESSAGES, Scenario::LengthStop, "/stop_reason", "max_tokens"),
        (
            GENERATE,
            Scenario::Refusal,
            "/candidates/0/finishReason",
            "SAFETY",
        ),
        (
            GENERATE,
            Scenario::ContentFilter,
            "/candidates/0/finishReason",
            "PROHIBITED_CONTENT",
        ),
        (
            GENERATE,
            Scenario::Blocked,
            "/promptFeedback/blockReason",
            "PROHIBITED_CONTENT",
        ),
        (
            GENERATE,
            Scenario::LengthStop,
            "/candidates/0/finishReason",
            "MAX_TOKENS",
        ),
    ];
    for (wire, scenario, at, expected) in rows {
        let fake = wire.start().await;
        let reply = answered(wire, &fake, scenario.clone(), false).await.json();
        assert_eq!(
            reply.pointer(at),
            Some(&json!(expected)),
            "{scenario:?} {reply}"
        );
        let streamed = answered(wire, &fake, scenario, true).await;
        let last = expected.rsplit(' ').next().unwrap_or_default();
        assert!(streamed.text().contains(last), "{}", streamed.text());
    }
}
