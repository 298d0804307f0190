//! Requests, replies and streams passed on.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{rendering, target};
use crate::error::{Garbled, WireError};
use crate::format::{Format, StreamForward};
use crate::hub::{ModelTraits, Sampling, Thinking};
use crate::responses::Responses;

fn forwarded(body: &str, traits: &ModelTraits) -> String {
    let body = Bytes::from(body.to_owned());
    let glance = Responses.glance(&body).unwrap();
    let sent = Responses
        .forward_request(&body, &glance, &target(traits))
        .unwrap();
    String::from_utf8(sent.to_vec()).unwrap()
}

#[test]
fn a_request_keeps_its_bytes() {
    let traits = ModelTraits::default();
    let body =
        Bytes::from_static(br#"{ "input":"x",  "model" : "upstream-model", "temperature":1.00 }"#);
    let glance = Responses.glance(&body).unwrap();
    let sent = Responses
        .forward_request(&body, &glance, &target(&traits))
        .unwrap();
    assert_eq!(sent.as_ptr(), body.as_ptr(), "no copy");
    assert_eq!(
        forwarded(
            r#"{ "input":"\u0041",  "model" : "gpt\u002d5", "temperature":1.00 }"#,
            &traits
        ),
        r#"{ "input":"\u0041",  "model" : "upstream-model", "temperature":1.00 }"#
    );
}

#[test]
fn trap_21_22_what_a_model_refuses_is_taken_out() {
    let body = r#"{"model":"m","input":"x","temperature":0.5,"top_p":0.9,"max_output_tokens":900,"reasoning":{"effort":"none"},"tool_choice":"required"}"#;
    let strict = ModelTraits {
        sampling: Sampling::None,
        max_output: Some(800),
        thinking: Thinking::Effort { can_disable: false },
        forced_tools: false,
        ..ModelTraits::default()
    };
    assert_eq!(
        forwarded(body, &strict),
        r#"{"model":"upstream-model","input":"x","temperature":null,"top_p":null,"max_output_tokens":800,"reasoning":{"effort":"low"},"tool_choice":"auto"}"#
    );
    let one = ModelTraits {
        sampling: Sampling::One,
        thinking: Thinking::No,
        ..ModelTraits::default()
    };
    assert_eq!(
        forwarded(body, &one),
        r#"{"model":"upstream-model","input":"x","temperature":0.5,"top_p":null,"max_output_tokens":900,"reasoning":null,"tool_choice":"required"}"#
    );
}

#[test]
fn a_reply_keeps_its_bytes_but_for_the_model() {
    let body =
        json!({"id": "resp_1", "model": "m-2025", "status": "completed", "error": null, "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "h\u{e9}"}]},
        {"type": "function_call", "name": "long_name", "arguments": "{}"}],
        "usage": {"input_tokens": 3, "output_tokens": 4}})
        .to_string();
    let answer = Responses
        .forward_reply(&Bytes::from(body.clone()), "client")
        .unwrap();
    assert_eq!(answer.body, body.replace("m-2025", "client"));
    assert_eq!(answer.text_bytes, 7);
    assert_eq!(answer.usage.unwrap().total(), 7);
    let same = Bytes::from(body);
    let answer = Responses.forward_reply(&same, "m-2025").unwrap();
    assert_eq!(answer.body.as_ptr(), same.as_ptr());
}

