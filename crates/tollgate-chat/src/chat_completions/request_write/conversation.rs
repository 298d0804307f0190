//! Writes `messages`.
//!
//! Consecutive assistant turns with tool calls become one message. The tool results follow it, one message each and nothing between
//! them: first the results that exist, then an error for every call without one. Everything else up to the next assistant turn comes
//! after the results.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::dropped::DroppedFields;
use super::parts;
use crate::chat_completions::constants::{MAX_CALL_ID_LENGTH, NAME};
use crate::chat_completions::json_fields::insert_some;
use crate::error::InvalidRequest;
use crate::hub::{
    Citation, ModelCapabilities, Opaque, Part, PartKind, Request, RequestField, Role, ToolNames,
    Turn, extract_text, is_essential_item, sanitize_id,
};

/// Writes `messages`.
pub(in crate::chat_completions) fn write_messages(
    request: &Request,
    names: &ToolNames,
    capabilities: &ModelCapabilities,
    dropped: &mut DroppedFields,
) -> Result<Vec<Value>, InvalidRequest> {
    reject_stored_items(request)?;
    let mut writer = Writer {
        request,
        names,
        capabilities,
        dropped,
        is_same_format: request.client_format.name == NAME,
        out: Vec::new(),
        pending_calls: Vec::new(),
        attachments: Vec::new(),
    };
    let turns = &request.turns;
    let mut at = 0;
    while at < turns.len() {
        let is_model = |turn: &Turn| turn.role == Role::Assistant;
        let same = |turn: &&Turn| is_model(turn) == is_model(&turns[at]);
        let end = at + turns[at..].iter().take_while(same).count();
        if is_model(&turns[at]) {
            writer.write_assistant_turns(at..end);
        } else {
            writer.write_user_turns(at..end)?;
        }
        at = end;
    }
    writer.write_missing_results();
    writer.write_attachments();
    Ok(writer.out)
}

/// Rejects items that only their vendor can read and that must not be left out.
fn reject_stored_items(request: &Request) -> Result<(), InvalidRequest> {
    for (at, turn) in request.turns.iter().enumerate() {
        for (index, part) in turn.parts.iter().enumerate() {
            let kind = match &part.kind {
                PartKind::FormatSpecific { value, .. } if is_essential_item(value) => {
                    value["type"].as_str().unwrap_or_default()
                }
                _ => continue,
            };
            return Err(InvalidRequest::new(
                request.client_part_path(at, index),
                format!("is {kind:?}, which this model's provider cannot read"),
            ));
        }
    }
    Ok(())
}

struct Writer<'a> {
    request: &'a Request,
    names: &'a ToolNames,
    capabilities: &'a ModelCapabilities,
    dropped: &'a mut DroppedFields,
    /// Whether the client uses this format too; if so, its spellings are kept.
    is_same_format: bool,
    out: Vec<Value>,
    /// Calls without a result so far: (the hub's id, the id sent).
    pending_calls: Vec<(&'a str, String)>,
    /// Attachments that `tool` and `assistant` messages cannot contain; they follow in a user message.
    attachments: Vec<Value>,
}

impl<'a> Writer<'a> {
    fn write_assistant_turns(&mut self, run: Range<usize>) {
        let turns = &self.request.turns[run];
        let is_call = |part: &Part| matches!(part.kind, PartKind::ToolCall { .. });
        let calls = |turns: &[Turn]| turns.iter().any(|turn| turn.parts.iter().any(is_call));
        // Turns of a client of this format stay separate, unless results would be separated from their calls.
        let separates_results = turns.split_last().is_some_and(|(_, before)| calls(before));
        if separates_results || (!self.is_same_format && calls(turns)) {
            self.write_assistant_message(turns);
        } else {
            turns
                .iter()
                .for_each(|turn| self.write_assistant_message(std::slice::from_ref(turn)));
        }
    }

