//! Tests of reading and writing streams.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::rendering;
use super::stream_order::{check, events};
use tollgate_chat::Format;
use tollgate_chat::error::{ErrorBody, MalformedResponse};
use tollgate_chat::hub::{
    Citation, Event, ExtraFields, FinishReason, Opaque, Part, PartKind, ResponseBuilder, Source,
    Usage,
};
use tollgate_chat::responses::Responses;

fn sse(list: &[Value]) -> Vec<u8> {
    let lines = list.iter().map(|event| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap()
        )
    });
    lines.collect::<String>().into_bytes()
}

fn read(bytes: &[u8]) -> (Vec<Event>, Result<(), MalformedResponse>) {
    let (mut reader, mut out) = (Responses.stream_reader(), Vec::new());
    let outcome = reader
        .push(bytes, &mut out)
        .and_then(|()| reader.finish(&mut out));
    (out, outcome)
}

fn write(list: &[Event]) -> Vec<u8> {
    let (mut writer, mut out) = (Responses.stream_writer(&rendering()), Vec::new());
    for event in list {
        writer.write(event, &mut out);
    }
    writer.end(&mut out);
    out
}

fn start() -> Event {
    Event::Start {
        id: String::new(),
        model: String::new(),
        created: None,
        usage: None,
    }
}

fn text(text: &str) -> Event {
    Event::Text {
        choice: 0,
        text: text.to_owned(),
    }
}

fn tool(call: u32, id: &str) -> Event {
    Event::ToolStart {
        choice: 0,
        call,
        id: id.to_owned(),
        name: "f".to_owned(),
        custom: false,
    }
}

fn arguments(call: u32, json: &str) -> Event {
    Event::ToolArguments {
        choice: 0,
        call,
        json: json.to_owned(),
    }
}

fn tool_end(call: u32) -> Event {
    Event::ToolEnd {
        choice: 0,
        call,
        signature: None,
    }
}

fn finish(finish: FinishReason) -> Event {
    Event::Finish {
        choice: 0,
        finish,
        stop_sequence: None,
    }
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"m","created_at":5}}"#;

fn created() -> Value {
    serde_json::from_str(CREATED).unwrap()
}

#[test]
fn a_response_with_a_tool_call_is_completed() {
    let list = [
        start(),
        tool(0, "call_a"),
        arguments(0, "{}"),
        tool_end(0),
        finish(FinishReason::ToolCall),
    ];
    let response = check(&write(&list));
    assert_eq!(response["status"], "completed");
    assert_eq!(response["output"][0]["type"], "function_call");
}

#[test]
fn interleaved_parallel_calls_keep_their_own_arguments() {
    let mut list = vec![start(), tool(0, "a"), tool(1, "b")];
    for (call, piece) in [(0, "{\"x\""), (1, "{\"y\""), (0, ":1}"), (1, ":2}")] {
        list.push(arguments(call, piece));
    }
    list.extend([tool_end(1), tool_end(0), finish(FinishReason::ToolCall)]);
    let output = check(&write(&list))["output"].clone();
    assert_eq!(output[0]["arguments"], "{\"x\":1}");
    assert_eq!(output[1]["arguments"], "{\"y\":2}");
}

#[test]
fn the_final_event_repeats_no_call_and_fills_gaps() {
    let item = json!({"id": "fc_1", "type": "function_call", "call_id": "call_a", "name": "f", "arguments": "{}", "status": "completed"});
    // The final output names the call differently, and has an item that was not streamed.
    let other = json!({"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "late"}]});
    let mut again = item.clone();
    (again["id"], again["call_id"]) = ("fc_9".into(), "call_9".into());
    let (list, outcome) = read(&sse(&[
        created(),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": {"output": [again, other]}}),
    ]));
    assert_eq!(outcome, Ok(()));
    let calls = list
        .iter()
        .filter(|event| matches!(event, Event::ToolStart { .. }))
        .count();
    assert_eq!(calls, 1);
    assert!(list.contains(&text("late")), "{list:?}");
}

#[test]
fn a_call_starts_when_its_item_is_added() {
    let (list, _) = read(&sse(&[
        created(),
        json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "call_id": "call_a", "name": "f", "arguments": ""}}),
    ]));
    assert!(list.contains(&tool(0, "call_a")));
}

#[test]
fn the_final_response_has_the_complete_text() {
    let list = [start(), text("a"), text("b"), finish(FinishReason::EndTurn)];
    let response = check(&write(&list));
    assert_eq!(response["output"][0]["content"][0]["text"], "ab");
}

