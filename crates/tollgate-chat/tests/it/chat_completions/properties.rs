//! Properties: no input panics, no events make an illegal stream, and a request read and written is the same.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use tollgate_chat::chat_completions::ChatCompletions;
use tollgate_chat::hub::{
    Citation, Event, ExtraFields, FinishReason, Part, PartKind, ResponseBuilder, Usage,
    events_from_response,
};
use tollgate_chat::{Format, RenderOptions, Target};

use super::streams::write;
use super::{capabilities, chunk, events, fragment, read, rendering, sent};

fn words() -> impl Strategy<Value = String> {
    "[a-z \"\n]{0,4}[a-z\\\\é猫]{1,4}"
}

/// Any event, sensible or not.
fn any_event() -> impl Strategy<Value = Event> {
    let choice = 0..3_u32;
    let call = 0..3_u32;
    prop_oneof![
        words().prop_map(|id| Event::Start {
            id,
            model: "up".to_owned(),
            created: Some(5),
            usage: None
        }),
        (choice.clone(), words()).prop_map(|(choice, text)| Event::Text { choice, text }),
        choice.clone().prop_map(|choice| Event::TextEnd {
            choice,
            signature: None
        }),
        (choice.clone(), words(), any::<bool>()).prop_map(|(choice, text, summary)| {
            Event::Reasoning {
                choice,
                text,
                summary,
            }
        }),
        choice.clone().prop_map(|choice| Event::ReasoningEnd {
            choice,
            signature: None,
            id: None
        }),
        (choice.clone(), words()).prop_map(|(choice, text)| Event::Refusal { choice, text }),
        (choice.clone(), call.clone(), "[a-z]{0,3}", any::<bool>()).prop_map(
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
        (choice.clone(), call).prop_map(|(choice, call)| Event::ToolEnd {
            choice,
            call,
            signature: None
        }),
        (choice.clone(), words()).prop_map(|(choice, url)| Event::Citation {
            choice,
            citation: citation(url)
        }),
        (choice.clone(), words()).prop_map(|(choice, text)| Event::Part {
            choice,
            part: Part::text(text)
        }),
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

fn citation(url: String) -> Citation {
    Citation {
        url,
        title: String::new(),
        start: Some(0),
        end: Some(1),
        cited_text: None,
        extra: ExtraFields::NONE,
    }
}

/// What the official SDKs need of a stream, checked on its chunks.
#[derive(Default)]
struct Checked {
    role: bool,
    text: String,
    calls: Vec<String>,
    finished: bool,
}

fn check(chunks: &[Value], include_usage: bool) -> Vec<Checked> {
    let mut choices: Vec<(u64, Checked)> = Vec::new();
    let mut usage_seen = false;
    for chunk in chunks {
        assert!(!usage_seen, "usage is last");
        assert_eq!(chunk["id"], chunks[0]["id"]);
        assert_eq!(chunk["created"], chunks[0]["created"]);
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let list = chunk["choices"].as_array().expect("choices are a list");
        if list.is_empty() {
            assert!(include_usage && chunk["usage"].is_object());
            usage_seen = true;
            continue;
        }
        assert!(chunk["usage"].is_null());
        let choice = &list[0];
        let index = choice["index"].as_u64().unwrap();
        if !choices.iter().any(|c| c.0 == index) {
            choices.push((index, Checked::default()));
        }
        let (_, seen) = choices.iter_mut().find(|c| c.0 == index).unwrap();
        assert!(!seen.finished, "nothing of a choice after its finish");
        let delta = choice["delta"].as_object().expect("a delta is an object");
        assert_eq!(
            delta.contains_key("role"),
            !seen.role,
            "the role comes first and once"
        );
        seen.role = true;
        seen.text.push_str(
            delta
                .get("content")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        );
        for call in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let at = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            let first = at == seen.calls.len();
            assert!(at <= seen.calls.len(), "calls have no gaps");
            let inner = call.get("function").or(call.get("custom")).unwrap();
            assert_eq!(
                call.get("id").is_some_and(|id| id != ""),
                first,
                "an id once"
            );
            assert_eq!(inner.get("name").is_some(), first, "a name once");
            if first {
                seen.calls.push(String::new());
            }
            let piece = inner
                .get("arguments")
                .or(inner.get("input"))
                .and_then(Value::as_str)
                .unwrap();
            seen.calls[at].push_str(piece);
        }
        seen.finished = choice["finish_reason"].is_string();
    }
    assert!(
        !choices.is_empty() && choices.iter().all(|c| c.1.finished),
        "every choice is finished"
    );
    choices.into_iter().map(|c| c.1).collect()
}

/// A value of the format, sometimes.
fn maybe(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Option<Value>> {
    proptest::option::weighted(0.3, value)
}

fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        words().prop_map(|text| json!({"type": "text", "text": text})),
        words().prop_map(
            |text| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}})
        ),
        Just(
            json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "high"}})
        ),
        Just(
            json!({"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}})
        ),
        Just(json!({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}})),
        Just(json!({"type": "file", "file": {"file_id": "file-1"}})),
    ]
}

