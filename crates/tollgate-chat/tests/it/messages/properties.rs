//! Properties: no input panics, no events make an illegal stream, and a request read and written is the same.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tollgate_chat::hub::{
    Citation, Event, ExtraFields, FinishReason, Opaque, Part, PartKind, Response, ResponseBuilder,
    Usage, events_from_response,
};
use tollgate_chat::messages::Messages;
use tollgate_chat::{ErrorBody, Format, RenderOptions, Target};

use super::order::accumulate;
use super::{capabilities, events, head, rendering, sent, sse, stream, tail, text_block};

fn words() -> impl Strategy<Value = String> {
    "[a-z \"\n]{0,4}[a-z\\\\é猫]{1,4}"
}

fn opaque() -> impl Strategy<Value = Option<Opaque>> {
    let one = ("anthropic|gemini|openai", "[a-zA-Z0-9]{1,5}");
    proptest::option::of(one.prop_map(|(vendor, data)| Opaque::new(vendor, data)))
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        words().prop_map(Part::text),
        words().prop_map(|text| Part::new(PartKind::Refusal(text))),
        Just(Part::new(PartKind::FormatSpecific {
            format: "messages",
            value: json!({"type": "server_tool_use", "id": "s", "name": "n", "input": {"a": 1}})
        })),
        (words(), opaque()).prop_map(|(text, signature)| Part::new(PartKind::Reasoning {
            text,
            signature,
            id: None,
            summary: false
        })),
        (words(), any::<bool>(), opaque()).prop_map(|(arguments, custom, signature)| {
            let (id, name) = ("i.d".to_owned(), "f".to_owned());
            Part::new(PartKind::ToolCall {
                id,
                name,
                arguments,
                custom,
                signature,
            })
        }),
    ]
}

fn citation(url: String) -> Citation {
    Citation {
        url,
        title: String::new(),
        start: None,
        end: None,
        cited_text: None,
        extra: ExtraFields::NONE,
    }
}

/// Any event, sensible or not.
fn any_event() -> impl Strategy<Value = Event> {
    let choice = prop_oneof![9 => Just(0_u32), 1 => Just(1)];
    let call = 0..3_u32;
    prop_oneof![
        words().prop_map(|id| Event::Start {
            id,
            model: "up".to_owned(),
            created: None,
            usage: None
        }),
        (choice.clone(), words()).prop_map(|(choice, text)| Event::Text { choice, text }),
        (choice.clone(), opaque())
            .prop_map(|(choice, signature)| Event::TextEnd { choice, signature }),
        (choice.clone(), words()).prop_map(|(choice, text)| Event::Reasoning {
            choice,
            text,
            summary: false
        }),
        (choice.clone(), opaque()).prop_map(|(choice, signature)| Event::ReasoningEnd {
            choice,
            signature,
            id: None
        }),
        choice.clone().prop_map(|choice| Event::RedactedReasoning {
            choice,
            data: Opaque::new("anthropic", "x")
        }),
        (choice.clone(), words()).prop_map(|(choice, text)| Event::Refusal { choice, text }),
        (choice.clone(), call.clone(), "[a-z.]{0,3}", any::<bool>()).prop_map(
            |(choice, call, id, custom)| Event::ToolStart {
                choice,
                call,
                id,
                name: "f".to_owned(),
                custom
            }
        ),
        (choice.clone(), call.clone(), words())
            .prop_map(|(choice, call, json)| Event::ToolArguments { choice, call, json }),
        (choice.clone(), call, opaque()).prop_map(|(choice, call, signature)| Event::ToolEnd {
            choice,
            call,
            signature
        }),
        (choice.clone(), words()).prop_map(|(choice, url)| Event::Citation {
            choice,
            citation: citation(url)
        }),
        (choice.clone(), part()).prop_map(|(choice, part)| Event::Part { choice, part }),
        (1..9_u64).prop_map(|input| Event::Usage(Usage {
            input,
            ..Usage::default()
        })),
        (choice, any::<bool>()).prop_map(|(choice, long)| Event::Finish {
            choice,
            finish: if long {
                FinishReason::Length
            } else {
                FinishReason::EndTurn
            },
            stop_sequence: None,
        }),
    ]
}

