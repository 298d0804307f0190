//! Writes a stream for a client: blocks one after the other, whatever the order in which events come.
//!
//! The blocks wait in a queue. The first is on the wire; what comes for the others is kept until it is closed. Text and thinking
//! end when something else begins, a call only at its own end: so nothing waits unless calls overlap.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::blocks::{carrier, proof_for_client, write_citation};
use super::error;
use super::reply::{self, blocks_of, call_id, redacted};
use super::usage;
use super::wire::stop_reason;
use crate::error::WireError;
use crate::format::{Rendering, StreamWriter};
use crate::hub::{Event, Finish, Kind, Opaque, Part, Usage};
use crate::sse::EVENT_MAX;
use crate::tokens::Counter;

/// Writes a stream of this format.
pub(super) struct Writer {
    model: String,
    seed: String,
    estimate: u64,
    is_started: bool,
    is_done: bool,
    /// Blocks that are open on the wire or wait for it.
    queue: VecDeque<Block>,
    /// The number of the block that comes next on the wire.
    next_index: u64,
    /// What waits in the queue, in bytes.
    waiting: usize,
    calls: u32,
    has_refused: bool,
    finish: Option<(Finish, Option<String>)>,
    usage: Option<Usage>,
    /// What was generated, for a count where the upstream gives none.
    generated: Counter,
}

/// A block in the queue.
struct Block {
    kind: BlockKind,
    /// Deltas that wait.
    deltas: Vec<Value>,
    /// Its number, once it is on the wire.
    index: Option<u64>,
    is_ended: bool,
}

enum BlockKind {
    Text,
    Thinking,
    Call {
        call: u32,
        custom: bool,
        /// The beginning of arguments that may turn out to be none (white space, `null`).
        head: Option<String>,
        start: Value,
    },
    /// One that has everything in its start.
    Whole(Value),
}