#[test]
fn a_failed_reply_is_none() {
    let of = |body: &str| Responses.forward_reply(&Bytes::from(body.to_owned()), "c");
    let failed = r#"{"status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
    assert!(matches!(of(failed), Err(Garbled::Upstream(words)) if words.status == Some(429)));
    for garbage in [
        "",
        "[]",
        "{}",
        "<html>",
        r#"{"status":"completed","output":null}"#,
    ] {
        assert!(
            matches!(of(garbage), Err(Garbled::Malformed(_))),
            "{garbage}"
        );
    }
    assert!(of(r#"{"status":"queued"}"#).is_ok());
}

fn event(data: &Value) -> String {
    format!(
        "event: {}\ndata: {data}\n\n",
        data["type"].as_str().unwrap_or("x")
    )
}

fn opening(model: &str) -> String {
    let response =
        json!({"id": "resp_9", "created_at": 7, "model": model, "status": "in_progress"});
    event(&json!({"type": "response.created", "sequence_number": 0, "response": response}))
        + &event(
            &json!({"type": "response.in_progress", "sequence_number": 1, "response": response}),
        )
}

fn delta(text: &str) -> String {
    event(&json!({"type": "response.output_text.delta", "sequence_number": 2, "delta": text}))
}

fn completed(model: &str) -> String {
    let usage = json!({"input_tokens": 5, "output_tokens": 6});
    event(
        &json!({"type": "response.completed", "sequence_number": 3, "response": {"model": model, "usage": usage}}),
    )
}

fn stream() -> Box<dyn StreamForward> {
    Responses.forward_stream(&rendering())
}

#[test]
fn whole_events_are_slices() {
    let mut forward = stream();
    let first = forward.push(opening("client-model").into()).unwrap();
    assert!(first.now.is_empty(), "held until something follows");
    let now = forward.push(delta("a").into()).unwrap().now;
    assert_eq!(now, opening("client-model") + &delta("a"));
    let chunk = Bytes::from(delta("b") + &delta("c"));
    let now = forward.push(chunk.clone()).unwrap().now;
    assert_eq!(
        (now.as_ptr(), now.len()),
        (chunk.as_ptr(), chunk.len()),
        "no copy"
    );
    let end = forward.push(completed("client-model").into()).unwrap();
    assert!(end.ended && end.now.is_empty());
    assert!(
        forward
            .push(Bytes::from_static(b"data: [DONE]\n\n"))
            .unwrap()
            .now
            .is_empty()
    );
    assert_eq!(forward.finish(), Ok(()));
    assert_eq!(forward.end(), completed("client-model"));
    assert_eq!(
        (forward.usage().unwrap().total(), forward.text_bytes()),
        (11, 3)
    );
}

#[test]
fn every_cut_gives_the_same_stream() {
    let whole = opening("m")
        + ": ping\n\n"
        + &delta("h\u{e9}")
        + "data: {\"type\":\"response.x\",\ndata: \"a\":1}\n\n"
        + &completed("m");
    for text in [
        whole.clone(),
        whole.replace('\n', "\r\n"),
        whole.replace('\n', "\r"),
        whole.trim_end().to_owned(),
    ] {
        let run = |pieces: Vec<&[u8]>| {
            let (mut forward, mut out) = (stream(), Vec::new());
            for piece in pieces {
                out.extend_from_slice(&forward.push(Bytes::copy_from_slice(piece)).unwrap().now);
            }
            assert_eq!(forward.finish(), Ok(()), "{text:?}");
            out.extend_from_slice(&forward.end());
            (String::from_utf8(out).unwrap(), forward.usage())
        };
        let bytes = text.as_bytes();
        let expected = run(vec![bytes]);
        assert_eq!(expected.0.matches("client-model").count(), 3);
        assert!(expected.1.is_some());
        for cut in 0..bytes.len() {
            assert_eq!(
                run(vec![&bytes[..cut], &bytes[cut..]]),
                expected,
                "cut at {cut}"
            );
        }
        assert_eq!(run(bytes.chunks(1).collect()), expected);
    }
}

#[test]
fn trap_40_a_failure_is_told_before_anything_went_out() {
    let failed = event(
        &json!({"type": "response.failed", "response": {"object": "response", "error": {"code": "server_error", "message": "no"}}}),
    );
    let mut forward = stream();
    assert!(forward.push(opening("m").into()).unwrap().now.is_empty());
    assert!(matches!(
        forward.push(failed.clone().into()),
        Err(Garbled::Upstream(_))
    ));
    // Behind good words: those first.
    let mut forward = stream();
    let now = forward
        .push((opening("client-model") + &delta("a") + &failed).into())
        .unwrap()
        .now;
    assert_eq!(now, opening("client-model") + &delta("a"));
    assert!(matches!(forward.finish(), Err(Garbled::Upstream(_))));
}

#[test]
fn what_is_no_stream_is_garbled() {
    for (text, is_malformed) in [
        ("data: {\n\n", true),
        ("data: \u{1}\n\n", true),
        ("", false),
        ("data: [DONE]\n\n", false),
        (": hi\n\n", false),
    ] {
        let mut forward = stream();
        let outcome = forward
            .push(text.to_owned().into())
            .map(|_| ())
            .and_then(|()| forward.finish());
        assert_eq!(
            matches!(outcome, Err(Garbled::Malformed(_))),
            is_malformed,
            "{text}"
        );
        assert_eq!(outcome == Err(Garbled::BrokeOff), !is_malformed, "{text}");
    }
    let mut forward = stream();
    assert!(matches!(
        forward.push(Bytes::from_static(b"data: \"\xff\"\n\n")),
        Err(Garbled::Malformed(_))
    ));
}

#[test]
fn an_error_fits_to_where_the_stream_is() {
    let error = WireError {
        status: 504,
        message: "late".to_owned(),
        param: None,
        code: None,
        bare: true,
    };
    let ended = |pushes: &[String]| {
        let (mut forward, mut out) = (stream(), Vec::new());
        for chunk in pushes {
            out.extend_from_slice(&forward.push(chunk.clone().into()).unwrap().now);
        }
        forward.error(&error, &mut out);
        super::order::events(&out)
    };
    for pushes in [vec![], vec![opening("m")], vec![opening("m"), delta("a")]] {
        let events = ended(&pushes);
        assert_eq!(events[0]["type"], "response.created");
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.failed");
        assert_eq!(last["response"]["id"], events[0]["response"]["id"]);
        assert_eq!(last["response"]["error"]["message"], "late");
    }
}
