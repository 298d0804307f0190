//! Joins streams to the complete reply, and checks the order of their events.

use serde_json::{Value, json};

use super::format::{Format, list, parse_response, text};
use crate::harness::Event;

fn add(to: &mut Value, more: &Value) {
    *to = json!(text(to) + &text(more));
}

pub(super) fn join_chat(events: &[Event]) -> Value {
    let (last, events) = events.split_last().expect("events");
    assert_eq!(last.data, "[DONE]", "{events:?}");
    let mut message = json!({"content": "", "reasoning_content": "", "tool_calls": []});
    let mut reason = Value::Null;
    let mut usage = Value::Null;
    let first = events[0].json();
    for event in events.iter().map(Event::json) {
        assert_eq!(event["object"], "chat.completion.chunk", "{event}");
        assert_eq!(event["id"], first["id"]);
        assert_eq!(event["model"], first["model"]);
        usage = event["usage"].clone();
        let Some(choice) = event["choices"].get(0) else {
            continue;
        };
        assert_eq!(reason, Value::Null, "nothing follows the end: {event}");
        reason = choice["finish_reason"].clone();
        let delta = &choice["delta"];
        add(&mut message["content"], &delta["content"]);
        add(
            &mut message["reasoning_content"],
            &delta["reasoning_content"],
        );
        for call in list(&delta["tool_calls"]) {
            let index = call["index"].as_u64().expect("an index") as usize;
            let calls = message["tool_calls"].as_array_mut().expect("a list");
            if index == calls.len() {
                assert!(call["id"].is_string() && call["function"]["name"].is_string());
                let mut call = call.clone();
                call.as_object_mut().unwrap().remove("index");
                calls.push(call);
            } else {
                let more = &call["function"]["arguments"];
                add(&mut calls[index]["function"]["arguments"], more);
            }
        }
    }
    assert!(reason.is_string(), "a reason to end: {events:?}");
    json!({"model": first["model"], "choices": [{"message": message, "finish_reason": reason}], "usage": usage})
}

pub(super) fn join_response(events: &[Event]) -> Value {
    let first = events.first().expect("events").json();
    assert_eq!(first["type"], "response.created");
    let (mut added, mut done) = (Vec::new(), Vec::new());
    let mut texts = String::new();
    for (number, event) in events.iter().enumerate() {
        let json = event.json();
        assert_eq!(json["sequence_number"], number, "{json}");
        assert_eq!(json["type"], event.name.as_str());
        match event.name.as_str() {
            "response.output_item.added" => {
                assert_eq!(json["output_index"], added.len());
                added.push(json["item"]["id"].clone());
            }
            "response.output_item.done" => {
                assert_eq!(json["item"]["id"], added[done.len()]);
                done.push(json["item"].clone());
            }
            "response.output_text.delta" => {
                assert_eq!(Some(&json["item_id"]), added.last());
                texts += &text(&json["delta"]);
            }
            _ => {}
        }
    }
    let last = events.last().expect("an end");
    assert!(Format::Responses.is_end(last), "{last:?}");
    let response = last.json()["response"].clone();
    assert_eq!(response["output"], json!(done));
    assert_eq!(parse_response(&response).text, texts);
    response
}

pub(super) fn join_message(events: &[Event]) -> Value {
    let first = events.first().expect("events");
    assert_eq!(first.name, "message_start");
    let mut message = first.json()["message"].clone();
    let mut partial = String::new();
    for event in &events[1..] {
        let json = event.json();
        assert_eq!(json["type"], event.name.as_str());
        let blocks = message["content"].as_array_mut().expect("a list");
        match event.name.as_str() {
            "content_block_start" => {
                assert_eq!(json["index"], blocks.len());
                blocks.push(json["content_block"].clone());
                partial.clear();
            }
            "content_block_delta" => {
                assert_eq!(json["index"], blocks.len() - 1);
                let (block, delta) = (blocks.last_mut().expect("a block"), &json["delta"]);
                partial += &text(&delta["partial_json"]);
                for name in ["text", "thinking", "signature"] {
                    if let Some(more) = delta.get(name) {
                        add(&mut block[name], more);
                    }
                }
            }
            "content_block_stop" => {
                let block = blocks.last_mut().expect("a block");
                if block["type"] == "tool_use" {
                    let joined = if partial.is_empty() { "{}" } else { &partial };
                    block["input"] = serde_json::from_str(joined).expect(joined);
                }
            }
            "message_delta" => {
                message["stop_reason"] = json["delta"]["stop_reason"].clone();
                for (name, value) in json["usage"].as_object().expect("usage") {
                    message["usage"][name] = value.clone();
                }
            }
            "ping" | "message_stop" => {}
            _ => panic!("{event:?}"),
        }
    }
    assert_eq!(events.last().expect("an end").name, "message_stop");
    message
}

pub(super) fn join_generated(events: &[Event]) -> Value {
    let mut joined = events.last().expect("a chunk").json();
    assert!(
        joined["candidates"][0]["finishReason"].is_string(),
        "{joined}"
    );
    let chunks = events.iter().map(Event::json);
    let parts = chunks.flat_map(|chunk| {
        let parts = chunk["candidates"][0]["content"]["parts"]
            .as_array()
            .cloned();
        parts.unwrap_or_default()
    });
    joined["candidates"][0]["content"] =
        json!({"role": "model", "parts": parts.collect::<Vec<_>>()});
    joined
}
