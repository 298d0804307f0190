//! Writes a stream for a client.
//!
//! Guaranteed whatever events the writer receives: the role first and once per choice, an id and a name once per call, calls numbered from 0 without
//! gaps, the finish reason once and last per choice, then usage, then `[DONE]`. The finish reason is held back until [`StreamWriter::end`].

use std::io::Write as _;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::finish::finish_to_reason;
use super::ids::{generate_call_id, response_id};
use super::images::write_generated_image;
use super::response_write::{complete_logprobs, write_annotation};
use super::usage;
use crate::error::ErrorBody;
use crate::format::{RenderOptions, StreamWriter};
use crate::hub::{Citation, Event, FinishReason, PartKind, Usage};
use crate::openai_error::write_error;

/// Events of choices with this index or a higher one are ignored.
const MAX_CHOICES: u32 = 128;

/// Writes one stream.
pub(super) struct Writer {
    model: String,
    seed: String,
    include_usage: bool,
    id: String,
    created: i64,
    started: bool,
    choices: Vec<Choice>,
    usage: Option<Usage>,
    closed: bool,
}

struct Choice {
    index: u32,
    calls: Vec<Call>,
    /// Characters of text so far.
    length: u64,
    /// Characters of text before the current part.
    part_start: u64,
    /// The characters of the last part that has ended: citations that follow its end belong to it.
    last_part: Range<u64>,
    has_refusal: bool,
    reasoning: ReasoningState,
    images: usize,
    annotations: Vec<Value>,
    /// Citations of the current part.
    citations: Vec<Citation>,
    finish: Option<FinishReason>,
}

struct Call {
    /// The call's number in the events.
    number: u32,
    custom: bool,
    has_arguments: bool,
    ended: bool,
}

/// Separates reasoning parts by a blank line, as in a complete response.
#[derive(PartialEq)]
enum ReasoningState {
    None,
    Open,
    Ended,
}

impl Choice {
    /// Ends the current text part.
    fn end_part(&mut self) {
        if self.part_start < self.length {
            self.last_part = self.part_start..self.length;
            self.part_start = self.length;
        }
        let text = self.last_part.clone();
        let citations = self.citations.drain(..);
        self.annotations
            .extend(citations.filter_map(|citation| write_annotation(&citation, text.clone())));
    }
}

impl Writer {
    /// A writer for one stream.
    pub(super) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            model: options.model.to_owned(),
            seed: options.seed.to_owned(),
            include_usage: options.include_usage,
            id: response_id("", options),
            created: options.created,
            started: false,
            choices: Vec::new(),
            usage: None,
            closed: false,
        }
    }
}

