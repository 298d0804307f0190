//! The four formats as their clients see them: paths, streams put together, and what an answer says.

use serde_json::{Value, json};

use crate::gate::{Client, Event};

/// A client's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    Messages,
    Generate,
}

use Wire::{Chat, Generate, Messages, Responses};

/// What an answer says, whatever its format.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) thought: String,
    pub(super) calls: Vec<Call>,
    /// As the format calls it.
    pub(super) end: String,
    /// Input (all of it), cached, output (all of it), reasoning.
    pub(super) usage: [u64; 4],
    /// The model's turn, as a client of the format sends it back.
    pub(super) turn: Vec<Value>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Wire {
    pub(super) const ALL: [Self; 4] = [Chat, Responses, Messages, Generate];

    /// The path with the envelope.
    pub(super) fn spec_path(self, model: &str, stream: bool) -> String {
        match self {
            Chat => "/api/v1/chat/completions".to_owned(),
            Responses => "/v1/responses".to_owned(),
            Messages => "/v1/messages".to_owned(),
            Generate => format!("/v1beta/models/{model}:{}", method(stream)),
        }
    }

    /// Where the vendor's own SDK asks.
    pub(super) fn bare_path(self, model: &str, stream: bool) -> String {
        let sse = if stream { "?alt=sse" } else { "" };
        match self {
            Chat => "/openai/v1/chat/completions".to_owned(),
            Responses => "/openai/v1/responses".to_owned(),
            Messages => "/anthropic/v1/messages".to_owned(),
            Generate => format!("/gemini/v1beta/models/{model}:{}{sse}", method(stream)),
        }
    }

    /// The message of an error in this format, which must be of this status.
    #[track_caller]
    pub(super) fn error(self, status: u16, body: &Value) -> String {
        let error = &body["error"];
        match self {
            Messages => assert_eq!(body["type"], "error", "{body}"),
            _ => assert!(
                error["type"].is_string() || error["status"].is_string(),
                "{body}"
            ),
        }
        if self == Generate {
            assert_eq!(error["code"], status, "{body}");
        }
        error["message"]
            .as_str()
            .unwrap_or_else(|| panic!("{body}"))
            .to_owned()
    }

    /// Asks on the bare path; else the status and what was said with it.
    pub(super) async fn ask(
        self,
        client: &Client,
        model: &str,
        stream: bool,
        body: &Value,
    ) -> Result<Said, (u16, String)> {
        let path = self.bare_path(model, stream);
        if !stream {
            let reply = client.post(&path, body).await;
            return match reply.status {
                200 => Ok(self.said(&reply.json())),
                status => Err((status, reply.text())),
            };
        }
        let mut reply = client.open(&path, body).await;
        if reply.status != 200 {
            return Err((reply.status, reply.text().await));
        }
        let events = reply.events().await;
        assert!(!reply.broken, "{self:?} {model}");
        Ok(self.said(&self.folded(&events)))
    }

    /// What a whole, bare reply says.
    pub(super) fn said(self, reply: &Value) -> Said {
        match self {
            Chat => of_chat(reply),
            Responses => of_response(reply),
            Messages => of_message(reply),
            Generate => of_generated(reply),
        }
    }

    /// A stream that ends well, put together to what would have come whole.
    pub(super) fn folded(self, events: &[Event]) -> Value {
        match self {
            Chat => fold_chat(events),
            Responses => fold_response(events),
            Messages => fold_message(events),
            Generate => fold_generated(events),
        }
    }

    /// Whether an event is the one that tells a good end.
    pub(super) fn is_end(self, event: &Event) -> bool {
        match self {
            Chat => event.data == "[DONE]",
            Responses => matches!(
                event.name.as_str(),
                "response.completed" | "response.incomplete"
            ),
            Messages => event.name == "message_stop",
            Generate => {
                let json = event.json();
                let blocked = json["promptFeedback"]["blockReason"].is_string();
                blocked || json["candidates"][0]["finishReason"].is_string()
            }
        }
    }

    /// Whether an event is the format's error; its message.
    pub(super) fn error_event(self, event: &Event) -> Option<String> {
        let json = event.json();
        let error = match self {
            Responses if event.name == "error" => &json,
            Responses if event.name == "response.failed" => &json["response"]["error"],
            Responses => return None,
            _ => json.get("error")?,
        };
        Some(
            error["message"]
                .as_str()
                .unwrap_or_else(|| panic!("{json}"))
                .to_owned(),
        )
    }

    /// The text that an event brings.
    pub(super) fn piece(self, event: &Event) -> String {
        let json = event.json();
        let piece = match self {
            Chat => &json["choices"][0]["delta"]["content"],
            Responses if event.name == "response.output_text.delta" => &json["delta"],
            Responses => &Value::Null,
            Messages => &json["delta"]["text"],
            Generate => &json["candidates"][0]["content"]["parts"][0]["text"],
        };
        text(piece)
    }
}

