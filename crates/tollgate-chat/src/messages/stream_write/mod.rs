//! Writes a stream for a client: a start, blocks one after the other, an end or an error.

mod queue;
mod wire;

use serde_json::{Value, json};

use super::blocks::{carrier, proof_for_client, write_citation};
use super::reply::{blocks_of, call_id, message_id, redacted};
use super::usage;
use super::wire::stop_reason;
use crate::error::ErrorBody;
use crate::format::{RenderOptions, StreamWriter};
use crate::hub::{Event, FinishReason, Part, PartKind, Usage};
use crate::sse::MAX_EVENT_BYTES;
use crate::tokens::TokenEstimator;
use queue::Queue;
use wire::put;
pub(super) use wire::{put_error, put_message_stop, put_ping, put_stop};

/// Writes a stream of this format.
pub(super) struct Writer {
    model: String,
    seed: String,
    estimate: u64,
    is_started: bool,
    is_done: bool,
    queue: Queue,
    calls: u32,
    has_refused: bool,
    finish: Option<(FinishReason, Option<String>)>,
    usage: Option<Usage>,
    /// What was generated, for a count where the upstream gives none.
    generated: TokenEstimator,
}

impl Writer {
    pub(super) fn new(rendering: &RenderOptions<'_>) -> Self {
        Self {
            model: rendering.model.to_owned(),
            seed: rendering.seed.to_owned(),
            estimate: rendering.estimated_prompt_tokens,
            is_started: false,
            is_done: false,
            queue: Queue::default(),
            calls: 0,
            has_refused: false,
            finish: None,
            usage: None,
            generated: TokenEstimator::default(),
        }
    }

    /// The counts that are ours where the upstream gives none.
    fn counted(&self) -> Usage {
        Usage {
            input: self.estimate,
            output: self.generated.tokens(),
            ..Usage::default()
        }
    }

    fn start(&mut self, id: &str, known: Option<Usage>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        let known = known.filter(|usage| usage.input > 0);
        let message = json!({
            "id": message_id(id, &self.seed),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage::write(&known.unwrap_or_else(|| self.counted())),
        });
        let data = json!({"type": "message_start", "message": message});
        put(out, "message_start", &data.to_string());
    }

    /// Takes one event of the only reply that the format has.
    fn content(&mut self, event: &Event) {
        match event {
            Event::Text { text, .. } => self.text(text),
            Event::Refusal { text, .. } => {
                self.has_refused = true;
                self.text(text);
            }
            Event::TextEnd { signature, .. } => {
                self.queue.end_running();
                if let Some(signature) = signature {
                    self.queue.whole(carrier(signature));
                }
            }
            Event::Reasoning { text, .. } => {
                self.generated.add(text);
                self.queue.thinking(text);
            }
            Event::ReasoningEnd { signature, .. } => {
                let proof = proof_for_client(signature.as_ref());
                self.queue.thinking_end(&proof);
            }
            Event::RedactedReasoning { data, .. } => self.queue.whole(redacted(data)),
            Event::Citation { citation, .. } => {
                if let Some(citation) = write_citation(citation) {
                    self.queue.citation(&citation);
                }
            }
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => self.call_start(*call, id, name, *custom),
            Event::ToolArguments { call, json, .. } => {
                if self.queue.call_arguments(*call, json) {
                    self.generated.add(json);
                }
            }
            Event::ToolEnd {
                call, signature, ..
            } => self.queue.call_end(*call, signature.as_ref().map(carrier)),
            Event::Part { part, .. } => self.part(part),
            Event::Start { .. }
            | Event::Usage(_)
            | Event::Logprobs { .. }
            | Event::Finish { .. } => {}
        }
    }

    fn text(&mut self, text: &str) {
        self.generated.add(text);
        self.queue.text(text);
    }

    fn call_start(&mut self, call: u32, id: &str, name: &str, custom: bool) {
        let id = call_id(id, self.calls as usize);
        let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        if self.queue.call_start(call, custom, start) {
            self.calls += 1;
            self.generated.add(name);
        }
    }

    /// A part that comes whole.
    fn part(&mut self, part: &Part) {
        let blocks = blocks_of(part, self.calls as usize);
        self.has_refused |= matches!(part.kind, PartKind::Refusal(_));
        self.calls += u32::from(matches!(part.kind, PartKind::ToolCall { .. }));
        for block in blocks {
            self.block(block);
        }
    }

    /// A block that comes whole, told as the format tells its kind.
    fn block(&mut self, mut block: Value) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match text("type").as_str() {
            "text" => {
                let (text, citations) = (text("text"), block["citations"].take());
                self.queue.end_running();
                self.text(&text);
                for citation in citations.as_array().into_iter().flatten() {
                    self.queue.citation(citation);
                }
                self.queue.end_running();
            }
            "thinking" => {
                self.queue.end_running();
                self.queue.thinking(&text("thinking"));
                self.queue.thinking_end(&text("signature"));
            }
            kind if kind.ends_with("tool_use") && block["input"].is_object() => {
                let input = block["input"].take();
                self.queue.whole_with_input(block, &input);
            }
            _ => self.queue.whole(block),
        }
    }
}

impl StreamWriter for Writer {
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.is_done {
            return;
        }
        match event {
            Event::Start { id, usage, .. } => {
                self.start(id, *usage, out);
                self.usage = usage.or(self.usage);
                return;
            }
            Event::Usage(usage) => {
                self.usage = Some(*usage);
                return;
            }
            _ => self.start("", None, out),
        }
        if choice_of(event) != Some(0) || self.finish.is_some() {
            return;
        }
        if let Event::Finish {
            finish,
            stop_sequence,
            ..
        } = event
        {
            self.finish = Some((*finish, stop_sequence.clone()));
            return;
        }
        self.content(event);
        self.queue.advance(out);
        if self.queue.waiting() > MAX_EVENT_BYTES {
            let message = "the upstream's tool calls overlap by more than can be kept".to_owned();
            let error = ErrorBody {
                status: 502,
                message,
                param: None,
                code: None,
                bare: false,
            };
            self.error(&error, out);
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.is_started && !self.is_done {
            put_ping(out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_done {
            return;
        }
        self.start("", None, out);
        self.queue.end_all();
        self.queue.advance(out);
        self.is_done = true;
        let (finish, sequence) = self.finish.take().unwrap_or_default();
        let finish = match finish {
            FinishReason::EndTurn if self.has_refused && self.calls == 0 => FinishReason::Refusal,
            other => other.with_tool_calls(self.calls > 0),
        };
        let sequence = sequence.filter(|_| finish == FinishReason::StopSequence);
        let reason = stop_reason(finish, sequence.is_some());
        let usage = self.usage.unwrap_or_else(|| self.counted());
        let data = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": usage::write(&usage),
        });
        put(out, "message_delta", &data.to_string());
        put_message_stop(out);
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        self.queue.abandon(out);
        put_error(out, error);
    }
}

/// Which reply an event is about.
fn choice_of(event: &Event) -> Option<u32> {
    match event {
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
        Event::Start { .. } | Event::Usage(_) => None,
    }
}
