//! A stream for a client of this format.
//!
//! Kept whatever events come: the role first and once for each choice, an id and a name once for each call, calls numbered
//! from 0 without gaps, the finish once and last for each choice, then usage, then `[DONE]`. The finish is held back until
//! [`StreamWriter::end`].

use std::io::Write as _;

use serde_json::{Map, Value, json};

use super::reply::{annotation, image, minted_id, reply_id, whole_logprobs};
use super::wire::reason_of;
use super::{error, usage};
use crate::error::WireError;
use crate::format::{Rendering, StreamWriter};
use crate::hub::{Citation, Event, Finish, Kind, Usage};

/// More choices than anybody asks for.
const CHOICES_MAX: u32 = 128;

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
    /// Characters of text so far, and before the part that is open.
    length: u64,
    part_start: u64,
    refused: bool,
    thought: Thought,
    images: usize,
    annotations: Vec<Value>,
    /// Sources of the part that is open.
    sources: Vec<Citation>,
    finish: Option<Finish>,
}

struct Call {
    /// The event's number.
    number: u32,
    custom: bool,
    has_arguments: bool,
    ended: bool,
}

/// Whether thinking goes on in the same piece, so that pieces are set apart as in a whole reply.
#[derive(PartialEq)]
enum Thought {
    None,
    Open,
    Ended,
}

impl Choice {
    /// What follows is another piece of text.
    fn end_part(&mut self) {
        let text = self.part_start..self.length;
        let sources = self.sources.drain(..);
        self.annotations
            .extend(sources.filter_map(|source| annotation(&source, text.clone())));
        self.part_start = self.length;
    }
}

impl Writer {
    /// A stream that is to look like that.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            model: rendering.model.to_owned(),
            seed: rendering.seed.to_owned(),
            include_usage: rendering.include_usage,
            id: reply_id("", rendering),
            created: rendering.created,
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
                    self.choice_event(at, event, out);
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
            self.chunk(out, |out| write!(out, r#""choices":[],"usage":{counts}"#));
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
        self.closed = true;
    }

    fn error(&mut self, error: &WireError, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.closed, true) {
            write_error_event(error, out);
        }
    }
}

/// The error as an event; nothing may follow it.
pub(super) fn write_error_event(error: &WireError, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    out.extend_from_slice(&error::write(error));
    out.extend_from_slice(b"\n\n");
}