    /// One message of one or more turns.
    fn write_assistant_message(&mut self, turns: &'a [Turn]) {
        let mut content = AssistantContent::default();
        let mut calls = Vec::new();
        let mut ids = HashSet::new();
        for turn in turns {
            content.next_turn();
            self.dropped.extend(turn.extra.names_unknown_to(NAME));
            for part in &turn.parts {
                self.drop_foreign_members(part);
                match &part.kind {
                    PartKind::ToolCall { .. } => {
                        calls.extend(self.write_call(&part.kind, &mut ids))
                    }
                    _ => self.add_assistant_part(part, &mut content),
                }
            }
        }
        let mut message = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
        let has_calls = !calls.is_empty();
        if !self.is_same_format && content.list.is_empty() && !has_calls {
            // The turn contains only reasoning, or only parts of another format.
            if !content.reasoning.is_empty() {
                let lost = self.request.client_field_name(RequestField::PastReasoning);
                self.dropped.push(lost);
            }
            return;
        }
        let plain = !self.is_same_format || turns.iter().all(|turn| turn.plain);
        let value = content.value(plain, has_calls);
        let refusal = std::mem::take(&mut content.refusal);
        let has_refusal_field = !value.is_array() && !refusal.is_empty();
        message.insert("content".to_owned(), value);
        insert_some(
            &mut message,
            "refusal",
            has_refusal_field.then_some(refusal),
        );
        self.write_reasoning(&mut message, content, has_calls);
        if has_calls {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        for turn in turns {
            insert_some(
                &mut message,
                "name",
                turn.name.clone().filter(|_| self.is_same_format),
            );
            message.extend(turn.extra.for_format(NAME).cloned().unwrap_or_default());
        }
        self.out.push(message.into());
    }

    /// Reports a cache marker and other members of another format as dropped.
    fn drop_foreign_members(&mut self, part: &Part) {
        self.dropped.extend(part.extra.names_unknown_to(NAME));
        if part.cache_ttl.is_some() && !self.is_same_format {
            self.dropped
                .push(self.request.client_field_name(RequestField::Cache));
        }
    }

    /// Names citations as dropped: the format has none in requests.
    fn drop_citations(&mut self, citations: &[Citation]) {
        if !citations.is_empty() {
            self.dropped
                .push(self.request.client_field_name(RequestField::Citations));
        }
    }

    fn add_assistant_part(&mut self, part: &Part, content: &mut AssistantContent) {
        match &part.kind {
            PartKind::Text {
                text, citations, ..
            } => {
                self.drop_citations(citations);
                content.add_text(text);
                content.set_cache_marker(part, self.is_same_format);
            }
            PartKind::Refusal(text) => content.add_refusal(text),
            PartKind::Reasoning {
                text, signature, ..
            } => {
                content.signed |= signature.is_some();
                content.blocks.push(match signature {
                    Some(signature) => {
                        json!({"type": "thinking", "thinking": text, "signature": signature_text(signature)})
                    }
                    None => json!({"type": "thinking", "thinking": text}),
                });
                if !content.reasoning.is_empty() && !text.is_empty() {
                    content.reasoning.push_str("\n\n");
                }
                content.reasoning.push_str(text);
            }
            PartKind::RedactedReasoning(data) if self.is_same_format => {
                content.signed = true;
                let block = json!({"type": "redacted_thinking", "data": signature_text(data)});
                content.blocks.push(block);
            }
            PartKind::RedactedReasoning(_) => self
                .dropped
                .push(self.request.client_field_name(RequestField::PastReasoning)),
            PartKind::FormatSpecific { value, .. } => {
                self.dropped
                    .push(value["type"].as_str().unwrap_or("content"));
            }
            _ => match parts::write_part(part, self.request, "") {
                Ok(part) => self.attachments.push(part),
                Err(_) => self
                    .dropped
                    .push(self.request.client_field_name(RequestField::Parts)),
            },
        }
    }

    fn write_reasoning(
        &mut self,
        message: &mut Map<String, Value>,
        content: AssistantContent,
        has_calls: bool,
    ) {
        let wanted = self.capabilities.requires_past_reasoning;
        let text = content.reasoning;
        if content.signed && self.is_same_format && !self.capabilities.rejects_unknown_fields {
            message.insert("thinking_blocks".to_owned(), content.blocks.into());
        } else if !text.is_empty()
            && (wanted || self.is_same_format && !self.capabilities.rejects_unknown_fields)
        {
            message.insert("reasoning_content".to_owned(), text.into());
        } else if wanted && has_calls {
            // Such models reject calls without it, and some reject empty text.
            message.insert("reasoning_content".to_owned(), " ".into());
        } else if !text.is_empty() || content.signed {
            let lost = self.request.client_field_name(RequestField::PastReasoning);
            self.dropped.push(lost);
        }
    }

    fn write_call(&mut self, kind: &'a PartKind, ids: &mut HashSet<String>) -> Option<Value> {
        let PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            ..
        } = kind
        else {
            return None;
        };
        let mut sent = match sanitize_id(id, MAX_CALL_ID_LENGTH, |c| !c.is_control()).into_owned() {
            empty if empty.is_empty() => "call".to_owned(),
            sent => sent,
        };
        for copy in 2.. {
            if ids.insert(sent.clone()) {
                break;
            }
            let copied = format!("{sent}_{copy}");
            sent = sanitize_id(&copied, MAX_CALL_ID_LENGTH, |c| !c.is_control()).into_owned();
        }
        let name = self.names.upstream_name(name);
        let call = if *custom {
            json!({"id": sent, "type": "custom", "custom": {"name": name, "input": arguments}})
        } else {
            let arguments = if arguments.is_empty() && !self.is_same_format {
                "{}"
            } else {
                arguments
            };
            json!({"id": sent, "type": "function", "function": {"name": name, "arguments": arguments}})
        };
        self.pending_calls.push((id, sent));
        Some(call)
    }

