//! Property tests of streams: always legal, and forwarded the same however they are cut.

use std::collections::BTreeMap;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate_chat::hub::{
    Citation, Event, ExtraFields, FinishReason, Opaque, Part, ResponseBuilder, Usage,
};
use tollgate_chat::{ErrorBody, Format, MalformedResponse};

use super::requests::word;
use super::{FORMAT, rendering};

fn event() -> impl Strategy<Value = Event> {
    let choice = || 0..3u32;
    let call = || 0..3u32;
    let signature = || {
        prop::option::of(
            prop::sample::select(vec!["gemini", "anthropic"])
                .prop_map(|vendor| Opaque::new(vendor, "c2ln")),
        )
    };
    let finish = prop::sample::select(vec![
        FinishReason::EndTurn,
        FinishReason::StopSequence,
        FinishReason::Length,
        FinishReason::ToolCall,
        FinishReason::Refusal,
        FinishReason::PromptBlocked,
        FinishReason::Pause,
        FinishReason::InvalidToolCall,
        FinishReason::Other,
        FinishReason::ContextFull,
    ]);
    let citation = Citation {
        url: "https://a.example".to_owned(),
        title: "A".to_owned(),
        start: Some(1),
        end: Some(4),
        cited_text: None,
        extra: ExtraFields::NONE,
    };
    prop_oneof![
        2 => word().prop_map(|id| Event::Start { id, model: String::new(), created: None, usage: None }),
        8 => (choice(), "[a-z猫\"\n]{0,4}").prop_map(|(choice, text)| Event::Text { choice, text }),
        2 => (choice(), signature()).prop_map(|(choice, signature)| Event::TextEnd { choice, signature }),
        3 => (choice(), word()).prop_map(|(choice, text)| Event::Reasoning { choice, text, summary: true }),
        2 => (choice(), signature()).prop_map(|(choice, signature)| Event::ReasoningEnd { choice, signature, id: None }),
        1 => choice().prop_map(|choice| Event::RedactedReasoning { choice, data: Opaque::new("anthropic", "x") }),
        1 => (choice(), word()).prop_map(|(choice, text)| Event::Refusal { choice, text }),
        4 => (choice(), call(), word()).prop_map(|(choice, call, name)| Event::ToolStart { choice, call, id: name.clone(), name, custom: false }),
        4 => (choice(), call(), "[{}\":a1]{0,4}").prop_map(|(choice, call, json)| Event::ToolArguments { choice, call, json }),
        4 => (choice(), call(), signature()).prop_map(|(choice, call, signature)| Event::ToolEnd { choice, call, signature }),
        1 => choice().prop_map(move |choice| Event::Citation { choice, citation: citation.clone() }),
        1 => choice().prop_map(|choice| Event::Part { choice, part: Part::text("part") }),
        1 => choice().prop_map(|choice| Event::Logprobs { choice, value: json!({"content": [{"token": "a", "logprob": -1.0}]}) }),
        1 => (1..100u64).prop_map(|output| Event::Usage(Usage { output, ..Usage::default() })),
        1 => (choice(), finish).prop_map(|(choice, finish)| Event::Finish { choice, finish, stop_sequence: None }),
    ]
}

/// The objects of a stream, parsed as strictly as the strictest SDK does: a line is `data: ` and
/// JSON, or empty.
fn objects_of(stream: &[u8], json_array: bool) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    if json_array {
        return serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    }
    assert!(text.ends_with("\n\n"), "{text:?}");
    let lines = text.split('\n').filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line.strip_prefix("data: ").expect(line)).unwrap())
        .collect()
}

/// Checks what holds for every stream: each object has a candidate with parts that are not empty;
/// finish reason and usage are on the last object only.
fn check_order(objects: &[Value], failed: bool) {
    let (last, before) = objects.split_last().unwrap();
    for object in before {
        assert!(
            object.get("error").is_none() && object.get("usageMetadata").is_none(),
            "{object}"
        );
        let candidate = &object["candidates"][0];
        assert!(candidate.get("finishReason").is_none(), "{object}");
        assert_parts(candidate);
        assert_eq!(
            (&object["modelVersion"], &object["responseId"]),
            (&json!("client-model"), &objects[0]["responseId"])
        );
    }
    if failed {
        let error = &last["error"];
        assert!(
            error["code"].is_u64() && error["message"].is_string() && error["status"].is_string(),
            "{last}"
        );
        return;
    }
    let usage = &last["usageMetadata"];
    let sum = [
        "promptTokenCount",
        "candidatesTokenCount",
        "thoughtsTokenCount",
    ]
    .iter()
    .map(|name| usage[name].as_u64().unwrap());
    assert_eq!(sum.sum::<u64>(), usage["totalTokenCount"].as_u64().unwrap());
    match last.get("candidates") {
        None => assert!(
            before.is_empty() && last["promptFeedback"]["blockReason"].is_string(),
            "{last}"
        ),
        Some(candidates) => {
            for candidate in candidates.as_array().unwrap() {
                assert!(candidate["finishReason"].is_string(), "{last}");
                assert_parts(candidate);
            }
        }
    }
}

