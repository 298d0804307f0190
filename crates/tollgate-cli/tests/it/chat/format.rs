//! The four chat formats as their clients see them: paths, streams joined to a complete reply, and the contents of a reply.

use serde::Deserialize;
use serde_json::{Value, json};

use super::join::{join_chat, join_generated, join_message, join_response};
use crate::harness::{Client, Event};

/// A client's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Format {
    Chat,
    Responses,
    Messages,
    Generate,
}

use Format::{Chat, Generate, Messages, Responses};

/// The contents of a reply in any format.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ChatReply {
    pub(super) text: String,
    pub(super) thought: String,
    pub(super) calls: Vec<ToolCall>,
    /// The finish reason, as the format spells it.
    pub(super) end: String,
    /// Tokens: input (all of it), cached, output (all of it), reasoning.
    pub(super) usage: [u64; 4],
    /// The model's turn, as a client of the format sends it back.
    pub(super) turn: Vec<Value>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: Value,
}

impl Format {
    pub(super) const ALL: [Self; 4] = [Chat, Responses, Messages, Generate];

    /// The format's name in tables.
    pub(super) fn name(self) -> &'static str {
        ["chat", "responses", "messages", "generate"][self as usize]
    }

    /// Every format, each complete and streamed.
    pub(super) fn all_and_streamed() -> impl Iterator<Item = (Self, bool)> {
        let both = |format| [(format, false), (format, true)];
        Self::ALL.into_iter().flat_map(both)
    }

    /// The enveloped path and the vendor's path.
    pub(super) fn paths(self, model: &str, stream: bool) -> [String; 2] {
        [
            self.enveloped_path(model, stream),
            self.vendor_path(model, stream),
        ]
    }

    /// The path with the envelope.
    pub(super) fn enveloped_path(self, model: &str, stream: bool) -> String {
        match self {
            Chat => "/api/v1/chat/completions".to_owned(),
            Responses => "/v1/responses".to_owned(),
            Messages => "/v1/messages".to_owned(),
            Generate => format!("/v1beta/models/{model}:{}", method(stream)),
        }
    }

    /// The path that the vendor's own SDK uses.
    pub(super) fn vendor_path(self, model: &str, stream: bool) -> String {
        let sse = if stream { "?alt=sse" } else { "" };
        match self {
            Chat => "/openai/v1/chat/completions".to_owned(),
            Responses => "/openai/v1/responses".to_owned(),
            Messages => "/anthropic/v1/messages".to_owned(),
            Generate => format!("/gemini/v1beta/models/{model}:{}{sse}", method(stream)),
        }
    }

    /// Checks that an error in this format has this status; returns its message.
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

    /// Sends a request on the vendor's path; `Err` with the status and the body if it fails.
    pub(super) async fn send(
        self,
        client: &Client,
        model: &str,
        stream: bool,
        body: &Value,
    ) -> Result<ChatReply, (u16, String)> {
        let path = self.vendor_path(model, stream);
        if !stream {
            let reply = client.post(&path, body).await;
            return match reply.status {
                200 => Ok(self.parse(&reply.json())),
                status => Err((status, reply.text())),
            };
        }
        let mut reply = client.open(&path, body).await;
        if reply.status != 200 {
            return Err((reply.status, reply.text().await));
        }
        let events = reply.events().await;
        assert!(!reply.broken, "{self:?} {model}");
        Ok(self.parse(&self.join(&events)))
    }

    /// The contents of a complete reply without an envelope.
    pub(super) fn parse(self, reply: &Value) -> ChatReply {
        match self {
            Chat => parse_chat(reply),
            Responses => parse_response(reply),
            Messages => parse_message(reply),
            Generate => parse_generated(reply),
        }
    }

    /// Joins the events of a stream that ends successfully to the complete reply.
    pub(super) fn join(self, events: &[Event]) -> Value {
        match self {
            Chat => join_chat(events),
            Responses => join_response(events),
            Messages => join_message(events),
            Generate => join_generated(events),
        }
    }

    /// Whether an event is a successful end.
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

    /// The message, if the event is the format's error.
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

    /// The text in an event.
    pub(super) fn text_of(self, event: &Event) -> String {
        let json = event.json();
        let text_of = match self {
            Chat => &json["choices"][0]["delta"]["content"],
            Responses if event.name == "response.output_text.delta" => &json["delta"],
            Responses => &Value::Null,
            Messages => &json["delta"]["text"],
            Generate => &json["candidates"][0]["content"]["parts"][0]["text"],
        };
        text(text_of)
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

pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn counts(usage: &Value, names: [&str; 4]) -> [u64; 4] {
    names.map(|name| usage.pointer(name).and_then(Value::as_u64).unwrap_or(0))
}

fn parse_json(arguments: &Value) -> Value {
    serde_json::from_str(&text(arguments)).unwrap_or_else(|e| panic!("{e}: {arguments}"))
}

fn parse_chat(reply: &Value) -> ChatReply {
    let choice = &reply["choices"][0];
    let message = &choice["message"];
    let call = |call: &Value| ToolCall {
        id: text(&call["id"]),
        name: text(&call["function"]["name"]),
        arguments: parse_json(&call["function"]["arguments"]),
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
    ChatReply {
        text: text(&message["content"]),
        thought: text(&message["reasoning_content"]),
        calls: list(&message["tool_calls"]).map(call).collect(),
        end: text(&choice["finish_reason"]),
        usage: counts(&reply["usage"], names),
        turn: vec![turn],
    }
}

pub(super) fn parse_response(reply: &Value) -> ChatReply {
    let mut found = ChatReply {
        end: text(&reply["status"]),
        turn: list(&reply["output"]).cloned().collect(),
        ..ChatReply::default()
    };
    for item in list(&reply["output"]) {
        match item["type"].as_str().unwrap_or_default() {
            "message" => found.text += &text(&item["content"][0]["text"]),
            "reasoning" => found.thought += &text(&item["summary"][0]["text"]),
            _ => found.calls.push(ToolCall {
                id: text(&item["call_id"]),
                name: text(&item["name"]),
                arguments: parse_json(&item["arguments"]),
            }),
        }
    }
    let names = [
        "/input_tokens",
        "/input_tokens_details/cached_tokens",
        "/output_tokens",
        "/output_tokens_details/reasoning_tokens",
    ];
    found.usage = counts(&reply["usage"], names);
    found
}

fn parse_message(reply: &Value) -> ChatReply {
    let mut found = ChatReply {
        end: text(&reply["stop_reason"]),
        turn: vec![json!({"role": "assistant", "content": reply["content"]})],
        ..ChatReply::default()
    };
    for block in list(&reply["content"]) {
        match block["type"].as_str().unwrap_or_default() {
            "text" => found.text += &text(&block["text"]),
            "thinking" => found.thought += &text(&block["thinking"]),
            "redacted_thinking" => {}
            _ => found.calls.push(ToolCall {
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
    found.usage = counts(usage, names);
    let written = usage["cache_creation_input_tokens"].as_u64().unwrap_or(0);
    found.usage[0] += found.usage[1] + written;
    found
}

fn parse_generated(reply: &Value) -> ChatReply {
    let candidate = &reply["candidates"][0];
    let mut found = ChatReply {
        end: text(&candidate["finishReason"]),
        turn: vec![candidate["content"].clone()],
        ..ChatReply::default()
    };
    for part in list(&candidate["content"]["parts"]) {
        if part["thought"] == true {
            found.thought += &text(&part["text"]);
        } else if let Some(call) = part.get("functionCall") {
            found.calls.push(ToolCall {
                id: text(&call["id"]),
                name: text(&call["name"]),
                arguments: call["args"].clone(),
            });
        } else {
            found.text += &text(&part["text"]);
        }
    }
    let names = [
        "/promptTokenCount",
        "/cachedContentTokenCount",
        "/candidatesTokenCount",
        "/thoughtsTokenCount",
    ];
    let usage = &reply["usageMetadata"];
    found.usage = counts(usage, names);
    found.usage[2] += found.usage[3];
    assert_eq!(
        usage["totalTokenCount"],
        found.usage[0] + found.usage[2],
        "{usage}"
    );
    found
}
