//! Writes the turns of a conversation as items of `input`.

use serde_json::{Map, Value, json};

use super::call_pairing::InputItem;
use super::tools::type_of_foreign;
use crate::error::InvalidRequest;
use crate::hub::{Part, PartKind, Request, RequestField, Role, ToolNames, Turn, is_essential_item};
use crate::responses::constants::{GENERATED_ID_MARK, NAME};
use crate::responses::encrypted_content::{EncryptedContent, VENDOR, split_item_id};
use crate::responses::extra_fields::write_extra_fields;

/// Collects the items of `input`, turn by turn.
pub(crate) struct InputWriter<'a> {
    pub(crate) request: &'a Request,
    pub(crate) names: &'a ToolNames,
    /// Whether the client uses this format: if so, every spelling is kept.
    pub(crate) is_own: bool,
    pub(crate) items: Vec<InputItem>,
    /// Fields of the client that were dropped from some part.
    pub(crate) dropped_fields: Vec<RequestField>,
    /// Type names of other formats' parts that were left out.
    pub(crate) dropped_parts: Vec<String>,
}

/// The content of a message, collected until another item begins.
pub(crate) struct PendingMessage<'a> {
    pub(crate) turn: &'a Turn,
    pub(crate) content: Vec<Value>,
    /// Whether the content can be written as one string.
    pub(crate) is_plain: bool,
    pub(crate) wrote_items: bool,
}

impl<'a> InputWriter<'a> {
    pub(crate) fn new(request: &'a Request, names: &'a ToolNames) -> Self {
        Self {
            request,
            names,
            is_own: request.client_format.name == NAME,
            items: Vec::new(),
            dropped_fields: Vec::new(),
            dropped_parts: Vec::new(),
        }
    }

    /// Adds the items of turn number `at`.
    pub(crate) fn write_turn(&mut self, at: usize, turn: &'a Turn) -> Result<(), InvalidRequest> {
        let mut message = PendingMessage {
            turn,
            content: Vec::new(),
            is_plain: turn.plain,
            wrote_items: false,
        };
        // Results must follow their calls; anything else in the turn comes after them.
        let is_result = |part: &Part| matches!(part.kind, PartKind::ToolResult { .. });
        let parts = turn.parts.iter().enumerate();
        let (results, rest): (Vec<_>, Vec<_>) = match self.is_own {
            true => (Vec::new(), parts.collect()),
            false => parts.partition(|(_, part)| is_result(part)),
        };
        for (i, part) in results.into_iter().chain(rest) {
            let request = self.request;
            self.write_part(part, &mut message, &|| request.client_part_path(at, i))?;
        }
        self.flush_message(&mut message);
        if !message.wrote_items && turn.parts.is_empty() && self.is_own {
            self.push_message(turn, Vec::new(), turn.plain);
        }
        Ok(())
    }