fn method(stream: bool) -> &'static str {
    if stream {
        "streamGenerateContent"
    } else {
        "generateContent"
    }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn counts(usage: &Value, names: [&str; 4]) -> [u64; 4] {
    names.map(|name| usage.pointer(name).and_then(Value::as_u64).unwrap_or(0))
}

fn parsed(arguments: &Value) -> Value {
    serde_json::from_str(&text(arguments)).unwrap_or_else(|e| panic!("{e}: {arguments}"))
}

fn of_chat(reply: &Value) -> Said {
    let choice = &reply["choices"][0];
    let message = &choice["message"];
    let call = |call: &Value| Call {
        id: text(&call["id"]),
        name: text(&call["function"]["name"]),
        arguments: parsed(&call["function"]["arguments"]),
    };
    let names = [
        "/prompt_tokens",
        "/prompt_tokens_details/cached_tokens",
        "/completion_tokens",
        "/completion_tokens_details/reasoning_tokens",
    ];
    let mut turn = json!({"role": "assistant", "content": message["content"]});
    if list(&message["tool_calls"]).next().is_some() {
        turn["tool_calls"] = message["tool_calls"].clone();
    }
    Said {
        text: text(&message["content"]),
        thought: text(&message["reasoning_content"]),
        calls: list(&message["tool_calls"]).map(call).collect(),
        end: text(&choice["finish_reason"]),
        usage: counts(&reply["usage"], names),
        turn: vec![turn],
    }
}

fn of_response(reply: &Value) -> Said {
    let mut said = Said {
        end: text(&reply["status"]),
        turn: list(&reply["output"]).cloned().collect(),
        ..Said::default()
    };
    for item in list(&reply["output"]) {
        match item["type"].as_str().unwrap_or_default() {
            "message" => said.text += &text(&item["content"][0]["text"]),
            "reasoning" => said.thought += &text(&item["summary"][0]["text"]),
            _ => said.calls.push(Call {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: parsed(&item["arguments"]),
            }),
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
        turn: vec![json!({"role": "assistant", "content": reply["content"]})],
        ..Said::default()
    };
    for block in list(&reply["content"]) {
        match block["type"].as_str().unwrap_or_default() {
            "text" => said.text += &text(&block["text"]),
            "thinking" => said.thought += &text(&block["thinking"]),
            "redacted_thinking" => {}
            _ => said.calls.push(Call {
                id: text(&block["id"]),
                name: text(&block["name"]),
                arguments: block["input"].clone(),
            }),
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
    said.usage[0] += said.usage[1] + written;
    said
}

fn of_generated(reply: &Value) -> Said {
    let candidate = &reply["candidates"][0];
    let mut said = Said {
        end: text(&candidate["finishReason"]),
        turn: vec![candidate["content"].clone()],
        ..Said::default()
    };
    for part in list(&candidate["content"]["parts"]) {
        if part["thought"] == true {
            said.thought += &text(&part["text"]);
        } else if let Some(call) = part.get("functionCall") {
            said.calls.push(Call {
                id: text(&call["id"]),
                name: text(&call["name"]),
                arguments: call["args"].clone(),
            });
        } else {
            said.text += &text(&part["text"]);
        }
    }
    let names = [
        "/promptTokenCount",
        "/cachedContentTokenCount",
        "/candidatesTokenCount",
        "/thoughtsTokenCount",
    ];
    let usage = &reply["usageMetadata"];
    said.usage = counts(usage, names);
    said.usage[2] += said.usage[3];
    assert_eq!(
        usage["totalTokenCount"],
        said.usage[0] + said.usage[2],
        "{usage}"
    );
    said
}

fn add(to: &mut Value, more: &Value) {
    *to = json!(text(to) + &text(more));
}

fn fold_chat(events: &[Event]) -> Value {
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

fn fold_response(events: &[Event]) -> Value {
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
    assert!(Responses.is_end(last), "{last:?}");
    let response = last.json()["response"].clone();
    assert_eq!(response["output"], json!(done));
    assert_eq!(of_response(&response).text, texts);
    response
}

fn fold_message(events: &[Event]) -> Value {
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
                    let whole = if partial.is_empty() { "{}" } else { &partial };
                    block["input"] = serde_json::from_str(whole).expect(whole);
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

fn fold_generated(events: &[Event]) -> Value {
    let mut whole = events.last().expect("a chunk").json();
    assert!(
        whole["candidates"][0]["finishReason"].is_string(),
        "{whole}"
    );
    let chunks = events.iter().map(Event::json);
    let parts = chunks.flat_map(|chunk| {
        let parts = chunk["candidates"][0]["content"]["parts"]
            .as_array()
            .cloned();
        parts.unwrap_or_default()
    });
    whole["candidates"][0]["content"] =
        json!({"role": "model", "parts": parts.collect::<Vec<_>>()});
    whole
}