    /// Writes the turns between two assistant turns.
    fn write_user_turns(&mut self, run: Range<usize>) -> Result<(), InvalidRequest> {
        let mut orphans = Vec::new();
        for at in run.clone() {
            for (index, part) in self.request.turns[at].parts.iter().enumerate() {
                if let PartKind::ToolResult { id, .. } = &part.kind {
                    match self.pending_calls.iter().position(|call| call.0 == id) {
                        Some(call) => {
                            let (_, id) = self.pending_calls.remove(call);
                            self.write_result(&part.kind, id, at, index)?;
                        }
                        None => orphans.push((at, index)),
                    }
                }
            }
        }
        self.write_missing_results();
        self.write_attachments();
        for at in run {
            self.write_turn(at, &orphans)?;
        }
        Ok(())
    }

    fn write_result(
        &mut self,
        kind: &PartKind,
        id: String,
        turn: usize,
        index: usize,
    ) -> Result<(), InvalidRequest> {
        let PartKind::ToolResult {
            content,
            plain,
            is_error,
            ..
        } = kind
        else {
            return Ok(());
        };
        let content = if self.is_same_format
            && !plain
            && content.iter().all(is_text)
            && !content.is_empty()
        {
            let path = self.request.client_part_path(turn, index);
            let parts = content
                .iter()
                .map(|part| parts::write_part(part, self.request, &path));
            Value::Array(parts.collect::<Result<_, _>>()?)
        } else {
            self.result_text(content, *is_error, turn, index)?.into()
        };
        self.out
            .push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        Ok(())
    }

    /// The text of a result. Its attachments follow after the results.
    fn result_text(
        &mut self,
        content: &[Part],
        is_error: bool,
        turn: usize,
        index: usize,
    ) -> Result<String, InvalidRequest> {
        let mut texts = Vec::new();
        for part in content {
            match &part.kind {
                PartKind::Text {
                    text, citations, ..
                } => {
                    self.drop_citations(citations);
                    texts.push(text.clone());
                }
                PartKind::Refusal(text) => texts.push(text.clone()),
                PartKind::FormatSpecific { value, .. } => match extract_text(value) {
                    Some(text) => texts.push(text),
                    None => {
                        let why = "is a kind of content that this model's provider cannot read";
                        let path = self.request.client_part_path(turn, index);
                        return Err(InvalidRequest::new(path, why));
                    }
                },
                _ => {
                    let path = self.request.client_part_path(turn, index);
                    self.attachments
                        .push(parts::write_part(part, self.request, &path)?);
                    texts.push("[attached in the next user message]".to_owned());
                }
            }
        }
        let text = texts.join("\n");
        Ok(if is_error {
            format!("Error: {text}")
        } else {
            text
        })
    }