/// A reply as this vendor gives one.
fn reply() -> impl Strategy<Value = Value> {
    let block = prop_oneof![
        words().prop_map(|text| json!({"type": "text", "text": text})),
        words().prop_map(|text| json!({"type": "thinking", "thinking": text, "signature": "c2ln"})),
        Just(json!({"type": "redacted_thinking", "data": "ZGF0YQ"})),
        (words(), words()).prop_map(
            |(id, value)| json!({"type": "tool_use", "id": format!("toolu_{}", id.len()), "name": "f", "input": {"v": value}})
        ),
        words().prop_map(
            |text| json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": text}})
        ),
    ];
    (prop::collection::vec(block, 0..6), "end_turn|max_tokens|refusal").prop_map(|(content, reason)| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "mine", "content": content,
            "stop_reason": reason, "stop_sequence": null,
            "usage": {"input_tokens": 3, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2, "output_tokens": 4}})
    })
}

fn block() -> impl Strategy<Value = Value> {
    prop_oneof![
        words().prop_map(|text| json!({"type": "text", "text": text})),
        words().prop_map(
            |text| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
        ),
        Just(
            json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}})
        ),
        Just(
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "R0lGODlhAQABAAAAACw="}, "transformations": []})
        ),
        Just(
            json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}, "title": "t", "citations": {"enabled": true}})
        ),
        Just(json!({"type": "document", "source": {"type": "file", "file_id": "file_1"}})),
        Just(json!({"type": "search_result", "source": "s", "title": "t", "content": []})),
        Just(json!({"type": "container_upload", "file_id": "file_1"})),
    ]
}

/// Turns that the vendor would take.
fn turns() -> impl Strategy<Value = Vec<Value>> {
    let content = prop_oneof![
        words().prop_map(Value::from),
        prop::collection::vec(block(), 1..4).prop_map(Value::from)
    ];
    let user = content.prop_map(|content| vec![json!({"role": "user", "content": content})]);
    let said = words().prop_map(|text| vec![json!({"role": "assistant", "content": text})]);
    let system = words().prop_map(|text| vec![json!({"role": "system", "content": text})]);
    let called = (1..4_usize, words(), any::<bool>()).prop_map(|(count, text, failed)| {
        let thinking = json!({"type": "thinking", "thinking": text, "signature": "c2ln"});
        let call = |at: usize| json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": "f", "input": {"b": 1, "a": text}});
        let result = |at: usize| {
            let content = if at == 0 { json!(text) } else { json!([{"type": "text", "text": text}]) };
            let mut block = json!({"type": "tool_result", "tool_use_id": format!("toolu_{at}"), "content": content});
            if failed {
                block["is_error"] = json!(true);
            }
            block
        };
        let calls = std::iter::once(thinking).chain((0..count).map(call));
        vec![
            json!({"role": "assistant", "content": calls.collect::<Vec<_>>()}),
            json!({"role": "user", "content": (0..count).map(result).collect::<Vec<_>>()}),
        ]
    });
    prop::collection::vec(prop_oneof![user, said, called, system], 1..6)
        .prop_map(|turns| turns.concat())
}