fn assert_parts(candidate: &Value) {
    assert_eq!(candidate["content"]["role"], "model");
    let parts = candidate["content"]["parts"].as_array().unwrap();
    assert!(!parts.is_empty());
    assert!(
        parts
            .iter()
            .all(|part| part.as_object().is_some_and(|part| !part.is_empty())),
        "{candidate}"
    );
    for call in parts.iter().filter_map(|part| part.get("functionCall")) {
        assert!(
            call["args"].is_object() && call["name"].is_string(),
            "{candidate}"
        );
    }
}

/// Visible text by choice: of objects, and of events up to each choice's finish.
fn text_of_objects(objects: &[Value]) -> BTreeMap<u64, String> {
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    for candidate in objects
        .iter()
        .flat_map(|object| object["candidates"].as_array().into_iter().flatten())
    {
        for part in candidate["content"]["parts"].as_array().unwrap() {
            if part.get("thought").is_none() {
                let text = part["text"].as_str().unwrap_or_default();
                texts
                    .entry(candidate["index"].as_u64().unwrap())
                    .or_default()
                    .push_str(text);
            }
        }
    }
    texts.retain(|_, text| !text.is_empty());
    texts
}

fn text_of_events(events: &[Event]) -> BTreeMap<u64, String> {
    let mut texts: BTreeMap<u64, String> = BTreeMap::new();
    let mut finished = Vec::new();
    for event in events {
        match event {
            Event::Text { choice, text } | Event::Refusal { choice, text }
                if !finished.contains(choice) =>
            {
                texts.entry(u64::from(*choice)).or_default().push_str(text);
            }
            Event::Part { choice, .. } if !finished.contains(choice) => {
                texts
                    .entry(u64::from(*choice))
                    .or_default()
                    .push_str("part");
            }
            Event::Finish { choice, .. } => finished.push(*choice),
            _ => {}
        }
    }
    texts.retain(|_, text| !text.is_empty());
    texts
}

fn error() -> ErrorBody {
    ErrorBody {
        status: 503,
        message: "busy".to_owned(),
        param: None,
        code: None,
        bare: true,
    }
}

proptest! {
    #[test]
    fn any_events_make_a_legal_stream(
        events in prop::collection::vec(event(), 0..40), json_array: bool, fails: bool, quiet in prop::collection::vec(any::<bool>(), 40)
    ) {
        let mut writer = FORMAT.stream_writer(&rendering(json_array));
        let mut out = Vec::new();
        for (event, quiet) in events.iter().zip(quiet) {
            if quiet {
                writer.keep_alive(&mut out);
            }
            writer.write(event, &mut out);
        }
        if fails { writer.error(&error(), &mut out) } else { writer.end(&mut out) }
        let length = out.len();
        writer.end(&mut out);
        writer.error(&error(), &mut out);
        writer.keep_alive(&mut out);
        events.iter().for_each(|event| writer.write(event, &mut out));
        prop_assert_eq!(out.len(), length, "nothing comes after the end");
        let objects = objects_of(&out, json_array);
        check_order(&objects, fails);
        prop_assert_eq!(text_of_objects(&objects), text_of_events(&events));
    }

    #[test]
    fn a_stream_is_forwarded_the_same_however_it_is_cut(
        pieces in prop::collection::vec((word(), any::<bool>(), prop::sample::select(vec!["\n\n", "\r\n\r\n", "\r\r", "\n\n\n"])), 1..8),
        cuts in prop::collection::vec(1..60usize, 0..40), json_array: bool, model in prop::sample::select(vec!["client-model", "other"]),
    ) {
        let mut stream = String::new();
        let count = pieces.len();
        for (at, (text, stops, end)) in pieces.iter().enumerate() {
            let mut piece = json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}, "index": 0}], "modelVersion": model});
            if *stops || at + 1 == count {
                piece["candidates"][0]["finishReason"] = json!("STOP");
                piece["usageMetadata"] = json!({"promptTokenCount": at, "totalTokenCount": at});
            }
            stream.push_str(&format!("data: {piece}{end}"));
        }
        let whole = pass(&stream, &[], json_array);
        let cut = pass(&stream, &cuts, json_array);
        prop_assert_eq!(&whole.0, &cut.0);
        prop_assert_eq!(whole.1, Ok(()));
        let text = String::from_utf8(whole.0.clone()).unwrap().replace('\r', "\n");
        let objects = objects_of(text.as_bytes(), json_array);
        let expected: String = pieces.iter().map(|piece| piece.0.as_str()).collect();
        prop_assert_eq!(text_of_objects(&objects).remove(&0).unwrap_or_default(), expected);
        prop_assert!(objects.iter().all(|object| object["modelVersion"] == "client-model"));
    }
}

