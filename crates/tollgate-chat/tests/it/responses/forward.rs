//! Tests of forwarding: requests, responses and streams passed on to the same format.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{rendering, target};
use tollgate_chat::error::{ErrorBody, MalformedResponse};
use tollgate_chat::format::{Format, StreamForwarder};
use tollgate_chat::hub::{ModelCapabilities, ReasoningControl, SamplingSupport};
use tollgate_chat::responses::Responses;

fn forwarded(body: &str, capabilities: &ModelCapabilities) -> String {
    let body = Bytes::from(body.to_owned());
    let summary = Responses.summarize_request(&body).unwrap();
    let sent = Responses
        .forward_request(&body, &summary, &target(capabilities))
        .unwrap();
    String::from_utf8(sent.to_vec()).unwrap()
}

#[test]
fn a_request_is_forwarded_with_only_the_model_replaced() {
    let capabilities = ModelCapabilities::default();
    let body =
        Bytes::from_static(br#"{ "input":"x",  "model" : "upstream-model", "temperature":1.00 }"#);
    let summary = Responses.summarize_request(&body).unwrap();
    let sent = Responses
        .forward_request(&body, &summary, &target(&capabilities))
        .unwrap();
    assert_eq!(sent.as_ptr(), body.as_ptr(), "no copy");
    assert_eq!(
        forwarded(
            r#"{ "input":"\u0041",  "model" : "gpt\u002d5", "temperature":1.00 }"#,
            &capabilities
        ),
        r#"{ "input":"\u0041",  "model" : "upstream-model", "temperature":1.00 }"#
    );
}

#[test]
fn unsupported_settings_are_replaced_in_place() {
    let body = r#"{"model":"m","input":"x","temperature":0.5,"top_p":0.9,"max_output_tokens":900,"reasoning":{"effort":"none"},"tool_choice":"required"}"#;
    let strict = ModelCapabilities {
        sampling: SamplingSupport::None,
        max_output_tokens: Some(800),
        thinking: ReasoningControl::Effort { can_disable: false },
        supports_forced_tools: false,
        ..ModelCapabilities::default()
    };
    assert_eq!(
        forwarded(body, &strict),
        r#"{"model":"upstream-model","input":"x","temperature":null,"top_p":null,"max_output_tokens":800,"reasoning":{"effort":"low"},"tool_choice":"auto"}"#
    );
    let one = ModelCapabilities {
        sampling: SamplingSupport::TemperatureOrTopP,
        thinking: ReasoningControl::Unsupported,
        ..ModelCapabilities::default()
    };
    assert_eq!(
        forwarded(body, &one),
        r#"{"model":"upstream-model","input":"x","temperature":0.5,"top_p":null,"max_output_tokens":900,"reasoning":null,"tool_choice":"required"}"#
    );
}

#[test]
fn a_response_is_forwarded_with_only_the_model_replaced() {
    let body =
        json!({"id": "resp_1", "model": "m-2025", "status": "completed", "error": null, "output": [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "h\u{e9}"}]},
        {"type": "function_call", "name": "long_name", "arguments": "{}"}],
        "usage": {"input_tokens": 3, "output_tokens": 4}})
        .to_string();
    let answer = Responses
        .forward_response(&Bytes::from(body.clone()), "client")
        .unwrap();
    assert_eq!(answer.body, body.replace("m-2025", "client"));
    assert_eq!(answer.text_bytes, 7);
    assert_eq!(answer.usage.unwrap().total(), 7);
    let same = Bytes::from(body);
    let answer = Responses.forward_response(&same, "m-2025").unwrap();
    assert_eq!(answer.body.as_ptr(), same.as_ptr());
}

#[test]
fn failed_and_malformed_responses_are_errors() {
    let of = |body: &str| Responses.forward_response(&Bytes::from(body.to_owned()), "c");
    let failed = r#"{"status":"failed","output":[],"error":{"code":"rate_limit_exceeded","message":"slow"}}"#;
    assert!(
        matches!(of(failed), Err(MalformedResponse::Upstream(words)) if words.status == Some(429))
    );
    for garbage in [
        "",
        "[]",
        "{}",
        "<html>",
        r#"{"status":"completed","output":null}"#,
    ] {
        assert!(
            matches!(of(garbage), Err(MalformedResponse::Invalid(_))),
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

fn stream() -> Box<dyn StreamForwarder> {
    Responses.stream_forwarder(&rendering())
}

#[test]
fn complete_events_are_forwarded_without_a_copy() {
    let mut forward = stream();
    let first = forward.push(opening("client-model").into()).unwrap();
    assert!(first.bytes.is_empty(), "held until something follows");
    let now = forward.push(delta("a").into()).unwrap().bytes;
    assert_eq!(now, opening("client-model") + &delta("a"));
    let chunk = Bytes::from(delta("b") + &delta("c"));
    let now = forward.push(chunk.clone()).unwrap().bytes;
    assert_eq!(
        (now.as_ptr(), now.len()),
        (chunk.as_ptr(), chunk.len()),
        "no copy"
    );
    let end = forward.push(completed("client-model").into()).unwrap();
    assert!(end.ended && end.bytes.is_empty());
    assert!(
        forward
            .push(Bytes::from_static(b"data: [DONE]\n\n"))
            .unwrap()
            .bytes
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
fn a_stream_cut_at_any_byte_is_forwarded_the_same() {
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
                out.extend_from_slice(&forward.push(Bytes::copy_from_slice(piece)).unwrap().bytes);
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
fn a_failure_after_the_opening_events_is_returned_before_anything_is_sent() {
    let failed = event(
        &json!({"type": "response.failed", "response": {"object": "response", "error": {"code": "server_error", "message": "no"}}}),
    );
    let mut forward = stream();
    assert!(forward.push(opening("m").into()).unwrap().bytes.is_empty());
    assert!(matches!(
        forward.push(failed.clone().into()),
        Err(MalformedResponse::Upstream(_))
    ));
    // Behind valid events: those are sent first.
    let mut forward = stream();
    let now = forward
        .push((opening("client-model") + &delta("a") + &failed).into())
        .unwrap()
        .bytes;
    assert_eq!(now, opening("client-model") + &delta("a"));
    assert!(matches!(
        forward.finish(),
        Err(MalformedResponse::Upstream(_))
    ));
}

#[test]
fn malformed_and_empty_streams_are_errors() {
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
            matches!(outcome, Err(MalformedResponse::Invalid(_))),
            is_malformed,
            "{text}"
        );
        assert_eq!(
            outcome == Err(MalformedResponse::Truncated),
            !is_malformed,
            "{text}"
        );
    }
    let mut forward = stream();
    assert!(matches!(
        forward.push(Bytes::from_static(b"data: \"\xff\"\n\n")),
        Err(MalformedResponse::Invalid(_))
    ));
}

#[test]
fn an_error_event_continues_the_stream_at_any_point() {
    let error = ErrorBody {
        status: 504,
        message: "late".to_owned(),
        param: None,
        code: None,
        bare: true,
    };
    let ended = |pushes: &[String]| {
        let (mut forward, mut out) = (stream(), Vec::new());
        for chunk in pushes {
            out.extend_from_slice(&forward.push(chunk.clone().into()).unwrap().bytes);
        }
        forward.error(&error, &mut out);
        super::stream_order::events(&out)
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