impl Writer {
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            model: rendering.model.to_owned(),
            seed: rendering.seed.to_owned(),
            estimate: rendering.prompt_estimate,
            is_started: false,
            is_done: false,
            queue: VecDeque::new(),
            next_index: 0,
            waiting: 0,
            calls: 0,
            has_refused: false,
            finish: None,
            usage: None,
            generated: Counter::default(),
        }
    }

    fn start(&mut self, id: &str, known: Option<Usage>, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_started, true) {
            return;
        }
        let estimate = Usage {
            input: self.estimate,
            ..Usage::default()
        };
        let usage = known.filter(|usage| usage.input > 0).unwrap_or(estimate);
        let message = json!({
            "id": reply::id(id, &self.seed),
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage::write(&usage),
        });
        put(
            out,
            "message_start",
            &json!({"type": "message_start", "message": message}),
        );
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
                self.end_running();
                self.carry(signature.as_ref());
            }
            Event::Reasoning { text, .. } => self.thinking(text),
            Event::ReasoningEnd { signature, .. } => self.thinking_end(signature.as_ref()),
            Event::Redacted { data, .. } => self.whole(redacted(data)),
            Event::Citation { citation, .. } => {
                let running = self.running(|kind| matches!(kind, BlockKind::Text));
                if let (Some(block), Some(citation)) = (running, write_citation(citation)) {
                    block
                        .deltas
                        .push(json!({"type": "citations_delta", "citation": citation}));
                }
            }
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => self.call_start(*call, id, name, *custom),
            Event::ToolArguments { call, json, .. } => self.call_arguments(*call, json),
            Event::ToolEnd {
                call, signature, ..
            } => self.call_end(*call, signature.as_ref()),
            Event::Part { part, .. } => self.part(part),
            _ => {}
        }
    }

    fn push(&mut self, kind: BlockKind, is_ended: bool) {
        self.end_running();
        self.queue.push_back(Block {
            kind,
            deltas: Vec::new(),
            index: None,
            is_ended,
        });
    }

    /// The last block, if it is still open and of that kind.
    fn running(&mut self, is_kind: impl Fn(&BlockKind) -> bool) -> Option<&mut Block> {
        self.queue
            .back_mut()
            .filter(|block| !block.is_ended && is_kind(&block.kind))
    }

    /// Ends the last block if it is text or thinking: something else begins.
    fn end_running(&mut self) {
        if let Some(block) = self.running(|kind| matches!(kind, BlockKind::Text)) {
            block.is_ended = true;
        } else if self
            .running(|kind| matches!(kind, BlockKind::Thinking))
            .is_some()
        {
            self.thinking_end(None);
        }
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.generated.add(text);
        if self
            .running(|kind| matches!(kind, BlockKind::Text))
            .is_none()
        {
            self.push(BlockKind::Text, false);
        }
        self.delta(json!({"type": "text_delta", "text": text}), text.len());
    }

    fn thinking(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.generated.add(text);
        if self
            .running(|kind| matches!(kind, BlockKind::Thinking))
            .is_none()
        {
            self.push(BlockKind::Thinking, false);
        }
        self.delta(
            json!({"type": "thinking_delta", "thinking": text}),
            text.len(),
        );
    }

    /// A thinking block ends with its signature, an empty one where there is none.
    fn thinking_end(&mut self, signature: Option<&Opaque>) {
        if self
            .running(|kind| matches!(kind, BlockKind::Thinking))
            .is_none()
        {
            if signature.is_none() {
                return;
            }
            self.push(BlockKind::Thinking, false);
        }
        let proof = proof_for_client(signature);
        self.delta(
            json!({"type": "signature_delta", "signature": proof}),
            proof.len(),
        );
        if let Some(block) = self.queue.back_mut() {
            block.is_ended = true;
        }
    }

    /// Adds to the last block.
    fn delta(&mut self, delta: Value, bytes: usize) {
        if let Some(block) = self.queue.back_mut() {
            block.deltas.push(delta);
            self.waiting += bytes;
        }
    }

    fn whole(&mut self, block: Value) {
        self.push(BlockKind::Whole(block), true);
    }

    fn carry(&mut self, signature: Option<&Opaque>) {
        if let Some(signature) = signature {
            self.whole(carrier(signature));
        }
    }

    fn call_start(&mut self, call: u32, id: &str, name: &str, custom: bool) {
        if self.find_call(call).is_some() {
            return;
        }
        let id = call_id(id, self.calls as usize);
        self.calls += 1;
        self.generated.add(name);
        let start = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
        let head = Some(String::new());
        self.push(
            BlockKind::Call {
                call,
                custom,
                head,
                start,
            },
            false,
        );
    }

    /// Where the open block of a call is in the queue.
    fn find_call(&self, wanted: u32) -> Option<usize> {
        self.queue.iter().position(|block| {
            !block.is_ended
                && matches!(&block.kind, BlockKind::Call { call, .. } if *call == wanted)
        })
    }

    fn call_arguments(&mut self, call: u32, json: &str) {
        let Some(block) = self.find_call(call).and_then(|at| self.queue.get_mut(at)) else {
            return;
        };
        self.generated.add(json);
        self.waiting += json.len();
        let BlockKind::Call { custom, head, .. } = &mut block.kind else {
            return;
        };
        let piece = match (*custom, head.as_mut()) {
            // Free text travels as the one member of an object.
            (true, Some(_)) => {
                *head = None;
                format!("{{\"input\":\"{}", escaped(json))
            }
            (true, None) => escaped(json),
            (false, None) => json.to_owned(),
            (false, Some(begun)) => {
                begun.push_str(json);
                if "null".starts_with(begun.trim()) {
                    return;
                }
                head.take().unwrap_or_default()
            }
        };
        if !piece.is_empty() {
            block
                .deltas
                .push(json!({"type": "input_json_delta", "partial_json": piece}));
        }
    }

    fn call_end(&mut self, call: u32, signature: Option<&Opaque>) {
        let Some(at) = self.find_call(call) else {
            return;
        };
        let Some(block) = self.queue.get_mut(at) else {
            return;
        };
        end_call(block);
        if let Some(signature) = signature {
            let carrier = Block {
                kind: BlockKind::Whole(carrier(signature)),
                deltas: Vec::new(),
                index: None,
                is_ended: true,
            };
            self.queue.insert(at + 1, carrier);
        }
    }

    /// A part that comes whole.
    fn part(&mut self, part: &Part) {
        match &part.kind {
            Kind::ToolCall { .. } => {}
            Kind::Refusal(_) => self.has_refused = true,
            _ => {}
        }
        let blocks = blocks_of(part, self.calls as usize);
        self.calls += u32::from(matches!(part.kind, Kind::ToolCall { .. }));
        for block in blocks {
            self.block(block);
        }
    }

    /// A block that comes whole, told as the format tells its kind.
    fn block(&mut self, mut block: Value) {
        let kind = block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let text = |name: &str| {
            block
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        match kind.as_str() {
            "text" => {
                let text = text("text");
                let citations = block.get("citations").and_then(Value::as_array).cloned();
                self.end_running();
                self.text(&text);
                for citation in citations.unwrap_or_default() {
                    self.delta(json!({"type": "citations_delta", "citation": citation}), 0);
                }
                self.end_running();
            }
            "thinking" => {
                let (text, signature) = (text("thinking"), text("signature"));
                self.end_running();
                self.thinking(&text);
                self.thinking_end(Some(&Opaque::new(super::wire::VENDOR, signature)));
            }
            _ => match block.get_mut("input").map(Value::take) {
                Some(input @ Value::Object(_)) => {
                    block["input"] = json!({});
                    self.push(BlockKind::Whole(block), true);
                    let input = input.to_string();
                    let bytes = input.len();
                    self.delta(
                        json!({"type": "input_json_delta", "partial_json": input}),
                        bytes,
                    );
                }
                Some(other) => {
                    block["input"] = other;
                    self.whole(block);
                }
                None => self.whole(block),
            },
        }
    }

    /// Writes what can be written: the first block as far as it has come, and those behind it as the ones before them end.
    fn advance(&mut self, out: &mut Vec<u8>) {
        while let Some(block) = self.queue.front_mut() {
            let index = match block.index {
                Some(index) => index,
                None => {
                    let index = self.next_index;
                    self.next_index += 1;
                    block.index = Some(index);
                    put(
                        out,
                        "content_block_start",
                        &json!({"type": "content_block_start", "index": index, "content_block": block.kind.start()}),
                    );
                    index
                }
            };
            for delta in block.deltas.drain(..) {
                put(
                    out,
                    "content_block_delta",
                    &json!({"type": "content_block_delta", "index": index, "delta": delta}),
                );
            }
            if !block.is_ended {
                break;
            }
            put_stop(out, index);
            self.queue.pop_front();
        }
        if self.queue.len() <= 1 {
            self.waiting = 0;
        }
    }

    fn end_all(&mut self) {
        self.end_running();
        for block in self.queue.iter_mut().filter(|block| !block.is_ended) {
            end_call(block);
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
        self.advance(out);
        if self.waiting > EVENT_MAX {
            let error = WireError {
                status: 502,
                message: "the upstream's tool calls overlap by more than can be kept".to_owned(),
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
        self.end_all();
        self.advance(out);
        self.is_done = true;
        let (finish, sequence) = self.finish.take().unwrap_or_default();
        let finish = match finish {
            Finish::End if self.has_refused && self.calls == 0 => Finish::Refusal,
            other => other.with_calls(self.calls > 0),
        };
        let sequence = sequence.filter(|_| finish == Finish::StopSequence);
        let reason = stop_reason(finish, sequence.is_some());
        let counted = Usage {
            input: self.estimate,
            output: self.generated.tokens(),
            ..Usage::default()
        };
        let usage = self.usage.unwrap_or(counted);
        let data = json!({
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": sequence},
            "usage": usage::write(&usage),
        });
        put(out, "message_delta", &data);
        put_message_stop(out);
    }

    fn error(&mut self, error: &WireError, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        if let Some(index) = self.queue.front().and_then(|block| block.index) {
            put_stop(out, index);
        }
        self.queue.clear();
        put_error(out, error);
    }
}

impl BlockKind {
    /// The block as it begins. Members that are empty must be there all the same.
    fn start(&self) -> Value {
        match self {
            Self::Text => json!({"type": "text", "text": ""}),
            Self::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Call { start, .. } | Self::Whole(start) => start.clone(),
        }
    }
}

/// Ends a call: what was held back of its arguments was nothing, and free text gets its closing quote.
fn end_call(block: &mut Block) {
    if let BlockKind::Call {
        custom: true, head, ..
    } = &block.kind
    {
        let end = match head {
            Some(_) => "{\"input\":\"\"}",
            None => "\"}",
        };
        block
            .deltas
            .push(json!({"type": "input_json_delta", "partial_json": end}));
    }
    block.is_ended = true;
}

/// `text` as it stands inside the quotes of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Which reply an event is about.
fn choice_of(event: &Event) -> Option<u32> {
    match event {
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
        Event::Start { .. } | Event::Usage(_) => None,
    }
}

/// One event. Its name is on a line of its own: clients skip events without.
pub(super) fn put(out: &mut Vec<u8>, name: &str, data: &Value) {
    let data = data.to_string();
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    out.extend_from_slice(data.as_bytes());
    out.extend_from_slice(b"\n\n");
}

/// The end of a block.
pub(super) fn put_stop(out: &mut Vec<u8>, index: u64) {
    put(
        out,
        "content_block_stop",
        &json!({"type": "content_block_stop", "index": index}),
    );
}

/// The end of the message.
pub(super) fn put_message_stop(out: &mut Vec<u8>) {
    put(out, "message_stop", &json!({"type": "message_stop"}));
}

/// What keeps clients waiting: comments do not count here.
pub(super) fn put_ping(out: &mut Vec<u8>) {
    put(out, "ping", &json!({"type": "ping"}));
}

/// The format's error event.
pub(super) fn put_error(out: &mut Vec<u8>, error: &WireError) {
    put(out, "error", &error::write(error));
}