    pub(crate) fn write_part(
        &mut self,
        part: &'a Part,
        message: &mut PendingMessage<'a>,
        path: &dyn Fn() -> String,
    ) -> Result<(), InvalidRequest> {
        let role = message.turn.role;
        match &part.kind {
            PartKind::ToolCall { .. } => {
                self.flush_message(message);
                message.wrote_items = true;
                self.push_call(part);
            }
            PartKind::ToolResult { .. } => {
                self.flush_message(message);
                message.wrote_items = true;
                self.push_result(part, path)?;
            }
            PartKind::Reasoning { .. } | PartKind::RedactedReasoning(_) => {
                self.flush_message(message);
                message.wrote_items = true;
                self.push_reasoning(part);
            }
            PartKind::FormatSpecific { format, value } if *format == NAME => {
                self.flush_message(message);
                message.wrote_items = true;
                self.items.push(InputItem::Other {
                    value: value.clone(),
                    ends_calls: false,
                });
            }
            // Past output of a hosted tool may be dropped. Content of the user must be sent or rejected.
            PartKind::FormatSpecific { value, .. }
                if role == Role::Assistant && !is_essential_item(value) =>
            {
                self.dropped_parts.push(type_of_foreign(value).to_owned());
            }
            PartKind::Image { .. } | PartKind::File { .. }
                if role == Role::Assistant && !self.is_own =>
            {
                // Assistant messages cannot contain images in this format, so the images become a user message.
                self.flush_message(message);
                message.wrote_items = true;
                let value = self.content_part(part, Role::User, path)?;
                let value = json!({"role": "user", "content": [value]});
                self.items.push(InputItem::Other {
                    value,
                    ends_calls: true,
                });
            }
            // An empty text only transports its signature.
            PartKind::Text {
                text, signature, ..
            } if text.is_empty() && signature.is_some() => {
                self.dropped_fields.push(RequestField::PastReasoning);
            }
            kind => {
                let value = self.content_part(part, role, path)?;
                message.is_plain &=
                    matches!(kind, PartKind::Text { .. }) && part.cache_ttl.is_none();
                message.content.push(value);
            }
        }
        Ok(())
    }

    pub(crate) fn flush_message(&mut self, message: &mut PendingMessage<'_>) {
        if !message.content.is_empty() {
            let content = std::mem::take(&mut message.content);
            self.push_message(message.turn, content, message.is_plain);
            (message.wrote_items, message.is_plain) = (true, message.turn.plain);
        }
    }