impl StreamWriter for Writer {
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.closed {
            return;
        }
        match event {
            Event::Start {
                id, created, usage, ..
            } => {
                if !std::mem::replace(&mut self.started, true) {
                    if !id.is_empty() {
                        self.id.clone_from(id);
                    }
                    self.created = created.unwrap_or(self.created);
                    self.usage = usage.or(self.usage);
                }
            }
            Event::Usage(usage) => self.usage = Some(*usage),
            _ => {
                if let Some((at, event)) = self.open_choice(event, out) {
                    self.write_choice_event(at, event, out);
                }
            }
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.closed {
            out.extend_from_slice(b": keep-alive\n\n");
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.closed {
            return;
        }
        if self.choices.is_empty() {
            self.begin_choice(0, out);
        }
        for at in 0..self.choices.len() {
            self.end_choice(at, out);
        }
        if let Some(usage) = self.usage.filter(|_| self.include_usage) {
            let counts = usage::write(&usage);
            self.write_chunk(out, |out| write!(out, r#""choices":[],"usage":{counts}"#));
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
        self.closed = true;
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.closed, true) {
            write_error_event(error, out);
        }
    }
}

/// Writes an error event; nothing may follow it.
pub(super) fn write_error_event(error: &ErrorBody, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(&write_error(error));
    out.extend_from_slice(b"\n\n");
}

impl Writer {
    /// Sends the role of the event's choice if needed, and returns the choice's index in `choices`. `None` if the event is not written.
    fn open_choice<'e>(
        &mut self,
        event: &'e Event,
        out: &mut Vec<u8>,
    ) -> Option<(usize, &'e Event)> {
        let index = choice_of(event)?;
        let found = self.choices.iter().position(|choice| choice.index == index);
        let at = match found {
            Some(at) => at,
            None if index >= MAX_CHOICES => return None,
            None => self.begin_choice(index, out),
        };
        self.choices[at].finish.is_none().then_some((at, event))
    }

    fn begin_choice(&mut self, index: u32, out: &mut Vec<u8>) -> usize {
        self.started = true;
        self.choices.push(Choice {
            index,
            calls: Vec::new(),
            length: 0,
            part_start: 0,
            last_part: 0..0,
            has_refusal: false,
            reasoning: ReasoningState::None,
            images: 0,
            annotations: Vec::new(),
            citations: Vec::new(),
            finish: None,
        });
        self.write_delta(index, out, &json!({"role": "assistant", "content": ""}));
        self.choices.len() - 1
    }

    fn write_choice_event(&mut self, at: usize, event: &Event, out: &mut Vec<u8>) {
        let choice = &mut self.choices[at];
        let index = choice.index;
        match event {
            Event::Text { text, .. } => self.write_text(at, text, out),
            Event::TextEnd { .. } => choice.end_part(),
            Event::Reasoning { text, .. } => self.write_reasoning(at, text, out),
            Event::ReasoningEnd { .. } if choice.reasoning == ReasoningState::Open => {
                choice.reasoning = ReasoningState::Ended
            }
            Event::Refusal { text, .. } if !text.is_empty() => {
                choice.has_refusal = true;
                self.write_text_delta(index, "refusal", text, out);
            }
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => self.start_call(at, *call, id, name, *custom, out),
            Event::ToolArguments { call, json, .. } if !json.is_empty() => {
                self.write_arguments(at, *call, json, out)
            }
            Event::ToolEnd { call, .. } => self.end_call(at, *call, out),
            Event::Citation { citation, .. } => choice.citations.push(citation.clone()),
            Event::Part { part, .. } => match &part.kind {
                PartKind::Image { source, .. } => {
                    if let Some(image) = write_generated_image(source, choice.images) {
                        choice.images += 1;
                        self.write_delta(index, out, &json!({"images": [image]}));
                    }
                }
                PartKind::Text { text, .. } => self.write_text(at, text, out),
                _ => {}
            },
            Event::Logprobs { value, .. } => {
                let value = complete_logprobs(value);
                self.write_chunk(out, |out| {
                write!(out, r#""choices":[{{"index":{index},"delta":{{}},"logprobs":{value},"finish_reason":null}}]"#)
            });
            }
            Event::Finish { finish, .. } => choice.finish = Some(*finish),
            _ => {}
        }
    }

    fn write_text(&mut self, at: usize, text: &str, out: &mut Vec<u8>) {
        if !text.is_empty() {
            let choice = &mut self.choices[at];
            if choice.part_start == choice.length {
                // Citations so far belong to the part that has ended.
                choice.end_part();
            }
            choice.length += text.chars().count() as u64;
            let index = choice.index;
            self.write_text_delta(index, "content", text, out);
        }
    }

    fn write_reasoning(&mut self, at: usize, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let choice = &mut self.choices[at];
        let before = std::mem::replace(&mut choice.reasoning, ReasoningState::Open);
        let index = choice.index;
        if before == ReasoningState::Ended {
            self.write_text_delta(index, "reasoning_content", "\n\n", out);
        }
        self.write_text_delta(index, "reasoning_content", text, out);
    }

    fn start_call(
        &mut self,
        at: usize,
        number: u32,
        id: &str,
        name: &str,
        custom: bool,
        out: &mut Vec<u8>,
    ) {
        let choice = &mut self.choices[at];
        if choice.calls.iter().any(|call| call.number == number) {
            return;
        }
        let (index, position) = (choice.index, choice.calls.len());
        choice.calls.push(Call {
            number,
            custom,
            has_arguments: false,
            ended: false,
        });
        let generated_id = || generate_call_id(&self.seed, index, position as u32, name);
        let id = if id.is_empty() {
            generated_id()
        } else {
            id.to_owned()
        };
        let call = if custom {
            json!({"index": position, "id": id, "type": "custom", "custom": {"name": name, "input": ""}})
        } else {
            json!({"index": position, "id": id, "type": "function", "function": {"name": name, "arguments": ""}})
        };
        self.write_delta(index, out, &json!({"tool_calls": [call]}));
    }

    fn write_arguments(&mut self, at: usize, number: u32, piece: &str, out: &mut Vec<u8>) {
        let choice = &mut self.choices[at];
        let index = choice.index;
        let found = choice
            .calls
            .iter_mut()
            .enumerate()
            .find(|(_, call)| call.number == number && !call.ended);
        let Some((position, call)) = found else {
            return;
        };
        call.has_arguments = true;
        let delta = if call.custom {
            json!({"tool_calls": [{"index": position, "custom": {"input": piece}}]})
        } else {
            json!({"tool_calls": [{"index": position, "function": {"arguments": piece}}]})
        };
        self.write_delta(index, out, &delta);
    }

    /// Ends a call. A call without arguments gets an empty object, because clients parse the arguments.
    fn end_call(&mut self, at: usize, number: u32, out: &mut Vec<u8>) {
        let calls = &self.choices[at].calls;
        let is_open = |call: &Call| call.number == number && !call.ended;
        let Some(position) = calls.iter().position(is_open) else {
            return;
        };
        if !calls[position].has_arguments && !calls[position].custom {
            self.write_arguments(at, number, "{}", out);
        }
        self.choices[at].calls[position].ended = true;
    }

    fn end_choice(&mut self, at: usize, out: &mut Vec<u8>) {
        let open: Vec<u32> = self.choices[at]
            .calls
            .iter()
            .map(|call| call.number)
            .collect();
        for number in open {
            self.end_call(at, number, out);
        }
        let index = self.choices[at].index;
        // All citations are sent in one chunk: the Python SDK cannot merge lists whose entries have no index.
        self.choices[at].end_part();
        let citations = std::mem::take(&mut self.choices[at].annotations);
        if !citations.is_empty() {
            self.write_delta(index, out, &json!({"annotations": citations}));
        }
        let choice = &self.choices[at];
        let reason = match choice
            .finish
            .unwrap_or_default()
            .with_tool_calls(!choice.calls.is_empty())
        {
            FinishReason::Refusal if choice.has_refusal && choice.calls.is_empty() => {
                finish_to_reason(FinishReason::EndTurn)
            }
            finish => finish_to_reason(finish),
        };
        self.write_chunk(out, |out| {
            write!(out, r#""choices":[{{"index":{index},"delta":{{}},"logprobs":null,"finish_reason":"{reason}"}}]"#)
        });
    }

    fn write_text_delta(&self, index: u32, name: &str, text: &str, out: &mut Vec<u8>) {
        let delta = Map::from_iter([(name.to_owned(), Value::from(text))]);
        self.write_delta(index, out, &delta.into());
    }

    fn write_delta(&self, index: u32, out: &mut Vec<u8>, delta: &Value) {
        self.write_chunk(out, |out| {
            write!(out, r#""choices":[{{"index":{index},"delta":{delta},"logprobs":null,"finish_reason":null}}]"#)
        });
    }

    /// Writes one event with the members that `inner` writes. Writing to memory cannot fail.
    fn write_chunk(
        &self,
        out: &mut Vec<u8>,
        inner: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>,
    ) {
        out.extend_from_slice(br#"data: {"id":"#);
        let _ = serde_json::to_writer(&mut *out, &self.id);
        let _ = write!(
            out,
            r#","object":"chat.completion.chunk","created":{},"model":"#,
            self.created
        );
        let _ = serde_json::to_writer(&mut *out, &self.model);
        out.push(b',');
        let from = out.len();
        let _ = inner(out);
        // If the last chunk has usage, all earlier chunks have `usage: null`.
        let has_usage =
            memchr::memmem::find(&out[from..], br#""choices":[],"#).is_some_and(|at| at == 0);
        if self.include_usage && !has_usage {
            out.extend_from_slice(br#","usage":null"#);
        }
        out.extend_from_slice(b"}\n\n");
    }
}

fn choice_of(event: &Event) -> Option<u32> {
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