    fn write_missing_results(&mut self) {
        for (_, id) in std::mem::take(&mut self.pending_calls) {
            let content = "Error: no result given";
            self.out
                .push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
    }

    fn write_attachments(&mut self) {
        if !self.attachments.is_empty() {
            let attachments = std::mem::take(&mut self.attachments);
            self.out
                .push(json!({"role": "user", "content": attachments}));
        }
    }

    /// Writes everything in a user or system turn except tool results.
    fn write_turn(&mut self, at: usize, orphans: &[(usize, usize)]) -> Result<(), InvalidRequest> {
        let turn = &self.request.turns[at];
        let mut content = Vec::new();
        let mut has_results = false;
        self.dropped.extend(turn.extra.names_unknown_to(NAME));
        for (index, part) in turn.parts.iter().enumerate() {
            self.drop_foreign_members(part);
            if let PartKind::Text { citations, .. } = &part.kind {
                self.drop_citations(citations);
            }
            if let PartKind::ToolResult {
                content: result,
                is_error,
                ..
            } = &part.kind
            {
                has_results = true;
                if orphans.contains(&(at, index)) {
                    let text = self.result_text(result, *is_error, at, index)?;
                    content.push(json!({"type": "text", "text": format!("[Tool result] {text}")}));
                    content.append(&mut self.attachments);
                }
                continue;
            }
            let path = self.request.client_part_path(at, index);
            content.push(parts::write_part(part, self.request, &path)?);
        }
        if content.is_empty() && (has_results || !self.is_same_format) {
            return Ok(());
        }
        let mut message = Map::from_iter([
            ("role".to_owned(), Value::from(self.role(turn))),
            ("content".to_owned(), self.content_value(turn, content)),
        ]);
        insert_some(
            &mut message,
            "name",
            turn.name.clone().filter(|_| self.is_same_format),
        );
        for (name, value) in turn.extra.for_format(NAME).into_iter().flatten() {
            if name != ".role" {
                message.insert(name.clone(), value.clone());
            }
        }
        self.out.push(message.into());
        Ok(())
    }

    fn role(&self, turn: &Turn) -> &'static str {
        let extra = turn.extra.for_format(NAME);
        match turn.role {
            Role::System if extra.is_some_and(|extra| extra.get(".role").is_some()) => "developer",
            Role::System => "system",
            _ => "user",
        }
    }

    /// The content as the client wrote it. For clients of other formats a string if possible, because more upstreams accept it.
    fn content_value(&self, turn: &Turn, mut content: Vec<Value>) -> Value {
        let texts = || -> Option<Vec<&str>> {
            let is_plain_text = |part: &Value| part.as_object().is_some_and(|part| part.len() == 2);
            content
                .iter()
                .map(|part| part["text"].as_str().filter(|_| is_plain_text(part)))
                .collect()
        };
        match texts() {
            Some(texts) if turn.plain || texts.is_empty() => texts.concat().into(),
            Some(texts) if !self.is_same_format && turn.role == Role::System => {
                texts.join("\n\n").into()
            }
            Some(texts) if !self.is_same_format && texts.len() == 1 => content[0]["text"].take(),
            _ => content.into(),
        }
    }
}

fn is_text(part: &Part) -> bool {
    matches!(part.kind, PartKind::Text { .. })
}

/// The content of an assistant message.
#[derive(Default)]
struct AssistantContent {
    list: Vec<Value>,
    text: String,
    has_text: bool,
    refusal: String,
    reasoning: String,
    /// Reasoning as `thinking_blocks` with signatures, for clients that sent it so.
    blocks: Vec<Value>,
    signed: bool,
    new_turn: bool,
}

/// A signature as the client sent it: Anthropic's unchanged, others' with their vendor.
fn signature_text(signature: &Opaque) -> String {
    match signature.vendor.as_str() {
        "anthropic" => signature.data.clone(),
        _ => signature.to_portable(),
    }
}

impl AssistantContent {
    /// Begins another turn; its text is separated by a blank line.
    fn next_turn(&mut self) {
        self.new_turn = self.has_text;
    }

    fn add_text(&mut self, text: &str) {
        if std::mem::take(&mut self.new_turn) {
            self.text.push_str("\n\n");
        }
        self.has_text = true;
        self.text.push_str(text);
        self.list.push(json!({"type": "text", "text": text}));
    }

    fn set_cache_marker(&mut self, part: &Part, is_same_format: bool) {
        let last = self.list.last_mut().and_then(Value::as_object_mut);
        if let (Some(last), Some(ttl), true) = (last, &part.cache_ttl, is_same_format) {
            parts::insert_cache_marker(last, ttl);
        }
    }

    fn add_refusal(&mut self, text: &str) {
        self.refusal.push_str(text);
        self.list.push(json!({"type": "refusal", "refusal": text}));
    }

    /// The value of `content`; `null` if there is no text but a call or refusal.
    fn value(&mut self, plain: bool, has_calls: bool) -> Value {
        let is_list = !plain && self.has_text;
        match self.has_text {
            _ if is_list => std::mem::take(&mut self.list).into(),
            true => std::mem::take(&mut self.text).into(),
            false if has_calls || !self.refusal.is_empty() => Value::Null,
            false => "".into(),
        }
    }
}
