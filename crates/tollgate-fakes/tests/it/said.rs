//! What answers say, read out of every format; streams put together to what would have come whole.

use serde_json::{Value, json};

use crate::client::{CHAT, MESSAGES, RESPONSES, Reply, Wire};

/// What an answer says, whatever its format.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) thought: String,
    /// Names and arguments.
    pub(crate) calls: Vec<(String, Value)>,
    pub(crate) end: String,
    /// Input, cached, output, reasoning.
    pub(crate) usage: [u64; 4],
}

pub(crate) fn said(wire: Wire, reply: &Value) -> Said {
    match wire.path {
        path if path == CHAT.path => of_chat(reply),
        path if path == RESPONSES.path => of_response(reply),
        path if path == MESSAGES.path => of_message(reply),
        _ => of_generated(reply),
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn counts(usage: &Value, names: [&str; 4]) -> [u64; 4] {
    names.map(|name| usage.pointer(name).and_then(Value::as_u64).unwrap_or(0))
}

fn parsed(arguments: &Value) -> Value {
    serde_json::from_str(&text(arguments)).expect("arguments")
}

fn of_chat(reply: &Value) -> Said {
    let choice = &reply["choices"][0];
    let calls = choice["message"]["tool_calls"]
        .as_array()
        .into_iter()
        .flatten();
    let call = |call: &Value| {
        let function = &call["function"];
        (text(&function["name"]), parsed(&function["arguments"]))
    };
    let names = [
        "/prompt_tokens",
        "/prompt_tokens_details/cached_tokens",
        "/completion_tokens",
        "/completion_tokens_details/reasoning_tokens",
    ];
    Said {
        text: text(&choice["message"]["content"]),
        thought: text(&choice["message"]["reasoning_content"]),
        calls: calls.map(call).collect(),
        end: text(&choice["finish_reason"]),
        usage: counts(&reply["usage"], names),
    }
}

fn of_response(reply: &Value) -> Said {
    let mut said = Said {
        end: text(&reply["status"]),
        ..Said::default()
    };
    for item in reply["output"].as_array().into_iter().flatten() {
        match item["type"].as_str().unwrap_or_default() {
            "message" => said.text += &text(&item["content"][0]["text"]),
            "reasoning" => said.thought += &text(&item["summary"][0]["text"]),
            _ => said
                .calls
                .push((text(&item["name"]), parsed(&item["arguments"]))),
        }
    }
    let names = [
        "/input_tokens",
        "/input_tokens_details/cached_tokens",
        "/output_tokens",
        "/output_tokens_details/reasoning_tokens",
    ];
    said.usage = counts(&reply["usage"], names);
    said
}

fn of_message(reply: &Value) -> Said {
    let mut said = Said {
        end: text(&reply["stop_reason"]),
        ..Said::default()
    };
    for block in reply["content"].as_array().into_iter().flatten() {
        match block["type"].as_str().unwrap_or_default() {
            "text" => said.text += &text(&block["text"]),
            "thinking" => {
                assert!(text(&block["signature"]).starts_with("sig_fake_"));
                said.thought += &text(&block["thinking"]);
            }
            _ => said
                .calls
                .push((text(&block["name"]), block["input"].clone())),
        }
    }
    let usage = &reply["usage"];
    let names = [
        "/input_tokens",
        "/cache_read_input_tokens",
        "/output_tokens",
        "/output_tokens_details/thinking_tokens",
    ];
    said.usage = counts(usage, names);
    let written = usage["cache_creation_input_tokens"].as_u64().unwrap_or(0);
    let parts = usage["cache_creation"].as_object().into_iter().flatten();
    assert_eq!(written, parts.filter_map(|(_, n)| n.as_u64()).sum::<u64>());
    said.usage[0] += said.usage[1] + written;
    said
}

pub(crate) fn of_generated(reply: &Value) -> Said {
    let candidate = &reply["candidates"][0];
    let mut said = Said {
        end: text(&candidate["finishReason"]),
        ..Said::default()
    };
    for part in candidate["content"]["parts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if part["thought"] == true {
            said.thought += &text(&part["text"]);
        } else if let Some(call) = part.get("functionCall") {
            said.calls.push((text(&call["name"]), call["args"].clone()));
        } else {
            said.text += &text(&part["text"]);
        }
    }
    let usage = &reply["usageMetadata"];
    let names = [
        "/promptTokenCount",
        "/cachedContentTokenCount",
        "/candidatesTokenCount",
        "/thoughtsTokenCount",
    ];
    said.usage = counts(usage, names);
    said.usage[2] += said.usage[3];
    assert_eq!(usage["totalTokenCount"], said.usage[0] + said.usage[2]);
    said
}

/// A stream put together to what would have come whole.
pub(crate) fn folded(wire: Wire, reply: &Reply) -> Value {
    let events = reply.events();
    match wire.path {
        path if path == CHAT.path => fold_chat(&events),
        path if path == RESPONSES.path => fold_response(&events),
        path if path == MESSAGES.path => fold_message(&events),
        _ => fold_generated(&events),
    }
}

fn add(to: &mut Value, more: &Value) {
    *to = json!(text(to) + &text(more));
}

fn fold_chat(events: &[Value]) -> Value {
    let mut message = json!({"content": "", "reasoning_content": "", "tool_calls": []});
    let mut reason = Value::Null;
    let mut usage = Value::Null;
    for event in events {
        assert_eq!(event["id"], events[0]["id"]);
        usage = event["usage"].clone();
        let Some(choice) = event["choices"].get(0) else {
            continue;
        };
        assert_eq!(reason, Value::Null, "nothing follows the end");
        reason = choice["finish_reason"].clone();
        add(&mut message["content"], &choice["delta"]["content"]);
        add(
            &mut message["reasoning_content"],
            &choice["delta"]["reasoning_content"],
        );
        for call in choice["delta"]["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
        {
            let index = call["index"].as_u64().expect("an index") as usize;
            let calls = message["tool_calls"].as_array_mut().expect("a list");
            if index == calls.len() {
                assert!(call["id"].is_string() && call["function"]["name"].is_string());
                calls.push(call.clone());
            } else {
                assert!(call.get("id").is_none());
                add(
                    &mut calls[index]["function"]["arguments"],
                    &call["function"]["arguments"],
                );
            }
        }
    }
    let choice = json!({"message": message, "finish_reason": reason});
    json!({"choices": [choice], "usage": usage})
}

fn fold_response(events: &[Value]) -> Value {
    assert_eq!(events[0]["type"], "response.created");
    let mut added = Vec::new();
    let mut done = Vec::new();
    let mut texts = String::new();
    for (number, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], number);
        match event["type"].as_str().unwrap_or_default() {
            "response.output_item.added" => {
                assert_eq!(event["output_index"], added.len());
                added.push(event["item"]["id"].clone());
            }
            "response.output_item.done" => {
                assert_eq!(event["item"]["id"], added[done.len()]);
                done.push(event["item"].clone());
            }
            "response.output_text.delta" => {
                assert_eq!(Some(&event["item_id"]), added.last());
                texts += &text(&event["delta"]);
            }
            _ => {}
        }
    }
    let response = events.last().expect("an end")["response"].clone();
    assert_eq!(response["output"], json!(done));
    assert_eq!(of_response(&response).text, texts);
    response
}