/// Turns that OpenAI would take.
fn turns() -> impl Strategy<Value = Vec<Value>> {
    let content = prop_oneof![
        words().prop_map(Value::from),
        prop::collection::vec(part(), 1..4).prop_map(Value::from)
    ];
    let system = ("system|developer", words())
        .prop_map(|(role, text)| vec![json!({"role": role, "content": text})]);
    let user = content
        .prop_map(|content| vec![json!({"role": "user", "content": content, "name": "ann"})]);
    let said = words().prop_map(|text| vec![json!({"role": "assistant", "content": text})]);
    let called = (1..4_usize, words(), any::<bool>()).prop_map(|(count, text, silent)| {
        let call = |at: usize| json!({"id": format!("c{at}"), "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1}"}});
        let calls: Vec<Value> = (0..count).map(call).collect();
        let content = if silent { Value::Null } else { Value::from(text.clone()) };
        let mut turns = vec![json!({"role": "assistant", "content": content, "tool_calls": calls})];
        turns.extend((0..count).map(|at| json!({"role": "tool", "tool_call_id": format!("c{at}"), "content": text})));
        turns
    });
    prop::collection::vec(prop_oneof![system, user, said, called], 1..6)
        .prop_map(|turns| turns.concat())
}

fn request() -> impl Strategy<Value = Value> {
    let tool = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}, "strict": true}});
    let fields: Vec<(&str, Value)> = vec![
        ("temperature", json!(0.5)),
        ("top_p", json!(1.0)),
        ("max_tokens", json!(7)),
        ("n", json!(2)),
        ("stop", json!(["a", "b"])),
        ("seed", json!(-3)),
        ("user", json!("u")),
        ("tools", json!([tool])),
        (
            "tool_choice",
            json!({"type": "function", "function": {"name": "f"}}),
        ),
        ("parallel_tool_calls", json!(false)),
        ("response_format", json!({"type": "json_object"})),
        ("reasoning_effort", json!("low")),
        ("logit_bias", json!({"5": 1})),
        ("unheard_of", json!({"a": [1]})),
        ("prediction", json!({"type": "content", "content": "x"})),
        ("safety_identifier", json!("s")),
        ("service_tier", json!("flex")),
        ("metadata", json!({"k": "v"})),
        ("logprobs", json!(true)),
    ];
    let fields = fields.into_iter().map(|(name, value)| {
        maybe(Just(value))
            .prop_map(move |value| (name, value))
            .boxed()
    });
    (turns(), fields.collect::<Vec<_>>()).prop_map(|(messages, fields)| {
        let mut map = Map::from_iter([
            ("model".to_owned(), json!("up")),
            ("messages".to_owned(), messages.into()),
        ]);
        map.extend(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
        map.into()
    })
}

/// Replies of one or more choices.
fn reply() -> impl Strategy<Value = Value> {
    let call = (words(), "[a-z]{1,5}").prop_map(|(id, name)| {
        json!({"id": format!("c{id}"), "type": "function", "function": {"name": name, "arguments": "{\"a\": [1]}"}})
    });
    let calls = prop::collection::vec(call, 0..3);
    let message = (
        words(),
        proptest::option::of(words()),
        proptest::option::of(words()),
        calls,
    );
    let choice = (
        message,
        prop::sample::select(vec!["stop", "length", "content_filter"]),
    );
    prop::collection::vec(choice, 1..4).prop_map(|choices| {
        let choice = |(index, ((text, thought, refusal, calls), finish)): (usize, _)| {
            let mut seen = std::collections::HashSet::new();
            let calls: Vec<Value> = Vec::<Value>::into_iter(calls)
                .filter(|call| seen.insert(call["id"].to_string()))
                .collect();
            let message = json!({"role": "assistant", "content": text, "reasoning_content": thought, "refusal": refusal, "tool_calls": calls});
            json!({"index": index, "message": message, "finish_reason": finish})
        };
        let choices: Vec<Value> = choices.into_iter().enumerate().map(choice).collect();
        json!({"id": "r", "created": 3, "model": "up", "choices": choices, "usage": {"prompt_tokens": 3, "completion_tokens": 4}})
    })
}

