//! One output item: a message, thinking, a call, or something whole; growing, and as JSON.

use serde_json::{Value, json};

/// One output item.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) body: Body,
    /// Nothing more comes to it.
    pub(super) ended: bool,
    /// `completed` or `incomplete`, once that is settled.
    pub(super) status: &'static str,
}

/// What an item is.
#[derive(Debug)]
pub(super) enum Body {
    /// A message or a reasoning item: parts with text that grows.
    Parts {
        /// A message.
        is_message: bool,
        /// The parts in order.
        parts: Vec<Piece>,
        /// `encrypted_content`.
        sealed: Option<String>,
    },
    /// A tool call.
    Call {
        /// Its number in the stream.
        call: u32,
        /// Its id.
        call_id: String,
        /// The tool.
        name: String,
        /// Arguments, or the text for a custom tool.
        input: String,
        /// A custom tool.
        custom: bool,
    },
    /// An item without pieces.
    Whole(Value),
}

/// A part with text.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) kind: PieceKind,
    pub(super) text: String,
    pub(super) annotations: Vec<Value>,
    pub(super) logprobs: Vec<Value>,
    /// Text that follows is another part.
    pub(super) ended: bool,
}

/// What kind of text a part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceKind {
    Text,
    Refusal,
    Summary,
    Raw,
}

impl PieceKind {
    /// The part's `type`, and the member with its text.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Text => ("output_text", "text"),
            Self::Refusal => ("refusal", "refusal"),
            Self::Summary => ("summary_text", "text"),
            Self::Raw => ("reasoning_text", "text"),
        }
    }

    /// Whether messages have such parts; else reasoning items do.
    pub(super) fn is_message(self) -> bool {
        matches!(self, Self::Text | Self::Refusal)
    }
}

impl Item {
    /// Whether a part of that kind may still be added.
    pub(super) fn takes(&self, kind: PieceKind) -> bool {
        match &self.body {
            Body::Parts { is_message, .. } => !self.ended && *is_message == kind.is_message(),
            _ => false,
        }
    }

    /// It was not cut: a call without arguments is one with none.
    pub(super) fn complete(&mut self) {
        if let Body::Call {
            input,
            custom: false,
            ..
        } = &mut self.body
            && input.is_empty()
        {
            "{}".clone_into(input);
        }
    }

    /// As it is announced: without its content.
    pub(super) fn skeleton(&self) -> Value {
        match &self.body {
            Body::Parts {
                is_message: true, ..
            } => {
                json!({"id": self.id, "type": "message", "status": "in_progress", "role": "assistant", "content": []})
            }
            Body::Parts { .. } => json!({"id": self.id, "type": "reasoning", "summary": []}),
            Body::Call {
                call_id,
                name,
                custom,
                ..
            } => call_value(&self.id, "in_progress", call_id, name, "", *custom),
            Body::Whole(_) => {
                let mut value = self.value();
                if value["type"] == "image_generation_call" {
                    (value["status"], value["result"]) = ("in_progress".into(), Value::Null);
                }
                value
            }
        }
    }

    /// As it is in the end.
    pub(super) fn value(&self) -> Value {
        match &self.body {
            Body::Parts {
                is_message: true,
                parts,
                ..
            } => {
                let content: Vec<Value> = parts.iter().map(Piece::value).collect();
                json!({"id": self.id, "type": "message", "status": self.status, "role": "assistant", "content": content})
            }
            Body::Parts { parts, sealed, .. } => {
                let of = |kind: PieceKind| -> Vec<Value> {
                    let parts = parts.iter().filter(|piece| piece.kind == kind);
                    parts.map(Piece::value).collect()
                };
                let mut value =
                    json!({"id": self.id, "type": "reasoning", "summary": of(PieceKind::Summary)});
                let raw = of(PieceKind::Raw);
                if !raw.is_empty() {
                    value["content"] = Value::Array(raw);
                }
                if let Some(sealed) = sealed {
                    value["encrypted_content"] = sealed.as_str().into();
                }
                value
            }
            Body::Call {
                call_id,
                name,
                input,
                custom,
                ..
            } => call_value(&self.id, self.status, call_id, name, input, *custom),
            Body::Whole(value) => {
                let mut value = value.clone();
                value["id"] = self.id.as_str().into();
                value
            }
        }
    }
}

fn call_value(
    id: &str,
    status: &str,
    call_id: &str,
    name: &str,
    input: &str,
    custom: bool,
) -> Value {
    match custom {
        false => {
            json!({"id": id, "type": "function_call", "status": status, "call_id": call_id, "name": name, "arguments": input})
        }
        true => {
            json!({"id": id, "type": "custom_tool_call", "status": status, "call_id": call_id, "name": name, "input": input})
        }
    }
}

impl Piece {
    /// As it is in the end.
    pub(super) fn value(&self) -> Value {
        let (kind, member) = self.kind.words();
        let mut value = json!({"type": kind, member: self.text});
        if self.kind == PieceKind::Text {
            value["annotations"] = Value::Array(self.annotations.clone());
            if !self.logprobs.is_empty() {
                value["logprobs"] = Value::Array(self.logprobs.clone());
            }
        }
        value
    }

    /// As it is announced: without its text.
    pub(super) fn skeleton(&self) -> Value {
        let (kind, member) = self.kind.words();
        let mut value = json!({"type": kind, member: ""});
        if self.kind == PieceKind::Text {
            value["annotations"] = Value::Array(Vec::new());
        }
        value
    }
}