fn request() -> impl Strategy<Value = Value> {
    let tool = json!({"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": false, "input_examples": [{}]});
    let search = json!({"type": "web_search_20260209", "name": "web_search", "max_uses": 2, "user_location": {"type": "approximate", "city": "x"}});
    let vendor = json!({"type": "bash_20250124", "name": "bash"});
    let fields: Vec<(&str, Value)> = vec![
        ("system", json!("s")),
        (
            "system",
            json!([{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]),
        ),
        ("temperature", json!(0.5)),
        ("top_p", json!(1.0)),
        ("top_k", json!(7)),
        ("stop_sequences", json!(["a", "\n"])),
        ("metadata", json!({"user_id": "u", "more": 1})),
        ("tools", json!([tool, search, vendor])),
        (
            "tool_choice",
            json!({"type": "tool", "name": "f", "disable_parallel_tool_use": false}),
        ),
        ("tool_choice", json!({"type": "none"})),
        (
            "output_config",
            json!({"effort": "max", "format": {"type": "json_schema", "schema": {"type": "object", "x": 1}}}),
        ),
        (
            "thinking",
            json!({"type": "adaptive", "display": "omitted"}),
        ),
        ("thinking", json!({"type": "disabled"})),
        ("service_tier", json!("auto")),
        ("cache_control", json!({"type": "ephemeral"})),
        ("container", json!("c")),
        ("unheard_of", json!({"a": [1]})),
    ];
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| proptest::option::weighted(0.3, Just((name, value))))
        .collect();
    (turns(), fields).prop_map(|(messages, fields)| {
        let mut map = Map::from_iter([
            ("model".to_owned(), json!("up")),
            ("max_tokens".to_owned(), json!(5000)),
            ("messages".to_owned(), messages.into()),
        ]);
        map.extend(
            fields
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.to_owned(), value)),
        );
        // A choice without tools is an error, and is left out.
        if !map.contains_key("tools") {
            map.shift_remove("tool_choice");
        }
        map.into()
    })
}

