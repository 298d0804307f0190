//! Writes a stream for a client.
//!
//! Every event is one line, `data: ` and a response object, and an empty line: SDKs fail on
//! comments, event names, `[DONE]` and a `data:` without its space. Every object has a candidate
//! with a part, because SDKs otherwise leave the turn out of the conversation. Finish reason and
//! usage are on the last object only, which [`StreamWriter::end`] writes.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::constants::MAX_CHOICE_INDEX;
use super::part_write::write_part;
use super::response_write::prompt_feedback;
use super::stream_framing::StreamFraming;
use super::{error, finish, grounding, logprobs, signatures, usage};
use crate::error::ErrorBody;
use crate::format::{RenderOptions, StreamWriter};
use crate::hub::{Citation, Event, FinishReason, Opaque, Part, PartKind, Usage};

/// Writes one stream.
pub(crate) struct Writer {
    framing: StreamFraming,
    /// `,"modelVersion":…,"responseId":…}`, the end of every object.
    tail: Vec<u8>,
    model: String,
    id: String,
    usage: Usage,
    choices: BTreeMap<u32, ChoiceState>,
    has_content: bool,
}

#[derive(Default)]
struct ChoiceState {
    /// Calls whose arguments are not complete, by number.
    calls: BTreeMap<u32, PendingCall>,
    /// A call that ended with incomplete arguments: left out if the response was truncated.
    incomplete_call: Option<(PendingCall, Option<Opaque>)>,
    finish: Option<FinishReason>,
    /// Visible text, for the byte offsets of citations.
    text: String,
    /// Characters of the text before the current part, or before the last one if none is open: the offsets of citations are relative to it.
    part_start: u64,
    /// Whether text that follows begins another part.
    is_part_ended: bool,
    citations: Vec<Citation>,
}

struct PendingCall {
    id: String,
    name: String,
    arguments: String,
    custom: bool,
}

