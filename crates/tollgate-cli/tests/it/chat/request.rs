//! A chat request, built in any of the four formats from the fragments in `tests/cases/chat_requests.json`.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::format::Format::{self, Chat, Generate, Messages, Responses};
use super::format::{ChatReply, ToolCall};

/// An image of one pixel: a PNG.
pub(super) const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
/// One of the two tools of [`ChatRequest::tools`].
pub(super) const TOOL: &str = "get_weather";

static FRAGMENTS: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../cases/chat_requests.json");
    serde_json::from_str(text).unwrap()
});

/// A request that is being built.
#[derive(Clone)]
pub(super) struct ChatRequest {
    format: Format,
    pub(super) body: Value,
}

impl ChatRequest {
    /// A request without turns.
    pub(super) fn new(format: Format, model: &str, stream: bool) -> Self {
        let body = json!({});
        let mut request = Self { format, body }.with("empty", Value::Null);
        if format != Generate {
            request.body["model"] = model.into();
        }
        if stream && format != Generate {
            request.body["stream"] = true.into();
        }
        if stream && format == Chat {
            request.body["stream_options"] = json!({"include_usage": true});
        }
        request
    }

    /// A request with one user turn.
    pub(super) fn of_text(format: Format, model: &str, stream: bool, text: &str) -> Self {
        Self::new(format, model, stream).user(text)
    }

    /// Adds a fragment: members are set, items of lists are appended.
    fn with(mut self, fragment: &str, value: impl Into<Value>) -> Self {
        let mut fragment = FRAGMENTS[fragment][self.format.name()].clone();
        fill(&mut fragment, &value.into());
        merge(&mut self.body, fragment);
        self
    }

    pub(super) fn system(self, text: &str) -> Self {
        self.with("system", text)
    }

    pub(super) fn user(self, text: &str) -> Self {
        self.with("user", text)
    }

    pub(super) fn assistant(self, text: &str) -> Self {
        self.with("assistant", text)
    }

    fn turns(&mut self) -> &mut Vec<Value> {
        let name = match self.format {
            Chat | Messages => "messages",
            Responses => "input",
            Generate => "contents",
        };
        self.body[name].as_array_mut().expect("a list")
    }

    /// The model's own turn, as the format's clients send it back.
    pub(super) fn turn(mut self, reply: &ChatReply) -> Self {
        self.turns().extend(reply.turn.iter().cloned());
        self
    }

    /// Adds the results of tools, in one turn for all of them.
    pub(super) fn results(mut self, calls: &[ToolCall], text: &str) -> Self {
        let result = |call: &ToolCall| match self.format {
            Chat => json!({"role": "tool", "tool_call_id": call.id, "content": text}),
            Responses => {
                json!({"type": "function_call_output", "call_id": call.id, "output": text})
            }
            Messages => json!({"type": "tool_result", "tool_use_id": call.id, "content": text}),
            Generate => {
                let mut result = json!({"name": call.name, "response": {"output": text}});
                if !call.id.is_empty() {
                    result["id"] = json!(call.id);
                }
                json!({"functionResponse": result})
            }
        };
        let results: Vec<Value> = calls.iter().map(result).collect();
        let turns = match self.format {
            Chat | Responses => results,
            Messages => vec![json!({"role": "user", "content": results})],
            Generate => vec![json!({"role": "user", "parts": results})],
        };
        self.turns().extend(turns);
        self
    }

    /// Adds the text `see`, and [`PNG`] as data.
    pub(super) fn image(self) -> Self {
        self.with("image_bytes", PNG)
    }

    /// Adds the text `see`, and the image at that URL.
    pub(super) fn image_url(self, url: &str) -> Self {
        self.with("image_url", url)
    }

    /// Adds two tools.
    pub(super) fn tools(self) -> Self {
        let mut both = self.with("tool", TOOL).with("tool", "other");
        // This format declares all tools in one list.
        if both.format == Generate {
            let second = both.body["tools"][1]["functionDeclarations"][0].clone();
            both.body["tools"] = json!([both.body["tools"][0]]);
            let declared = &mut both.body["tools"][0]["functionDeclarations"];
            declared.as_array_mut().unwrap().push(second);
        }
        both
    }

    /// Forces a call of [`TOOL`].
    pub(super) fn forced(self) -> Self {
        self.with("forced_tool", TOOL)
    }

    /// Limits the reply to this number of tokens.
    pub(super) fn max_tokens(self, tokens: u64) -> Self {
        self.with("max_tokens", tokens)
    }

    /// Adds a stop sequence, if the format has them.
    pub(super) fn stop(self, text: &str) -> Self {
        self.with("stop", text)
    }

    /// Requires a reply in JSON of a schema.
    pub(super) fn schema(self) -> Self {
        let schema = json!({"type": "object", "properties": {"town": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["town", "count"], "additionalProperties": false});
        self.with("schema", schema)
    }

    /// Turns thinking on, and requests it in the reply if the format has a field for that.
    pub(super) fn thinking(self) -> Self {
        self.with("thinking", Value::Null)
    }
}

fn fill(fragment: &mut Value, value: &Value) {
    match fragment {
        Value::String(text) if text == "<<value>>" => *fragment = value.clone(),
        Value::String(text) => {
            *text = text.replace("<<value>>", value.as_str().unwrap_or_default());
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, value)),
        Value::Object(members) => members.values_mut().for_each(|member| fill(member, value)),
        _ => {}
    }
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => into.extend(from),
        (into, from) => *into = from,
    }
}