    pub(crate) fn push_message(&mut self, turn: &Turn, mut content: Vec<Value>, is_plain: bool) {
        let role = match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
            // OpenAI treats both as developer messages.
            Role::System if self.is_own => "system",
            Role::System => "developer",
        };
        let content = match content.as_mut_slice() {
            [] if is_plain => Value::from(""),
            [only] if is_plain => only["text"].take(),
            _ => Value::Array(content),
        };
        let mut value = Map::from_iter([
            ("role".to_owned(), Value::from(role)),
            ("content".to_owned(), content),
        ]);
        write_extra_fields(&turn.extra, &mut value);
        if turn.name.is_some() {
            self.dropped_fields.push(RequestField::Turns);
        }
        self.items.push(InputItem::Other {
            value: Value::Object(value),
            ends_calls: turn.role != Role::Assistant,
        });
    }

    pub(crate) fn push_call(&mut self, part: &Part) {
        let PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } = &part.kind
        else {
            return;
        };
        if signature.is_some() {
            self.dropped_fields.push(RequestField::PastReasoning);
        }
        let (kind, member) = match custom {
            true => ("custom_tool_call", "input"),
            false => ("function_call", "arguments"),
        };
        let arguments = match arguments.trim() {
            "" if !custom && !self.is_own => "{}",
            _ => arguments,
        };
        let mut value = Map::from_iter([
            ("type".to_owned(), Value::from(kind)),
            ("call_id".to_owned(), Value::from(id.as_str())),
            (
                "name".to_owned(),
                Value::from(self.names.upstream_name(name)),
            ),
            (member.to_owned(), Value::from(arguments)),
        ]);
        write_extra_fields(&part.extra, &mut value);
        self.items.push(InputItem::Call {
            id: id.clone(),
            custom: *custom,
            value: Value::Object(value),
        });
    }

    pub(crate) fn push_result(
        &mut self,
        part: &Part,
        path: &dyn Fn() -> String,
    ) -> Result<(), InvalidRequest> {
        let PartKind::ToolResult {
            id,
            name,
            content,
            plain,
            is_error,
            custom,
        } = &part.kind
        else {
            return Ok(());
        };
        let output = self.result_output(content, *plain, *is_error, path)?;
        let kind = match custom {
            true => "custom_tool_call_output",
            false => "function_call_output",
        };
        let mut value = Map::from_iter([
            ("type".to_owned(), Value::from(kind)),
            ("call_id".to_owned(), Value::from(id.as_str())),
            ("output".to_owned(), output),
        ]);
        if let Some(name) = name.as_ref().filter(|_| self.is_own) {
            value.insert(
                "name".to_owned(),
                Value::from(self.names.upstream_name(name)),
            );
        }
        write_extra_fields(&part.extra, &mut value);
        self.items.push(InputItem::Result {
            id: id.clone(),
            value: Value::Object(value),
        });
        Ok(())
    }

    /// Text results are written as a string: not every upstream accepts arrays
    /// ([litellm#34978](https://github.com/BerriAI/litellm/issues/34978)).
    pub(crate) fn result_output(
        &mut self,
        content: &[Part],
        plain: bool,
        is_error: bool,
        path: &dyn Fn() -> String,
    ) -> Result<Value, InvalidRequest> {
        let text = |part: &Part| match &part.kind {
            PartKind::Text { text, .. } => Some(text.clone()),
            _ => None,
        };
        let texts: Option<Vec<String>> = content.iter().map(text).collect();
        let prefix = if is_error { "Error: " } else { "" };
        if let Some(texts) = texts.filter(|_| plain || !self.is_own) {
            let has_citations = |part: &Part| match &part.kind {
                PartKind::Text { citations, .. } => !citations.is_empty(),
                _ => false,
            };
            if content.iter().any(has_citations) {
                self.dropped_fields.push(RequestField::Citations);
            }
            return Ok(Value::String(prefix.to_owned() + &texts.join("\n")));
        }
        let mut parts = Vec::with_capacity(content.len() + 1);
        if is_error {
            parts.push(json!({"type": "input_text", "text": prefix.trim_end()}));
        }
        for part in content {
            parts.push(self.content_part(part, Role::User, path)?);
        }
        Ok(Value::Array(parts))
    }

    /// Adds a reasoning item. Consecutive ones without a signature in between are merged later, and
    /// only those that the vendor signed or stores are sent.
    pub(crate) fn push_reasoning(&mut self, part: &Part) {
        let encrypted = match &part.kind {
            PartKind::Reasoning { signature, .. } => {
                signature.clone().map(EncryptedContent::Signature)
            }
            PartKind::RedactedReasoning(opaque) => Some(EncryptedContent::Redacted(opaque.clone())),
            _ => None,
        };
        let vendor = match &encrypted {
            Some(EncryptedContent::Signature(opaque) | EncryptedContent::Redacted(opaque)) => {
                Some(&opaque.vendor)
            }
            _ => None,
        };
        let is_openais = vendor.map(|vendor| vendor == VENDOR);
        let mut value = Map::from_iter([
            ("type".to_owned(), Value::from("reasoning")),
            ("summary".to_owned(), Value::Array(Vec::new())),
        ]);
        let mut id_of = None;
        if let PartKind::Reasoning {
            text,
            id,
            summary,
            signature,
        } = &part.kind
        {
            let kept = || signature.as_ref().and_then(|s| split_item_id(s).0);
            id_of = id
                .as_deref()
                .filter(|id| !id.contains(GENERATED_ID_MARK))
                .or_else(kept);
            if let Some(id) = id_of {
                value.insert("id".to_owned(), id.into());
            }
            if !text.is_empty() {
                // OpenAI signed a summary, whatever the client's format calls it; OpenAI accepts nothing else.
                let (list, kind) = match *summary || !self.is_own {
                    true => ("summary", "summary_text"),
                    false => ("content", "reasoning_text"),
                };
                value.insert(list.to_owned(), json!([{"type": kind, "text": text}]));
            }
        }
        if let Some(content) = encrypted {
            value.insert("encrypted_content".to_owned(), content.encode().into());
        }
        write_extra_fields(&part.extra, &mut value);
        let is_known = is_openais.unwrap_or(id_of.is_some());
        self.items.push(InputItem::Reasoning {
            is_known,
            value: Value::Object(value),
        });
    }
}