/// Requests, replies and streams to be damaged.
fn samples() -> Vec<Vec<u8>> {
    let request = json!({"model": "m", "stream": true, "stop": ["a"], "messages": [
        {"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "a", "content": "x"}], "response_format": {"type": "json_schema", "json_schema": {"schema": {}}},
        "tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"tools": []}}});
    let reply = json!({"id": "a", "model": "m", "choices": [{"index": 0, "message": {"content": "é", "annotations": [], "tool_calls": [
        {"id": "a", "function": {"name": "f", "arguments": "{}"}}]}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2}});
    let stream = chunk(json!({"role": "assistant", "content": "é"}), None)
        + &fragment(json!(0), json!("a"), json!("f"), "{}")
        + &chunk(json!({}), Some("stop"))
        + "data: [DONE]\n\n";
    let error =
        json!([{"error": {"code": 429, "message": "m", "details": [{"retryDelay": "1s"}]}}]);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_events_make_an_illegal_stream(events in prop::collection::vec(any_event(), 0..40), include_usage in any::<bool>()) {
        let rendering = RenderOptions { include_usage, ..rendering() };
        let (chunks, _) = write(&rendering, &events);
        check(&chunks, include_usage);
    }

    #[test]
    fn a_request_read_and_written_is_the_same(body in request()) {
        let bytes = body.to_string();
        let written = sent(&read(bytes.as_bytes()), &capabilities());
        prop_assert_eq!(&written, &body);
        let glance = ChatCompletions.summarize_request(bytes.as_bytes());
        prop_assert!(glance.is_ok(), "{:?}", glance);
    }

    #[test]
    fn a_reply_survives_itself_and_the_way_through_a_stream(body in reply()) {
        let reply = ChatCompletions.read_response(body.to_string().as_bytes()).unwrap();
        let written = ChatCompletions.write_response(&reply, &rendering());
        let again = ChatCompletions.read_response(&written).unwrap();
        prop_assert_eq!(&again.choices, &reply.choices);
        let told = events_from_response(&reply);
        let rendering = RenderOptions { include_usage: true, ..rendering() };
        let (chunks, sse) = write(&rendering, &told);
        let checked = check(&chunks, true);
        let mut fold = ResponseBuilder::default();
        events(&sse).unwrap().iter().for_each(|event| fold.push(event));
        let streamed = fold.build();
        prop_assert_eq!(streamed.usage, reply.usage);
        prop_assert_eq!(streamed.choices, reply.choices.clone());
        for (seen, choice) in checked.iter().zip(&reply.choices) {
            let text = choice.parts.iter().find_map(|part| match &part.kind {
                PartKind::Text { text, .. } => Some(text.as_str()),
                _ => None,
            });
            prop_assert_eq!(seen.text.as_str(), text.unwrap_or_default());
        }
    }

    #[test]
    fn no_bytes_panic(bytes in damaged()) {
        let rendering = rendering();
        let capabilities = capabilities();
        let target = Target { model: "m", stream: true, capabilities: &capabilities, default_max_tokens: 1 };
        let body = Bytes::from(bytes.clone());
        if let Ok(glance) = ChatCompletions.summarize_request(&bytes) {
            let _ = ChatCompletions.forward_request(&body, &glance, &target);
        }
        if let Ok(request) = ChatCompletions.read_request(&bytes) {
            let _ = ChatCompletions.write_request(&request, &target);
        }
        if let Ok(reply) = ChatCompletions.read_response(&bytes) {
            let written = ChatCompletions.write_response(&reply, &rendering);
            prop_assert!(serde_json::from_slice::<Value>(&written).is_ok());
        }
        let _ = ChatCompletions.forward_response(&body, "x");
        let _ = ChatCompletions.read_error(500, &bytes);
        let mut events = Vec::new();
        let mut reader = ChatCompletions.stream_reader();
        let read = reader.push(&bytes, &mut events).and_then(|()| reader.finish(&mut events));
        let mut forward = ChatCompletions.stream_forwarder(&rendering);
        let passed = forward.push(body).map(|_| ()).and_then(|()| forward.finish());
        // What can be read can be passed on.
        if read.is_ok() {
            prop_assert!(passed.is_ok(), "{:?}", passed);
        }
        let (chunks, _) = write(&rendering, &events);
        check(&chunks, false);
    }

    #[test]
    fn forwarding_does_not_depend_on_the_cut(cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6), crlf in any::<bool>()) {
        let mut sse = String::from_utf8(samples().remove(2)).unwrap();
        if crlf {
            sse = sse.replace('\n', "\r\n");
        }
        let run = |pieces: &[&[u8]]| {
            let mut forward = ChatCompletions.stream_forwarder(&rendering());
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