/// Requests, replies and streams to be damaged.
fn samples() -> Vec<Vec<u8>> {
    let request = json!({"model": "m", "stream": true, "max_tokens": 9, "stop_sequences": ["a"], "system": [{"type": "text", "text": "s"}], "messages": [
        {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}]}],
        "tools": [{"name": "f", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "f"}, "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}}});
    let reply = json!({"id": "msg_1", "model": "m", "type": "message", "stop_reason": "tool_use", "content": [
        {"type": "text", "text": "é", "citations": [{"type": "char_location", "document_title": "d"}]}, {"type": "tool_use", "id": "a", "name": "f", "input": {"a": 1}}],
        "usage": {"input_tokens": 1, "output_tokens": 2, "cache_creation": {"ephemeral_1h_input_tokens": 1}}});
    let call = sse(
        "content_block_start",
        json!({"index": 1, "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}}),
    ) + &sse(
        "content_block_delta",
        json!({"index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
    ) + &sse("content_block_stop", json!({"index": 1}));
    let stream = head() + &text_block(0, "é") + &call + &tail("tool_use");
    let error =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    vec![
        request.to_string().into(),
        reply.to_string().into(),
        stream.into(),
        error.to_string().into(),
    ]
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let edits = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..6);
    (prop::sample::select(samples()), edits).prop_map(|(mut bytes, edits)| {
        for (at, byte, how) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, br#"{}[]",:0e-."#[usize::from(byte) % 11]),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

fn folded(events: &[Event]) -> Response {
    let mut fold = ResponseBuilder::default();
    events.iter().for_each(|event| fold.push(event));
    fold.build()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_events_make_an_illegal_stream(events in prop::collection::vec(any_event(), 0..40), ends in 0..3_u8, at in any::<prop::sample::Index>()) {
        let mut writer = Messages.stream_writer(&rendering());
        let mut out = Vec::new();
        let cut = at.index(events.len() + 1);
        for event in &events[..cut] {
            writer.write(event, &mut out);
            writer.keep_alive(&mut out);
        }
        let error = ErrorBody { status: 502, message: "x".to_owned(), param: None, code: None, bare: false };
        match ends {
            0 => writer.error(&error, &mut out),
            _ => writer.end(&mut out),
        }
        for event in &events[cut..] {
            writer.write(event, &mut out);
        }
        writer.end(&mut out);
        writer.error(&error, &mut out);
        let message = accumulate(&String::from_utf8(out).unwrap());
        prop_assert_eq!(message.error.is_some(), ends == 0);
        prop_assert_eq!(message.stop_reason.is_string(), ends != 0);
    }

    #[test]
    fn a_reply_is_the_same_whole_streamed_and_read_again(body in reply()) {
        let reply = Messages.read_response(body.to_string().as_bytes()).unwrap();
        let written: Value = serde_json::from_slice(&Messages.write_response(&reply, &rendering())).unwrap();
        let calls = body["content"].as_array().unwrap().iter().any(|block| block["type"] == "tool_use");
        let mut expected = body.clone();
        if calls && body["stop_reason"] == "end_turn" {
            expected["stop_reason"] = json!("tool_use");
        }
        prop_assert_eq!(&written, &expected);
        let sse = stream(&events_from_response(&reply));
        let message = accumulate(&sse);
        prop_assert_eq!(Value::Array(message.content), written["content"].clone());
        prop_assert_eq!(message.stop_reason, written["stop_reason"].clone());
        prop_assert_eq!(message.usage, written["usage"].clone());
        let again = folded(&events(&sse).unwrap());
        prop_assert_eq!(again.usage, reply.usage);
        if !again.choices.is_empty() {
            prop_assert_eq!(again.choices, reply.choices);
        }
    }

    #[test]
    fn a_request_read_and_written_is_the_same(body in request()) {
        let text = body.to_string();
        let request = Messages.read_request(text.as_bytes()).unwrap();
        let (written, dropped) = sent(&request, &capabilities());
        prop_assert_eq!(&written, &body);
        prop_assert_eq!(dropped, Vec::<String>::new());
        let glance = Messages.summarize_request(text.as_bytes()).unwrap();
        prop_assert!(glance.is_native);
        let capabilities = capabilities();
        let target = Target { model: "up", stream: false, capabilities: &capabilities, default_max_tokens: 1 };
        let body = Bytes::from(text);
        prop_assert_eq!(Messages.forward_request(&body, &glance, &target).unwrap(), body);
    }

    #[test]
    fn no_bytes_panic(bytes in damaged()) {
        let rendering = rendering();
        let capabilities = capabilities();
        let target = Target { model: "m", stream: true, capabilities: &capabilities, default_max_tokens: 1 };
        let body = Bytes::from(bytes.clone());
        if let Ok(glance) = Messages.summarize_request(&bytes) {
            let sent = Messages.forward_request(&body, &glance, &target).unwrap();
            prop_assert!(serde_json::from_slice::<Value>(&sent).is_ok());
        }
        if let Ok(request) = Messages.read_request(&bytes) {
            let _ = Messages.write_request(&request, &target);
        }
        if let Ok(reply) = Messages.read_response(&bytes) {
            let written = Messages.write_response(&reply, &rendering);
            prop_assert!(serde_json::from_slice::<Value>(&written).is_ok());
        }
        let _ = Messages.forward_response(&body, "x");
        let _ = Messages.read_error(500, &bytes);
        let mut events = Vec::new();
        let mut reader = Messages.stream_reader();
        let read = reader.push(&bytes, &mut events).and_then(|()| reader.finish(&mut events));
        let mut forward = Messages.stream_forwarder(&rendering);
        let passed = forward.push(body).map(|_| ()).and_then(|()| forward.finish());
        // What can be read can be passed on.
        if read.is_ok() {
            prop_assert!(passed.is_ok(), "{:?}", passed);
        }
        accumulate(&stream(&events));
    }

    #[test]
    fn forwarding_does_not_depend_on_the_cut(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), crlf in any::<bool>()) {
        let mut sse = String::from_utf8(samples().remove(2)).unwrap();
        if crlf {
            sse = sse.replace('\n', "\r\n");
        }
        let run = |pieces: &[&[u8]]| {
            let rendering = RenderOptions { model: "another", ..rendering() };
            let mut forward = Messages.stream_forwarder(&rendering);
            let mut out = Vec::new();
            for piece in pieces {
                out.extend_from_slice(&forward.push(Bytes::copy_from_slice(piece)).unwrap().bytes);
            }
            forward.finish().unwrap();
            out.extend_from_slice(&forward.end());
            out
        };
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(sse.len())).collect();
        places.extend([0, sse.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|w| &sse.as_bytes()[w[0]..w[1]]).collect();
        prop_assert_eq!(run(&pieces), run(&[sse.as_bytes()]));
    }
}
