//! Writes a stream for a client.
//!
//! Guaranteed whatever events the writer receives: `message_start` first and once, one block open at a time with indexes from 0 without gaps, then
//! `message_delta` and `message_stop`, or an `error` after the open block was ended.

mod block_queue;
mod events;

use serde_json::{Value, json};

use super::block_write::{signature_block, signature_for_client};
use super::citations::write_citation;
use super::finish::finish_to_reason;
use super::ids::{client_call_id, message_id};
use super::response_write::{part_to_blocks, redacted_block};
use super::usage;
use crate::error::ErrorBody;
use crate::format::{RenderOptions, StreamWriter};
use crate::hub::{Event, FinishReason, Part, PartKind, Usage};
use crate::sse::MAX_EVENT_BYTES;
use crate::tokens::TokenEstimator;
use block_queue::BlockQueue;
use events::write_event;
pub(crate) use events::{write_block_stop, write_error_event, write_message_stop, write_ping};

/// Writes one stream.
pub(crate) struct Writer {
    model: String,
    seed: String,
    estimated_prompt_tokens: u64,
    is_started: bool,
    is_done: bool,
    queue: BlockQueue,
    calls: u32,
    has_refusal: bool,
    finish: Option<(FinishReason, Option<String>)>,
    usage: Option<Usage>,
    /// Counts the generated content, to estimate usage if it is missing.
    generated: TokenEstimator,
}

impl Writer {
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            model: options.model.to_owned(),
            seed: options.seed.to_owned(),
            estimated_prompt_tokens: options.estimated_prompt_tokens,
            is_started: false,
            is_done: false,
            queue: BlockQueue::default(),
            calls: 0,
            has_refusal: false,
            finish: None,
            usage: None,
            generated: TokenEstimator::default(),
        }
    }

    /// The gateway's estimate, for a stream without usage.
    fn estimated_usage(&self) -> Usage {
        Usage {
            input: self.estimated_prompt_tokens,
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
            "usage": usage::write_usage(&known.unwrap_or_else(|| self.estimated_usage())),
        });
        let data = json!({"type": "message_start", "message": message});
        write_event(out, "message_start", &data.to_string());
    }

    /// Queues an event of the first choice, the only one that the format has.
    fn queue_content(&mut self, event: &Event) {
        match event {
            Event::Text { text, .. } => self.queue_text(text),
            Event::Refusal { text, .. } => {
                self.has_refusal = true;
                self.queue_text(text);
            }
            Event::TextEnd { signature, .. } => {
                self.queue.end_text(signature.as_ref().map(signature_block));
            }
            Event::Reasoning { text, .. } => {
                self.generated.add(text);
                self.queue.add_thinking(text);
            }
            Event::ReasoningEnd { signature, .. } => {
                let signature = signature_for_client(signature.as_ref());
                self.queue.end_thinking(&signature);
            }
            Event::RedactedReasoning { data, .. } => self.queue.add_complete(redacted_block(data)),
            Event::Citation { citation, .. } => {
                if let Some(citation) = write_citation(citation) {
                    self.queue.add_citation(&citation);
                }
            }
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => self.start_call(*call, id, name, *custom),
            Event::ToolArguments { call, json, .. } => {
                if self.queue.add_arguments(*call, json) {
                    self.generated.add(json);
                }
            }
            Event::ToolEnd {
                call, signature, ..
            } => self
                .queue
                .end_call(*call, signature.as_ref().map(signature_block)),
            Event::Part { part, .. } => self.queue_part(part),
            Event::Start { .. }
            | Event::Usage(_)
            | Event::Logprobs { .. }
            | Event::Finish { .. } => {}
        }
    }

    fn queue_text(&mut self, text: &str) {
        self.generated.add(text);
        self.queue.add_text(text);
    }

    fn start_call(&mut self, call: u32, id: &str, name: &str, custom: bool) {
        let id = client_call_id(id, self.calls as usize);
        let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        if self.queue.start_call(call, custom, start) {
            self.calls += 1;
            self.generated.add(name);
        }
    }

    /// Queues a complete part.
    fn queue_part(&mut self, part: &Part) {
        let blocks = part_to_blocks(part, self.calls as usize);
        self.has_refusal |= matches!(part.kind, PartKind::Refusal(_));
        self.calls += u32::from(matches!(part.kind, PartKind::ToolCall { .. }));
        for block in blocks {
            self.queue_block(block);
        }
    }

    /// Queues a complete block, with the deltas of its type.
    fn queue_block(&mut self, mut block: Value) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        match text("type").as_str() {
            "text" => {
                let (text, citations) = (text("text"), block["citations"].take());
                self.queue.end_open_text();
                self.queue_text(&text);
                for citation in citations.as_array().into_iter().flatten() {
                    self.queue.add_citation(citation);
                }
                self.queue.end_open_text();
            }
            "thinking" => {
                self.queue.end_open_text();
                self.queue.add_thinking(&text("thinking"));
                self.queue.end_thinking(&text("signature"));
            }
            kind if kind.ends_with("tool_use") && block["input"].is_object() => {
                let input = block["input"].take();
                self.queue.add_complete_with_input(block, &input);
            }
            _ => self.queue.add_complete(block),
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
        if event_choice(event) != Some(0) || self.finish.is_some() {
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
        self.queue_content(event);
        self.queue.write_ready(out);
        if self.queue.waiting_bytes() > MAX_EVENT_BYTES {
            let message = "the upstream's tool calls overlap by more than can be kept".to_owned();
            let error = ErrorBody {
                status: 502,
                message,
                param: None,
                code: None,
                details: None,
                bare: false,
            };
            self.error(&error, out);
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.is_started && !self.is_done {
            write_ping(out);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.is_done {
            return;
        }
        self.start("", None, out);
        self.queue.end_all();
        self.queue.write_ready(out);
        self.is_done = true;
        let (finish, sequence) = self.finish.take().unwrap_or_default();
        let finish = match finish {
            FinishReason::EndTurn if self.has_refusal && self.calls == 0 => FinishReason::Refusal,
            other => other.with_tool_calls(self.calls > 0),
        };
        let sequence = sequence.filter(|_| finish == FinishReason::StopSequence);
        let reason = finish_to_reason(finish, sequence.is_some());
        let usage = self.usage.unwrap_or_else(|| self.estimated_usage());
        let data = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": usage::write_usage(&usage),
        });
        write_event(out, "message_delta", &data.to_string());
        write_message_stop(out);
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        self.queue.close(out);
        write_error_event(out, error);
    }
}

/// The choice that an event belongs to. `None` if it concerns the complete response.
fn event_choice(event: &Event) -> Option<u32> {
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