/// Forwards a stream in pieces of these lengths. Returns the output and the outcome.
fn pass(
    stream: &str,
    cuts: &[usize],
    json_array: bool,
) -> (Vec<u8>, Result<(), MalformedResponse>) {
    let mut forward = FORMAT.stream_forwarder(&rendering(json_array));
    let (mut out, mut rest) = (Vec::new(), Bytes::copy_from_slice(stream.as_bytes()));
    let mut cuts = cuts.iter();
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |cut| (*cut).min(rest.len()));
        match forward.push(rest.split_to(length)) {
            Ok(forwarded) => out.extend_from_slice(&forwarded.bytes),
            Err(error) => return (out, Err(error)),
        }
    }
    let outcome = forward.finish();
    out.extend_from_slice(&forward.end());
    assert!(forward.end().is_empty());
    (out, outcome)
}

#[test]
fn a_call_cut_off_by_the_token_limit_is_left_out() {
    let events = |json: &str, finish: FinishReason| {
        let call = |event: fn(u32) -> Event| event(0);
        vec![
            call(|call| Event::ToolStart {
                choice: 0,
                call,
                id: "a".to_owned(),
                name: "f".to_owned(),
                custom: false,
            }),
            Event::ToolArguments {
                choice: 0,
                call: 0,
                json: json.to_owned(),
            },
            call(|call| Event::ToolEnd {
                choice: 0,
                call,
                signature: None,
            }),
            Event::Finish {
                choice: 0,
                finish,
                stop_sequence: None,
            },
        ]
    };
    for (json, finish, calls) in [
        ("{\"a\":", FinishReason::Length, 0),
        ("{\"a\":1}", FinishReason::Length, 1),
        ("{\"a\":", FinishReason::ToolCall, 1),
        ("", FinishReason::ToolCall, 1),
    ] {
        let events = events(json, finish);
        let mut writer = FORMAT.stream_writer(&rendering(false));
        let mut out = Vec::new();
        events
            .iter()
            .for_each(|event| writer.write(event, &mut out));
        writer.end(&mut out);
        let mut fold = ResponseBuilder::default();
        events.iter().for_each(|event| fold.push(event));
        for text in [out, FORMAT.write_response(&fold.build(), &rendering(false))] {
            let text = String::from_utf8(text).unwrap();
            assert_eq!(
                text.matches("functionCall").count(),
                calls,
                "{json} {finish:?}"
            );
        }
    }
}

#[test]
fn complete_events_are_forwarded_without_a_copy_and_the_end_is_held_back() {
    let piece = |text: &str, rest: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}{rest}}}],\"modelVersion\":\"client-model\"}}\r\n\r\n"
        )
    };
    let mut forward = FORMAT.stream_forwarder(&rendering(false));
    let chunk = Bytes::from(piece("a", "") + &piece("b", ""));
    let now = forward.push(chunk.clone()).unwrap().bytes;
    assert_eq!((now.as_ptr(), now.len()), (chunk.as_ptr(), chunk.len()));
    let last = Bytes::from(piece("c", ",\"finishReason\":\"STOP\""));
    assert_eq!(forward.push(last.clone()).unwrap().bytes, Bytes::new());
    forward.finish().unwrap();
    assert_eq!(
        forward.end(),
        std::str::from_utf8(&last).unwrap().replace('\r', "")
    );
    assert_eq!(forward.text_bytes(), 3);
}

#[test]
fn a_truncated_json_array_is_closed_with_an_error() {
    let piece = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n";
    for stream in ["", piece] {
        let mut forward = FORMAT.stream_forwarder(&rendering(true));
        let mut out = forward.push(Bytes::from(stream)).unwrap().bytes.to_vec();
        forward.keep_alive(&mut out);
        assert_eq!(forward.finish(), Err(MalformedResponse::Truncated));
        forward.error(&error(), &mut out);
        let list: Vec<Value> = serde_json::from_slice(&out).unwrap();
        assert_eq!(list.last().unwrap()["error"]["status"], "UNAVAILABLE");
    }
}
