//! Tests of complete (non-streaming) responses and the request members that they echo.

use serde_json::{Value, json};

use super::{read, rendering};
use tollgate_chat::format::{Format, RenderOptions};
use tollgate_chat::hub::{Choice, FinishReason, Part, Response, Usage};
use tollgate_chat::responses::Responses;

fn reply(parts: Vec<Part>, finish: FinishReason) -> Response {
    Response {
        id: "chatcmpl-1".to_owned(),
        created: Some(5),
        choices: vec![Choice {
            parts,
            finish,
            ..Choice::empty(0)
        }],
        usage: Some(Usage {
            input: 3,
            output: 4,
            ..Usage::default()
        }),
        ..Response::default()
    }
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_envelope_response_has_chat_and_native_members() {
    for (finish, word) in [
        (FinishReason::EndTurn, "stop"),
        (FinishReason::ToolCall, "stop"),
        (FinishReason::Length, "length"),
        (FinishReason::Refusal, "content_filter"),
    ] {
        let parts = vec![Part::text("one "), Part::text("two")];
        let bare = Responses.write_response(&reply(parts, finish), &rendering());
        let native = parsed(&bare);
        let expected = json!({
            "id": "resp_seed",
            "object": "response",
            "created": 5,
            "model": "client-model",
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": "one two"},
                "finish_reason": word,
            }],
            "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
            "status": native["status"],
            "created_at": 5,
            "output": native["output"],
        });
        assert_eq!(parsed(&Responses.envelope_response(bare)), expected);
    }
    for odd in [&b"[]"[..], b"{", b""] {
        assert_eq!(Responses.envelope_response(odd.to_vec()), odd);
    }
    assert_eq!(
        parsed(&Responses.envelope_response(b"{}".to_vec()))["choices"][0]["message"]["content"],
        ""
    );
}

#[test]
fn a_response_echoes_the_request() {
    let request = read(&json!({
        "model": "m", "input": "x", "instructions": "Be brief.", "temperature": 0.5, "max_tokens": 9, "user": "u",
        "reasoning": {"effort": "low"}, "text": {"verbosity": "high"}, "metadata": {"a": "b"}, "truncation": "auto", "x_new": 1,
        "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}], "tool_choice": "required",
    }));
    let rendering = RenderOptions {
        request: Some(&request),
        ..rendering()
    };
    let written =
        parsed(&Responses.write_response(&reply(Vec::new(), FinishReason::EndTurn), &rendering));
    for (name, value) in [
        ("instructions", json!("Be brief.")),
        ("temperature", json!(0.5)),
        ("top_p", json!(1.0)),
        ("max_output_tokens", json!(9)),
        ("user", json!("u")),
        ("reasoning", json!({"effort": "low", "summary": null})),
        (
            "text",
            json!({"format": {"type": "text"}, "verbosity": "high"}),
        ),
        ("metadata", json!({"a": "b"})),
        ("truncation", json!("auto")),
        ("tool_choice", json!("required")),
        (
            "tools",
            json!([{"type": "function", "name": "f", "description": "d", "parameters": null, "strict": false}]),
        ),
        ("parallel_tool_calls", json!(true)),
        ("object", json!("response")),
        ("model", json!("client-model")),
    ] {
        assert_eq!(written[name], value, "{name}");
    }
    assert_eq!(written.get("x_new"), None);
}

/// Members that the official SDKs require are written even if nothing is known.
#[test]
fn an_empty_response_has_the_members_that_sdks_require() {
    let written = parsed(&Responses.write_response(&Response::default(), &rendering()));
    for name in [
        "id",
        "created_at",
        "model",
        "object",
        "output",
        "parallel_tool_calls",
        "tool_choice",
        "tools",
    ] {
        assert!(!written[name].is_null(), "{name}");
    }
    assert_eq!(written["created_at"], 1_700_000_000);
}

#[test]
fn total_tokens_is_the_sum_of_input_and_output() {
    let usage = Usage {
        input: 10,
        output: 90,
        reasoning: 80,
        ..Usage::default()
    };
    let reply = Response {
        usage: Some(usage),
        ..Response::default()
    };
    let written = parsed(&Responses.write_response(&reply, &rendering()));
    assert_eq!(written["usage"]["total_tokens"], 100);
    assert_eq!(
        written["usage"]["output_tokens_details"]["reasoning_tokens"],
        80
    );
}
