//! Streams, read and written: the traps of peers.

use serde_json::{Value, json};
use tollgate_chat::hub::{
    Event, FinishReason, Opaque, Part, PartKind, ResponseBuilder, Usage, events_from_response,
};
use tollgate_chat::messages::Messages;
use tollgate_chat::{ErrorBody, Format, MalformedResponse};

use super::order::{accumulate, parse};
use super::{
    arguments, call_end, call_start, events, finish, head, rendering, sse, stream, tail, text,
    text_block,
};

fn error(status: u16) -> ErrorBody {
    ErrorBody {
        status,
        message: "it broke".to_owned(),
        param: None,
        code: None,
        bare: true,
    }
}

#[test]
fn trap_33_calls_that_overlap_come_one_after_the_other() {
    let message = accumulate(&stream(&[
        text("Looking."),
        call_start(0, "a"),
        call_start(1, "b"),
        arguments(1, "{\"n\":"),
        arguments(0, "{\"n\":1}"),
        text("Meanwhile."),
        arguments(1, "2}"),
        call_end(1),
        call_end(0),
        finish(FinishReason::ToolCall),
    ]));
    assert_eq!(
        message.content,
        [
            json!({"type": "text", "text": "Looking."}),
            json!({"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}}),
            json!({"type": "tool_use", "id": "b", "name": "f", "input": {"n": 2}}),
            json!({"type": "text", "text": "Meanwhile."}),
        ]
    );
    assert_eq!(message.stop_reason, "tool_use");
}

#[test]
fn a_call_that_is_first_is_not_held_back() {
    let mut writer = Messages.stream_writer(&rendering());
    let mut out = Vec::new();
    for event in [
        call_start(0, "a"),
        call_start(1, "b"),
        arguments(0, "{\"n\":"),
    ] {
        writer.write(&event, &mut out);
    }
    let so_far = String::from_utf8(out).unwrap();
    assert!(so_far.contains("\"partial_json\":\"{\\\"n\\\":\""));
    assert!(!so_far.contains("\"b\""));
}

#[test]
fn trap_34_empty_members_are_written() {
    let out = stream(&[
        Event::Reasoning {
            choice: 0,
            text: "hm".to_owned(),
            summary: false,
        },
        text("hi"),
        finish(FinishReason::EndTurn),
    ]);
    assert!(out.contains(
        "\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"
    ));
    assert!(out.contains("\"content_block\":{\"type\":\"text\",\"text\":\"\"}"));
    assert!(out.contains("\"stop_sequence\":null"));
}

#[test]
fn signatures_of_this_vendor_come_bare_and_others_wrapped() {
    for (vendor, expected) in [("anthropic", "c2ln"), ("openai", "tg1.openai.YzJsbg")] {
        let reasoning = Event::ReasoningEnd {
            choice: 0,
            signature: Some(Opaque::new(vendor, "c2ln")),
            id: None,
        };
        let message = accumulate(&stream(&[reasoning, finish(FinishReason::EndTurn)]));
        let block = json!({"type": "thinking", "thinking": "", "signature": expected});
        assert_eq!(message.content, [block]);
    }
}

#[test]
fn trap_28_a_signature_on_a_call_travels_behind_it_and_comes_back() {
    let end = Event::ToolEnd {
        choice: 0,
        call: 0,
        signature: Some(Opaque::new("gemini", "sig")),
    };
    let message = accumulate(&stream(&[
        call_start(0, "a"),
        end,
        finish(FinishReason::ToolCall),
    ]));
    let turn = json!({"role": "assistant", "content": message.content});
    let body = json!({"model": "m", "messages": [turn]});
    let request = Messages.read_request(body.to_string().as_bytes()).unwrap();
    let parts = &request.turns[0].parts;
    assert_eq!(parts.len(), 1);
    assert!(
        matches!(&parts[0].kind, PartKind::ToolCall { signature: Some(s), .. } if s.vendor == "gemini" && s.data == "sig")
    );
}

#[test]
fn trap_41_an_error_closes_what_is_open() {
    for events in [
        vec![],
        vec![text("hi")],
        vec![call_start(0, "a"), arguments(0, "{\"a\"")],
    ] {
        let mut writer = Messages.stream_writer(&rendering());
        let mut out = Vec::new();
        events
            .iter()
            .for_each(|event| writer.write(event, &mut out));
        writer.error(&error(503), &mut out);
        writer.write(&text("late"), &mut out);
        writer.keep_alive(&mut out);
        writer.end(&mut out);
        let message = accumulate(&String::from_utf8(out).unwrap());
        assert_eq!(message.error.unwrap()["type"], "overloaded_error");
        assert!(message.stop_reason.is_null());
    }
}

#[test]
fn trap_42_pings_come_only_behind_the_start() {
    let mut writer = Messages.stream_writer(&rendering());
    let mut out = Vec::new();
    writer.keep_alive(&mut out);
    assert!(out.is_empty());
    writer.write(&text("hi"), &mut out);
    out.clear();
    writer.keep_alive(&mut out);
    assert_eq!(out, b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
    writer.end(&mut out);
    out.clear();
    writer.keep_alive(&mut out);
    assert!(out.is_empty());
}

#[test]
fn trap_51_usage_is_estimated_at_the_start_and_true_at_the_end() {
    let usage = Usage {
        input: 100,
        cache_read: 60,
        output: 7,
        ..Usage::default()
    };
    let message = accumulate(&stream(&[
        text("hi"),
        finish(FinishReason::EndTurn),
        Event::Usage(usage),
    ]));
    assert_eq!(message.head.unwrap()["usage"]["input_tokens"], 11);
    assert_eq!(message.usage["input_tokens"], 40);
    assert_eq!(message.usage["cache_read_input_tokens"], 60);
    assert_eq!(message.usage["output_tokens"], 7);
    let message = accumulate(&stream(&[text("hello you"), finish(FinishReason::EndTurn)]));
    assert_eq!(message.usage["input_tokens"], 11);
    assert_eq!(message.usage["output_tokens"], 3);
}

#[test]
fn trap_48_usage_of_the_start_is_replaced_not_added() {
    let all = events(&(head() + &text_block(0, "hi") + &tail("end_turn"))).unwrap();
    let last = all.iter().rev().find_map(|event| match event {
        Event::Usage(usage) => Some(*usage),
        _ => None,
    });
    let last = last.unwrap();
    assert_eq!((last.input, last.output), (5, 9));
}

#[test]
fn arguments_that_are_nothing_become_no_pieces() {
    for pieces in [vec![], vec![""], vec!["null"], vec![" ", "nu", "ll"]] {
        let mut all = vec![call_start(0, "a")];
        all.extend(pieces.iter().map(|piece| arguments(0, piece)));
        all.extend([call_end(0), finish(FinishReason::ToolCall)]);
        let message = accumulate(&stream(&all));
        assert_eq!(message.content[0]["input"], json!({}), "{pieces:?}");
    }
    let all = [
        call_start(0, "a"),
        arguments(0, " {"),
        arguments(0, "\"a\":1}"),
        call_end(0),
    ];
    assert_eq!(
        accumulate(&stream(&all)).content[0]["input"],
        json!({"a": 1})
    );
}

#[test]
fn free_text_of_a_custom_tool_becomes_an_object() {
    let start = Event::ToolStart {
        choice: 0,
        call: 0,
        id: "a".to_owned(),
        name: "shell".to_owned(),
        custom: true,
    };
    for pieces in [vec!["echo \"é\"\n", "ls \\"], vec![]] {
        let mut all = vec![start.clone()];
        all.extend(pieces.iter().map(|piece| arguments(0, piece)));
        all.push(call_end(0));
        let message = accumulate(&stream(&all));
        assert_eq!(
            message.content[0]["input"],
            json!({"input": pieces.concat()})
        );
    }
}

#[test]
fn every_finish_has_its_reason() {
    for (given, calls, reason) in [
        (FinishReason::EndTurn, false, "end_turn"),
        (FinishReason::EndTurn, true, "tool_use"),
        (FinishReason::Length, true, "max_tokens"),
        (FinishReason::StopSequence, false, "end_turn"),
        (FinishReason::Refusal, true, "refusal"),
        (FinishReason::PromptBlocked, false, "refusal"),
        (
            FinishReason::ContextFull,
            false,
            "model_context_window_exceeded",
        ),
        (FinishReason::Pause, false, "pause_turn"),
        (FinishReason::InvalidToolCall, false, "end_turn"),
        (FinishReason::Other, false, "end_turn"),
    ] {
        let mut all = Vec::new();
        if calls {
            all.extend([call_start(0, "a"), call_end(0)]);
        }
        all.push(finish(given));
        assert_eq!(accumulate(&stream(&all)).stop_reason, reason, "{given:?}");
    }
    let sequence = Event::Finish {
        choice: 0,
        finish: FinishReason::StopSequence,
        stop_sequence: Some("END".to_owned()),
    };
    let out = stream(&[sequence]);
    assert!(out.contains("\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"END\""));
}

#[test]
fn a_refusal_in_words_is_a_refusal() {
    let refusal = Event::Refusal {
        choice: 0,
        text: "No.".to_owned(),
    };
    let message = accumulate(&stream(&[refusal, finish(FinishReason::EndTurn)]));
    assert_eq!(message.stop_reason, "refusal");
    assert_eq!(message.content, [json!({"type": "text", "text": "No."})]);
}

#[test]
fn trap_40_errors_in_a_stream_are_errors() {
    let overloaded = sse(
        "error",
        json!({"error": {"type": "overloaded_error", "message": "Overloaded"}}),
    );
    for before in [String::new(), head(), head() + &text_block(0, "hi")] {
        let Err(MalformedResponse::Upstream(words)) = events(&(before + &overloaded)) else {
            panic!()
        };
        assert_eq!(
            (words.status, words.message.as_str()),
            (Some(529), "Overloaded")
        );
    }
}

#[test]
fn an_end_that_is_none_is_a_break() {
    assert_eq!(
        events(&(head() + &text_block(0, "hi"))),
        Err(MalformedResponse::Truncated)
    );
    assert_eq!(events(""), Err(MalformedResponse::Truncated));
    assert!(matches!(
        events("data: not json\n\n"),
        Err(MalformedResponse::Invalid(_))
    ));
    // A stop reason without a message_stop behind it is an end all the same.
    let cut = sse(
        "message_delta",
        json!({"delta": {"stop_reason": "end_turn"}}),
    );
    assert!(events(&(head() + &text_block(0, "hi") + &cut)).is_ok());
}

#[test]
fn blocks_that_are_never_closed_end_with_the_message() {
    let open = sse(
        "content_block_start",
        json!({"index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}}),
    );
    let all = events(&(head() + &open + &tail("tool_use"))).unwrap();
    let end = all.iter().position(|e| matches!(e, Event::ToolEnd { .. }));
    let finish = all.iter().position(|e| matches!(e, Event::Finish { .. }));
    assert!(end.unwrap() < finish.unwrap());
}

#[test]
fn a_call_without_an_id_gets_the_same_one_each_time() {
    let call = sse(
        "content_block_start",
        json!({"index": 0, "content_block": {"type": "tool_use", "id": "", "name": "f", "input": {"a": 1}}}),
    ) + &sse("content_block_stop", json!({"index": 0}));
    let whole = head() + &call + &tail("tool_use");
    let all = events(&whole).unwrap();
    assert!(matches!(&all[1], Event::ToolStart { id, .. } if id.starts_with("toolu_")));
    assert_eq!(all[2], arguments(0, "{\"a\":1}"));
    assert_eq!(events(&whole).unwrap(), all);
    // And the same in the whole reply.
    let body =
        json!({"id": "msg_1", "content": [{"type": "tool_use", "name": "f", "input": {"a": 1}}]});
    let reply = Messages.read_response(body.to_string().as_bytes()).unwrap();
    assert_eq!(events_from_response(&reply)[1], all[1]);
}

#[test]
fn trap_44_characters_survive_every_cut() {
    let whole = head() + &text_block(0, "é猫🎉") + &tail("end_turn");
    let expected = events(&whole).unwrap();
    for size in 1..9 {
        let mut reader = Messages.stream_reader();
        let mut out = Vec::new();
        for piece in whole.as_bytes().chunks(size) {
            reader.push(piece, &mut out).unwrap();
        }
        reader.finish(&mut out).unwrap();
        assert_eq!(out, expected);
    }
}

#[test]
fn the_same_reply_whole_and_streamed_say_the_same() {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "up", "stop_reason": "tool_use", "stop_sequence": null,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZGF0YQ"},
            {"type": "text", "text": "Looking.", "citations": [{"type": "web_search_result_location", "url": "https://a", "title": "A", "encrypted_index": "i", "cited_text": "c"}]},
            {"type": "tool_use", "id": "a", "name": "f", "input": {"n": 1}},
            {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
        ],
        "usage": {"input_tokens": 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 2},
    });
    let reply = Messages.read_response(body.to_string().as_bytes()).unwrap();
    let message = accumulate(&stream(&events_from_response(&reply)));
    assert_eq!(Value::Array(message.content), body["content"]);
    assert_eq!(message.usage, body["usage"]);
    let mut fold = ResponseBuilder::default();
    for event in &events(&stream(&events_from_response(&reply))).unwrap() {
        fold.push(event);
    }
    assert_eq!(fold.build().choices, reply.choices);
}

#[test]
fn parts_that_come_whole_are_blocks() {
    let part = |kind: PartKind| Event::Part {
        choice: 0,
        part: Part::new(kind),
    };
    let foreign = json!({"type": "web_search_tool_result", "tool_use_id": "x", "content": []});
    let message = accumulate(&stream(&[
        text("before"),
        part(PartKind::FormatSpecific {
            format: "messages",
            value: foreign.clone(),
        }),
        part(PartKind::FormatSpecific {
            format: "responses",
            value: json!({"type": "web_search_call"}),
        }),
        part(PartKind::Refusal("no".to_owned())),
        part(PartKind::ToolCall {
            id: "a.b".to_owned(),
            name: "f".to_owned(),
            arguments: "{\"a\":1}".to_owned(),
            custom: false,
            signature: None,
        }),
    ]));
    assert_eq!(message.content.len(), 4);
    assert_eq!(message.content[1], foreign);
    assert_eq!(message.content[3]["input"], json!({"a": 1}));
}

#[test]
fn only_the_first_reply_is_told() {
    let other = Event::Text {
        choice: 1,
        text: "other".to_owned(),
    };
    let end = Event::Finish {
        choice: 1,
        finish: FinishReason::Length,
        stop_sequence: None,
    };
    let out = stream(&[text("hi"), other, end, finish(FinishReason::EndTurn)]);
    assert_eq!(parse(&out).len(), 6);
    assert_eq!(accumulate(&out).stop_reason, "end_turn");
}