impl Writer {
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        let mut writer = Self {
            framing: StreamFraming::new(options.json_array),
            tail: Vec::new(),
            model: options.model.to_owned(),
            id: options.seed.to_owned(),
            usage: Usage {
                input: options.estimated_prompt_tokens,
                ..Usage::default()
            },
            choices: BTreeMap::new(),
            has_content: false,
        };
        writer.rebuild_tail();
        writer
    }

    fn rebuild_tail(&mut self) {
        let rest = json!({"modelVersion": self.model, "responseId": self.id}).to_string();
        self.tail = rest.into_bytes();
        if let Some(brace) = self.tail.first_mut() {
            *brace = b',';
        }
    }

    /// Writes an object with one part of one choice. `part` writes the part; the members of `beside` are added to the candidate.
    fn write_chunk(
        &mut self,
        choice: u32,
        part: impl FnOnce(&mut Vec<u8>),
        beside: &str,
        out: &mut Vec<u8>,
    ) {
        self.has_content = true;
        self.framing.write_prefix(out);
        out.extend_from_slice(br#"{"candidates":[{"content":{"parts":["#);
        part(out);
        out.extend_from_slice(br#"],"role":"model"},"index":"#);
        out.extend_from_slice(choice.to_string().as_bytes());
        out.extend_from_slice(beside.as_bytes());
        out.extend_from_slice(b"}]");
        out.extend_from_slice(&self.tail);
        self.framing.write_suffix(out);
    }

    fn write_text(&mut self, choice: u32, text: &str, thought: bool, out: &mut Vec<u8>) {
        let part = |out: &mut Vec<u8>| {
            out.extend_from_slice(br#"{"text":"#);
            // Writing to a Vec cannot fail.
            let _ = serde_json::to_writer(&mut *out, text);
            out.extend_from_slice(if thought {
                br#","thought":true}"#
            } else {
                b"}"
            });
        };
        self.write_chunk(choice, part, "", out);
    }

    fn write_part_json(&mut self, choice: u32, value: &Value, out: &mut Vec<u8>) {
        self.write_chunk(
            choice,
            |out| out.extend_from_slice(value.to_string().as_bytes()),
            "",
            out,
        );
    }

    fn write_hub_part(&mut self, choice: u32, part: &Part, out: &mut Vec<u8>) {
        if let Some(value) = write_part(part) {
            self.write_part_json(choice, &value, out);
        }
    }

    /// Writes a signature in a part without text.
    fn write_signature(
        &mut self,
        choice: u32,
        thought: bool,
        signature: &Opaque,
        out: &mut Vec<u8>,
    ) {
        let mut value = json!({"text": "", "thoughtSignature": signatures::for_client(signature)});
        if thought {
            value["thought"] = json!(true);
        }
        self.write_part_json(choice, &value, out);
    }

    /// Writes a complete call.
    fn write_call(
        &mut self,
        choice: u32,
        call: PendingCall,
        signature: Option<Opaque>,
        out: &mut Vec<u8>,
    ) {
        let kind = PartKind::ToolCall {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
            custom: call.custom,
            signature,
        };
        self.write_hub_part(choice, &Part::new(kind), out);
    }

    /// Handles an event of one choice.
    fn write_choice_event(&mut self, event: &Event, index: u32, out: &mut Vec<u8>) {
        let choice = self.choices.entry(index).or_default();
        if let Some((call, signature)) = choice.incomplete_call.take()
            && !is_truncating_finish(event)
        {
            self.write_call(index, call, signature, out);
        }
        let choice = self.choices.entry(index).or_default();
        choice.is_part_ended |= matches!(event, Event::TextEnd { .. });
        match event {
            Event::Text { text, .. } | Event::Refusal { text, .. } if !text.is_empty() => {
                if std::mem::take(&mut choice.is_part_ended) {
                    choice.part_start = choice.text.chars().count() as u64;
                }
                choice.text.push_str(text);
                self.write_text(index, text, false, out);
            }
            Event::Reasoning { text, .. } if !text.is_empty() => {
                self.write_text(index, text, true, out)
            }
            Event::TextEnd {
                signature: Some(signature),
                ..
            } => self.write_signature(index, false, signature, out),
            Event::ReasoningEnd {
                signature: Some(signature),
                ..
            } => {
                self.write_signature(index, true, signature, out);
            }
            Event::RedactedReasoning { data, .. } => {
                self.write_hub_part(
                    index,
                    &Part::new(PartKind::RedactedReasoning(data.clone())),
                    out,
                );
            }
            Event::Part { part, .. } => self.write_hub_part(index, part, out),
            Event::Citation { citation, .. } => {
                let from_text =
                    |offset: Option<u64>| Some(offset?.saturating_add(choice.part_start));
                choice.citations.push(Citation {
                    start: from_text(citation.start),
                    end: from_text(citation.end),
                    ..citation.clone()
                });
            }
            Event::Logprobs { value, .. } => {
                if let Some(tokens) = logprobs::write_logprobs(value) {
                    let beside = format!(r#","logprobsResult":{tokens}"#);
                    self.write_chunk(
                        index,
                        |out| out.extend_from_slice(br#"{"text":""}"#),
                        &beside,
                        out,
                    );
                }
            }
            Event::ToolStart { .. } | Event::ToolArguments { .. } | Event::ToolEnd { .. } => {
                self.write_call_event(event, index, out);
            }
            Event::Finish { finish, .. } => {
                choice.finish = Some(*finish);
                // A call that was cut off is left out.
                choice.calls.clear();
            }
            _ => {}
        }
    }

    /// Handles an event of one tool call.
    fn write_call_event(&mut self, event: &Event, index: u32, out: &mut Vec<u8>) {
        let choice = self.choices.entry(index).or_default();
        match event {
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => {
                let pending = PendingCall {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    custom: *custom,
                };
                choice.calls.entry(*call).or_insert(pending);
            }
            Event::ToolArguments { call, json, .. } => {
                if let Some(call) = choice.calls.get_mut(call) {
                    call.arguments.push_str(json);
                }
            }
            Event::ToolEnd {
                call, signature, ..
            } => {
                let Some(call) = choice.calls.remove(call) else {
                    return;
                };
                if call.has_complete_arguments() {
                    self.write_call(index, call, signature.clone(), out);
                } else {
                    choice.incomplete_call = Some((call, signature.clone()));
                }
            }
            _ => {}
        }
    }

    /// The last object: every choice with its finish reason, and the usage.
    fn final_object(&mut self) -> Value {
        let choices = std::mem::take(&mut self.choices);
        let blocked = !self.has_content
            && choices
                .values()
                .any(|choice| choice.finish == Some(FinishReason::PromptBlocked));
        let mut out = Map::new();
        if blocked {
            out.insert("promptFeedback".to_owned(), prompt_feedback(true));
        } else {
            let mut candidates: Vec<Value> = choices
                .iter()
                .map(|(at, choice)| choice.final_candidate(*at))
                .collect();
            if candidates.is_empty() {
                candidates.push(ChoiceState::default().final_candidate(0));
            }
            out.insert("candidates".to_owned(), Value::Array(candidates));
        }
        out.insert("usageMetadata".to_owned(), usage::write_usage(&self.usage));
        out.insert("modelVersion".to_owned(), json!(self.model));
        out.insert("responseId".to_owned(), json!(self.id));
        Value::Object(out)
    }
}

impl ChoiceState {
    fn final_candidate(&self, index: u32) -> Value {
        let reason = finish::finish_reason_name(self.finish.unwrap_or_default());
        let content = json!({"parts": [{"text": ""}], "role": "model"});
        let mut out = json!({"content": content, "finishReason": reason, "index": index});
        let cited = self
            .citations
            .iter()
            .map(|citation| (0, self.text.as_str(), citation));
        if let Some(grounding_metadata) = grounding::write_grounding(cited) {
            out["groundingMetadata"] = grounding_metadata;
        }
        out
    }
}

impl StreamWriter for Writer {
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        if let Some(index) = choice_index(event) {
            let finished = self
                .choices
                .get(&index)
                .is_some_and(|choice| choice.finish.is_some());
            if !finished && index <= MAX_CHOICE_INDEX {
                self.write_choice_event(event, index, out);
            }
            return;
        }
        match event {
            Event::Usage(usage) => self.usage = *usage,
            // All objects have the same id, so it cannot change after the first.
            Event::Start { id, usage, .. } if !self.has_content => {
                self.usage = usage.unwrap_or(self.usage);
                if !id.is_empty() {
                    self.id.clone_from(id);
                    self.rebuild_tail();
                }
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.framing.closed {
            // An empty line (in an array: white space) is the only keep-alive that every SDK
            // accepts.
            out.push(b'\n');
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        let last = self.final_object();
        self.framing.write_object(last.to_string().as_bytes(), out);
        self.framing.close(out);
    }

    fn error(&mut self, body: &ErrorBody, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        self.framing
            .write_object(error::error_object(body).to_string().as_bytes(), out);
        self.framing.close(out);
    }
}

impl PendingCall {
    fn has_complete_arguments(&self) -> bool {
        let arguments = self.arguments.trim();
        self.custom
            || arguments.is_empty()
            || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
    }
}

/// Whether the event finishes the response by cutting it off.
fn is_truncating_finish(event: &Event) -> bool {
    matches!(event, Event::Finish { finish, .. } if finish::is_truncated(*finish))
}

fn choice_index(event: &Event) -> Option<u32> {
    match event {
        Event::Start { .. } | Event::Usage(_) => None,
        Event::Text { choice, .. }
        | Event::TextEnd { choice, .. }
        | Event::Reasoning { choice, .. }
        | Event::ReasoningEnd { choice, .. }
        | Event::RedactedReasoning { choice, .. }
        | Event::Refusal { choice, .. }
        | Event::ToolStart { choice, .. }
        | Event::ToolArguments { choice, .. }
        | Event::ToolEnd { choice, .. }
        | Event::Citation { choice, .. }
        | Event::Part { choice, .. }
        | Event::Logprobs { choice, .. }
        | Event::Finish { choice, .. } => Some(*choice),
    }
}
