//! One output item of a response (message, reasoning, tool call or other), and its JSON.

use serde_json::{Value, json};

/// One output item.
#[derive(Debug)]
pub(crate) struct OutputItem {
    pub(crate) id: String,
    pub(crate) body: ItemBody,
    /// Whether it is complete.
    pub(crate) ended: bool,
    /// `completed` or `incomplete`; valid once the item is closed.
    pub(crate) status: &'static str,
}

/// The content of an item.
#[derive(Debug)]
pub(crate) enum ItemBody {
    /// A message or a reasoning item.
    Parts {
        /// Whether it is a message.
        is_message: bool,
        /// Its parts in order.
        parts: Vec<TextPart>,
        /// `encrypted_content`.
        encrypted_content: Option<String>,
    },
    /// A function call or custom tool call.
    Call {
        /// Its number in the hub's events.
        call: u32,
        /// Its `call_id`.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The namespace that the tool is in.
        namespace: Option<String>,
        /// JSON arguments, or the free text for a custom tool.
        input: String,
        /// Whether it is a custom tool call.
        custom: bool,
    },
    /// An item that arrives as one JSON value.
    Complete(Value),
}

/// A part to which text is still added.
#[derive(Debug)]
pub(crate) struct TextPart {
    pub(crate) kind: TextPartKind,
    pub(crate) text: String,
    pub(crate) annotations: Vec<Value>,
    pub(crate) logprobs: Vec<Value>,
    /// Whether text that follows starts another part.
    pub(crate) ended: bool,
}

/// The type of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextPartKind {
    Text,
    Refusal,
    ReasoningSummary,
    ReasoningText,
}

impl TextPartKind {
    /// The part's `type`, and the name of the member with its text.
    pub(crate) fn type_and_text_member(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("output_text", "text"),
            Self::Refusal => ("refusal", "refusal"),
            Self::ReasoningSummary => ("summary_text", "text"),
            Self::ReasoningText => ("reasoning_text", "text"),
        }
    }

    /// Whether it is a part of messages; otherwise of reasoning items.
    pub(crate) fn belongs_to_message(self) -> bool {
        matches!(self, Self::Text | Self::Refusal)
    }
}

impl OutputItem {
    /// Whether a part of that kind can still be added.
    pub(crate) fn accepts(&self, kind: TextPartKind) -> bool {
        match &self.body {
            ItemBody::Parts { is_message, .. } => {
                !self.ended && *is_message == kind.belongs_to_message()
            }
            _ => false,
        }
    }

    /// The last part, if it is text.
    pub(crate) fn last_text_part(&mut self) -> Option<&mut TextPart> {
        match &mut self.body {
            ItemBody::Parts { parts, .. } => {
                parts.last_mut().filter(|p| p.kind == TextPartKind::Text)
            }
            _ => None,
        }
    }

    /// A complete call without arguments gets an empty object.
    pub(crate) fn fill_empty_arguments(&mut self) {
        if let ItemBody::Call {
            input,
            custom: false,
            ..
        } = &mut self.body
            && input.is_empty()
        {
            "{}".clone_into(input);
        }
    }

    /// The JSON of `response.output_item.added`, without content.
    pub(crate) fn initial_json(&self) -> Value {
        match &self.body {
            ItemBody::Parts {
                is_message: true, ..
            } => {
                json!({"id": self.id, "type": "message", "status": "in_progress", "role": "assistant", "content": []})
            }
            ItemBody::Parts { .. } => json!({"id": self.id, "type": "reasoning", "summary": []}),
            ItemBody::Call { .. } => self.call_json("in_progress", Some("")),
            ItemBody::Complete(_) => {
                let mut value = self.final_json();
                if value["type"] == "image_generation_call" {
                    (value["status"], value["result"]) = ("in_progress".into(), Value::Null);
                }
                value
            }
        }
    }

    /// The JSON of the complete item.
    pub(crate) fn final_json(&self) -> Value {
        match &self.body {
            ItemBody::Parts {
                is_message: true,
                parts,
                ..
            } => {
                let content: Vec<Value> = parts.iter().map(TextPart::final_json).collect();
                json!({"id": self.id, "type": "message", "status": self.status, "role": "assistant", "content": content})
            }
            ItemBody::Parts {
                parts,
                encrypted_content,
                ..
            } => {
                let parts_of_kind = |kind: TextPartKind| -> Vec<Value> {
                    let parts = parts.iter().filter(|part| part.kind == kind);
                    parts.map(TextPart::final_json).collect()
                };
                let mut value = json!({"id": self.id, "type": "reasoning", "summary": parts_of_kind(TextPartKind::ReasoningSummary)});
                let raw = parts_of_kind(TextPartKind::ReasoningText);
                if !raw.is_empty() {
                    value["content"] = Value::Array(raw);
                }
                if let Some(text) = encrypted_content {
                    value["encrypted_content"] = text.as_str().into();
                }
                value
            }
            ItemBody::Call { .. } => self.call_json(self.status, None),
            ItemBody::Complete(value) => {
                let mut value = value.clone();
                value["id"] = self.id.as_str().into();
                value
            }
        }
    }

    /// The JSON of a call; `input` replaces what has arrived of its input.
    fn call_json(&self, status: &str, input: Option<&str>) -> Value {
        let ItemBody::Call {
            call_id,
            name,
            namespace,
            input: arrived,
            custom,
            ..
        } = &self.body
        else {
            return Value::Null;
        };
        let (kind, member) = match custom {
            false => ("function_call", "arguments"),
            true => ("custom_tool_call", "input"),
        };
        let input = input.unwrap_or(arrived);
        let mut value = json!({"id": self.id, "type": kind, "status": status, "call_id": call_id, "name": name, member: input});
        if let Some(namespace) = namespace {
            value["namespace"] = namespace.as_str().into();
        }
        value
    }
}

impl TextPart {
    /// The JSON of the complete part.
    pub(crate) fn final_json(&self) -> Value {
        let (kind, member) = self.kind.type_and_text_member();
        let mut value = json!({"type": kind, member: self.text});
        if self.kind == TextPartKind::Text {
            value["annotations"] = Value::Array(self.annotations.clone());
            // OpenAI's schema requires both lists.
            value["logprobs"] = Value::Array(self.logprobs.clone());
        }
        value
    }

    /// The JSON of the part's added event, without text.
    pub(crate) fn initial_json(&self) -> Value {
        let (kind, member) = self.kind.type_and_text_member();
        let mut value = json!({"type": kind, member: ""});
        if self.kind == TextPartKind::Text {
            value["annotations"] = Value::Array(Vec::new());
            value["logprobs"] = Value::Array(Vec::new());
        }
        value
    }
}