fn fold_message(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut open = None;
    for event in &events[1..] {
        let blocks = message["content"].as_array_mut().expect("a list");
        match event["type"].as_str().unwrap_or_default() {
            "content_block_start" => {
                assert_eq!((open, &event["index"]), (None, &json!(blocks.len())));
                open = event["index"].as_u64();
                blocks.push(event["content_block"].clone());
                blocks.last_mut().expect("a block")["partial"] = json!("");
            }
            "content_block_delta" => {
                assert_eq!(event["index"].as_u64(), open);
                let block = blocks.last_mut().expect("a block");
                let delta = &event["delta"];
                add(&mut block["partial"], &delta["partial_json"]);
                for name in ["text", "thinking", "signature"] {
                    if let Some(more) = delta.get(name) {
                        add(&mut block[name], more);
                    }
                }
            }
            "content_block_stop" => {
                open = None;
                let block = blocks.last_mut().expect("a block");
                if block["type"] == "tool_use" {
                    block["input"] = parsed(&block["partial"]);
                }
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    assert_eq!(events.last().expect("an end")["type"], "message_stop");
    message
}

pub(crate) fn fold_generated(events: &[Value]) -> Value {
    let mut whole = events.last().expect("a chunk").clone();
    let parts = events.iter().flat_map(|event| {
        let parts = event["candidates"][0]["content"]["parts"].as_array();
        parts.expect("every chunk has parts").clone()
    });
    whole["candidates"][0]["content"]["parts"] = parts.collect();
    whole
}