#[test]
fn functions_stream_as_function_call_events() {
    let stream = write(&[
        start(),
        tool(0, "a"),
        arguments(0, "{}"),
        tool_end(0),
        finish(FinishReason::ToolCall),
    ]);
    let names: Vec<String> = events(&stream)
        .iter()
        .map(|e| e["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        names
            .iter()
            .any(|name| name == "response.function_call_arguments.delta")
    );
    assert!(!names.iter().any(|name| name.contains("custom")));
}

#[test]
fn a_failed_or_truncated_stream_is_an_error_without_a_start() {
    let failed = json!({"type": "response.failed", "response": {"object": "response", "error": {"code": "server_error", "message": "no"}}});
    let (list, outcome) = read(&sse(&[created(), failed]));
    assert_eq!(list, []);
    assert!(
        matches!(outcome, Err(MalformedResponse::Upstream(words)) if words.status == Some(500) && words.message == "no")
    );
    let (_, outcome) = read(&sse(&[created()]));
    assert_eq!(outcome, Err(MalformedResponse::Truncated));
}

#[test]
fn an_error_closes_open_items_and_ends_the_stream() {
    let error = ErrorBody {
        status: 502,
        message: "gone".to_owned(),
        param: None,
        code: None,
        bare: true,
    };
    for list in [
        vec![],
        vec![start(), text("a")],
        vec![start(), tool(0, "a"), arguments(0, "{"), tool(1, "b")],
    ] {
        let (mut writer, mut out) = (Responses.stream_writer(&rendering()), Vec::new());
        list.iter().for_each(|event| writer.write(event, &mut out));
        writer.error(&error, &mut out);
        let response = check(&out);
        assert_eq!(
            response["error"],
            json!({"code": "server_error", "message": "gone"})
        );
        let before = out.len();
        writer.end(&mut out);
        writer.error(&error, &mut out);
        writer.write(&text("x"), &mut out);
        writer.keep_alive(&mut out);
        assert_eq!(out.len(), before, "nothing behind the end");
    }
}

#[test]
fn a_call_cut_off_by_the_token_limit_is_incomplete() {
    let list = [
        start(),
        tool(0, "a"),
        arguments(0, "{\"x"),
        tool_end(0),
        finish(FinishReason::Length),
    ];
    let response = check(&write(&list));
    assert_eq!(
        response["incomplete_details"]["reason"],
        "max_output_tokens"
    );
    assert_eq!(response["output"][0]["status"], "incomplete");
}

#[test]
fn a_call_without_arguments_gets_an_empty_object() {
    let response = check(&write(&[
        start(),
        tool(0, "a"),
        tool_end(0),
        finish(FinishReason::ToolCall),
    ]));
    assert_eq!(response["output"][0]["arguments"], "{}");
}

#[test]
fn call_signatures_of_other_vendors_survive_the_clients_round_trip() {
    let gemini = Opaque::new("gemini", "sig");
    let end = Event::ToolEnd {
        choice: 0,
        call: 0,
        signature: Some(gemini.clone()),
    };
    let list = [
        start(),
        tool(0, "call_a"),
        tool(1, "call_b"),
        arguments(0, "{}"),
        end,
        tool_end(1),
        finish(FinishReason::ToolCall),
    ];
    let response = check(&write(&list));
    let mut input = response["output"].as_array().unwrap().clone();
    input.insert(0, json!({"role": "user", "content": "go"}));
    let request = super::read(&json!({"model": "m", "input": input}));
    let signed: Vec<_> = request
        .turns
        .iter()
        .flat_map(|turn| &turn.parts)
        .filter_map(|part| match &part.kind {
            PartKind::ToolCall { id, signature, .. } => Some((id.as_str(), signature.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(signed, [("call_a", Some(gemini)), ("call_b", None)]);
}

#[test]
fn reasoning_of_other_vendors_survives_the_clients_round_trip() {
    let signature = Opaque::new("anthropic", "sig");
    let hidden = Opaque::new("anthropic", "hidden");
    let list = [
        start(),
        Event::Reasoning {
            choice: 0,
            text: "Hm.".to_owned(),
            summary: false,
        },
        Event::ReasoningEnd {
            choice: 0,
            signature: Some(signature.clone()),
            id: None,
        },
        Event::RedactedReasoning {
            choice: 0,
            data: hidden.clone(),
        },
        text("42"),
        finish(FinishReason::EndTurn),
    ];
    let response = check(&write(&list));
    let request = super::read(&json!({"model": "m", "input": response["output"]}));
    let kinds: Vec<&PartKind> = request
        .turns
        .iter()
        .flat_map(|turn| &turn.parts)
        .map(|part| &part.kind)
        .collect();
    assert!(
        matches!(kinds[0], PartKind::Reasoning { text, signature: Some(s), .. } if text == "Hm." && *s == signature)
    );
    assert_eq!(kinds[1], &PartKind::RedactedReasoning(hidden));
    // OpenAI gets neither.
    let (body, written) = super::written(&request);
    assert_eq!(body["input"].as_array().unwrap().len(), 1);
    assert_eq!(written.dropped, ["reasoning"]);
}

fn short() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-z\"\\\\é猫 ]{1,6}"]
}

fn event() -> impl Strategy<Value = Event> {
    let choice = prop_oneof![8 => Just(0u32), 1 => Just(1u32)];
    let opaque = proptest::option::of("[a-z]{1,4}".prop_map(|data| Opaque::new("gemini", data)));
    (choice, 0u32..3, short(), any::<bool>(), opaque, 0u8..15).prop_map(
        |(choice, call, text, flag, opaque, kind)| match kind {
            0 => Event::Start {
                id: text,
                model: String::new(),
                created: None,
                usage: None,
            },
            1 | 2 => Event::Text { choice, text },
            3 => Event::TextEnd {
                choice,
                signature: opaque,
            },
            4 => Event::Reasoning {
                choice,
                text,
                summary: flag,
            },
            5 => Event::ReasoningEnd {
                choice,
                signature: opaque,
                id: None,
            },
            6 => Event::RedactedReasoning {
                choice,
                data: Opaque::new("anthropic", text),
            },
            7 => Event::Refusal { choice, text },
            8 => Event::ToolStart {
                choice,
                call,
                id: text,
                name: "f".to_owned(),
                custom: flag,
            },
            9 => Event::ToolArguments {
                choice,
                call,
                json: text,
            },
            10 => Event::ToolEnd {
                choice,
                call,
                signature: opaque,
            },
            11 => Event::Citation {
                choice,
                citation: Citation {
                    url: text,
                    title: String::new(),
                    start: None,
                    end: None,
                    cited_text: None,
                    extra: ExtraFields::NONE,
                },
            },
            12 => Event::Part {
                choice,
                part: Part::new(PartKind::Image {
                    source: Source::Base64 {
                        media_type: "image/png".to_owned(),
                        data: "iVBORw0KGgo=".to_owned(),
                    },
                    detail: None,
                }),
            },
            13 => Event::Usage(Usage {
                input: u64::from(call),
                ..Usage::default()
            }),
            _ => Event::Finish {
                choice,
                finish: if flag {
                    FinishReason::EndTurn
                } else {
                    FinishReason::Length
                },
                stop_sequence: None,
            },
        },
    )
}

/// The text, reasoning and call arguments in a list of events, however they are split into parts.
fn generated_text(list: &[Event]) -> (String, String, Vec<String>) {
    let mut fold = ResponseBuilder::default();
    list.iter().for_each(|event| fold.push(event));
    let reply = fold.build();
    let (mut words, mut thoughts, mut calls) = (String::new(), String::new(), Vec::new());
    for part in reply
        .choices
        .first()
        .iter()
        .flat_map(|choice| &choice.parts)
    {
        match &part.kind {
            PartKind::Text { text, .. } | PartKind::Refusal(text) => words.push_str(text),
            PartKind::Reasoning { text, .. } => thoughts.push_str(text),
            PartKind::ToolCall { arguments, .. } => calls.push(arguments.clone()),
            _ => {}
        }
    }
    (words, thoughts, calls)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_events_make_a_legal_stream(list in proptest::collection::vec(event(), 0..24)) {
        check(&write(&list));
        let (mut writer, mut out) = (Responses.stream_writer(&rendering()), Vec::new());
        for event in &list {
            writer.write(event, &mut out);
            writer.keep_alive(&mut out);
        }
        let error = ErrorBody { status: 429, message: "m".to_owned(), param: None, code: None, bare: false };
        writer.error(&error, &mut out);
        check(&out);
    }

    #[test]
    fn written_streams_and_responses_read_back_the_same(pieces in proptest::collection::vec((0u8..4, "[a-zé\"]{1,5}"), 1..12)) {
        let (mut list, mut calls) = (vec![start()], 0);
        for (kind, piece) in pieces {
            match kind {
                0 => list.push(Event::Text { choice: 0, text: piece }),
                1 => list.push(Event::Reasoning { choice: 0, text: piece, summary: true }),
                2 => list.push(Event::TextEnd { choice: 0, signature: None }),
                _ => {
                    list.extend([tool(calls, &format!("call_{calls}")), arguments(calls, &piece), tool_end(calls)]);
                    calls += 1;
                }
            }
        }
        list.push(finish(FinishReason::EndTurn.with_tool_calls(calls > 0)));
        let stream = write(&list);
        check(&stream);
        let (again, outcome) = read(&stream);
        prop_assert_eq!(outcome, Ok(()));
        prop_assert_eq!(generated_text(&again), generated_text(&list));
        // The same for the complete response.
        let mut fold = ResponseBuilder::default();
        list.iter().for_each(|event| fold.push(event));
        let whole = Responses.write_response(&fold.build(), &rendering());
        let reply = Responses.read_response(&whole).unwrap();
        prop_assert_eq!(generated_text(&tollgate_chat::hub::events_from_response(&reply)), generated_text(&list));
    }
}