impl Writer {
    /// The place of the event's choice, its role sent. None for events that have no place in the stream.
    fn open_choice<'e>(
        &mut self,
        event: &'e Event,
        out: &mut Vec<u8>,
    ) -> Option<(usize, &'e Event)> {
        let index = choice_of(event)?;
        let found = self.choices.iter().position(|choice| choice.index == index);
        let at = match found {
            Some(at) => at,
            None if index >= CHOICES_MAX => return None,
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
            refused: false,
            thought: Thought::None,
            images: 0,
            annotations: Vec::new(),
            sources: Vec::new(),
            finish: None,
        });
        self.delta(index, out, &json!({"role": "assistant", "content": ""}));
        self.choices.len() - 1
    }

    fn choice_event(&mut self, at: usize, event: &Event, out: &mut Vec<u8>) {
        let choice = &mut self.choices[at];
        let index = choice.index;
        match event {
            Event::Text { text, .. } => self.text(at, text, out),
            Event::TextEnd { .. } => choice.end_part(),
            Event::Reasoning { text, .. } => self.think(at, text, out),
            Event::ReasoningEnd { .. } if choice.thought == Thought::Open => {
                choice.thought = Thought::Ended
            }
            Event::Refusal { text, .. } if !text.is_empty() => {
                choice.refused = true;
                self.delta_text(index, "refusal", text, out);
            }
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => self.start_call(at, *call, id, name, *custom, out),
            Event::ToolArguments { call, json, .. } if !json.is_empty() => {
                self.arguments(at, *call, json, out)
            }
            Event::ToolEnd { call, .. } => self.end_call(at, *call, out),
            Event::Citation { citation, .. } => choice.sources.push(citation.clone()),
            Event::Part { part, .. } => match &part.kind {
                Kind::Image { source, .. } => {
                    if let Some(image) = image(source, choice.images) {
                        choice.images += 1;
                        self.delta(index, out, &json!({"images": [image]}));
                    }
                }
                Kind::Text { text, .. } => self.text(at, text, out),
                _ => {}
            },
            Event::Logprobs { value, .. } => {
                let value = whole_logprobs(value);
                self.chunk(out, |out| {
                write!(out, r#""choices":[{{"index":{index},"delta":{{}},"logprobs":{value},"finish_reason":null}}]"#)
            });
            }
            Event::Finish { finish, .. } => choice.finish = Some(*finish),
            _ => {}
        }
    }

    fn text(&mut self, at: usize, text: &str, out: &mut Vec<u8>) {
        if !text.is_empty() {
            let choice = &mut self.choices[at];
            choice.length += text.chars().count() as u64;
            let index = choice.index;
            self.delta_text(index, "content", text, out);
        }
    }

    fn think(&mut self, at: usize, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let choice = &mut self.choices[at];
        let before = std::mem::replace(&mut choice.thought, Thought::Open);
        let index = choice.index;
        if before == Thought::Ended {
            self.delta_text(index, "reasoning_content", "\n\n", out);
        }
        self.delta_text(index, "reasoning_content", text, out);
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
        let (index, place) = (choice.index, choice.calls.len());
        choice.calls.push(Call {
            number,
            custom,
            has_arguments: false,
            ended: false,
        });
        let minted = || minted_id(&self.seed, index, place as u32, name);
        let id = if id.is_empty() {
            minted()
        } else {
            id.to_owned()
        };
        let call = if custom {
            json!({"index": place, "id": id, "type": "custom", "custom": {"name": name, "input": ""}})
        } else {
            json!({"index": place, "id": id, "type": "function", "function": {"name": name, "arguments": ""}})
        };
        self.delta(index, out, &json!({"tool_calls": [call]}));
    }

    fn arguments(&mut self, at: usize, number: u32, piece: &str, out: &mut Vec<u8>) {
        let choice = &mut self.choices[at];
        let index = choice.index;
        let found = choice
            .calls
            .iter_mut()
            .enumerate()
            .find(|(_, call)| call.number == number && !call.ended);
        let Some((place, call)) = found else {
            return;
        };
        call.has_arguments = true;
        let delta = if call.custom {
            json!({"tool_calls": [{"index": place, "custom": {"input": piece}}]})
        } else {
            json!({"tool_calls": [{"index": place, "function": {"arguments": piece}}]})
        };
        self.delta(index, out, &delta);
    }

    /// A call without arguments gets the empty object: clients parse what they gathered.
    fn end_call(&mut self, at: usize, number: u32, out: &mut Vec<u8>) {
        let calls = &mut self.choices[at].calls;
        let open = calls
            .iter_mut()
            .find(|call| call.number == number && !call.ended);
        let Some((has_arguments, custom)) = open.map(|call| (call.has_arguments, call.custom))
        else {
            return;
        };
        if !has_arguments && !custom {
            self.arguments(at, number, "{}", out);
        }
        if let Some(call) = self.choices[at]
            .calls
            .iter_mut()
            .find(|call| call.number == number)
        {
            call.ended = true;
        }
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
        // All at once: the Python SDK cannot add up lists whose entries have no index.
        self.choices[at].end_part();
        let sources = std::mem::take(&mut self.choices[at].annotations);
        if !sources.is_empty() {
            self.delta(index, out, &json!({"annotations": sources}));
        }
        let choice = &self.choices[at];
        let reason = match choice
            .finish
            .unwrap_or_default()
            .with_calls(!choice.calls.is_empty())
        {
            Finish::Refusal if choice.refused && choice.calls.is_empty() => reason_of(Finish::End),
            finish => reason_of(finish),
        };
        self.chunk(out, |out| {
            write!(out, r#""choices":[{{"index":{index},"delta":{{}},"logprobs":null,"finish_reason":"{reason}"}}]"#)
        });
    }

    fn delta_text(&self, index: u32, name: &str, text: &str, out: &mut Vec<u8>) {
        let delta = Map::from_iter([(name.to_owned(), Value::from(text))]);
        self.delta(index, out, &delta.into());
    }

    fn delta(&self, index: u32, out: &mut Vec<u8>, delta: &Value) {
        self.chunk(out, |out| {
            write!(out, r#""choices":[{{"index":{index},"delta":{delta},"logprobs":null,"finish_reason":null}}]"#)
        });
    }

    /// One event around the members that `inner` writes. Writing to memory cannot fail.
    fn chunk(&self, out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) {
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
        // Where usage comes at the end, all chunks before have it as null.
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
        | Event::Redacted { choice, .. }
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
