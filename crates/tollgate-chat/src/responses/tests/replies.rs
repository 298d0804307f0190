//! Whole replies, and what of the request they repeat.

use serde_json::{Value, json};

use super::{read, rendering};
use crate::format::{Format, Rendering};
use crate::hub::{Choice, Finish, Part, Reply, Usage};
use crate::responses::Responses;

fn reply(parts: Vec<Part>, finish: Finish) -> Reply {
    Reply {
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
        ..Reply::default()
    }
}

fn parsed(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_specifications_object_has_both_shapes() {
    for (finish, word) in [
        (Finish::End, "stop"),
        (Finish::ToolCall, "stop"),
        (Finish::Length, "length"),
        (Finish::Refusal, "content_filter"),
    ] {
        let parts = vec![Part::text("one "), Part::text("two")];
        let bare = Responses.write_reply(&reply(parts, finish), &rendering());
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
        assert_eq!(parsed(&Responses.spec_reply(bare)), expected);
    }
    for odd in [&b"[]"[..], b"{", b""] {
        assert_eq!(Responses.spec_reply(odd.to_vec()), odd);
    }
    assert_eq!(
        parsed(&Responses.spec_reply(b"{}".to_vec()))["choices"][0]["message"]["content"],
        ""
    );
}

#[test]
fn a_reply_repeats_the_request() {
    let request = read(&json!({
        "model": "m", "input": "x", "instructions": "Be brief.", "temperature": 0.5, "max_tokens": 9, "user": "u",
        "reasoning": {"effort": "low"}, "text": {"verbosity": "high"}, "metadata": {"a": "b"}, "truncation": "auto", "x_new": 1,
        "tools": [{"type": "function", "function": {"name": "f", "description": "d"}}], "tool_choice": "required",
    }));
    let rendering = Rendering {
        request: Some(&request),
        ..rendering()
    };
    let written = parsed(&Responses.write_reply(&reply(Vec::new(), Finish::End), &rendering));
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

/// What the official SDKs cannot do without is there even where nothing is known.
#[test]
fn an_empty_reply_has_what_sdks_need() {
    let written = parsed(&Responses.write_reply(&Reply::default(), &rendering()));
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
fn trap_50_totals_are_sums() {
    let usage = Usage {
        input: 10,
        output: 90,
        reasoning: 80,
        ..Usage::default()
    };
    let reply = Reply {
        usage: Some(usage),
        ..Reply::default()
    };
    let written = parsed(&Responses.write_reply(&reply, &rendering()));
    assert_eq!(written["usage"]["total_tokens"], 100);
    assert_eq!(
        written["usage"]["output_tokens_details"]["reasoning_tokens"],
        80
    );
}
