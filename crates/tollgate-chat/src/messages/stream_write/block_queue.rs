//! Writes content blocks one after the other, in whatever order their pieces arrive.
//!
//! The first block of the queue is being written; pieces of the others are kept until it ends. Text and thinking end when another block starts, a
//! tool call only at its own end. Therefore pieces are delayed only if tool calls overlap.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::events::{
    citation_delta_object, delta_object, escape_json, write_block_delta, write_block_start,
    write_block_stop,
};

/// The block that is being written and the blocks after it.
#[derive(Default)]
pub(crate) struct BlockQueue {
    blocks: VecDeque<Block>,
    /// The signature of the last text: written as a block once another block follows.
    text_signature: Option<Value>,
    /// Index of the next block.
    next_index: u64,
    /// The number of bytes that are kept until the first block ends.
    waiting: usize,
}

/// A block in the queue.
struct Block {
    kind: BlockKind,
    /// The deltas that are not written yet, as JSON.
    deltas: Vec<String>,
    /// Its index. `None` if its start is not yet written.
    index: Option<u64>,
    is_ended: bool,
}

enum BlockKind {
    Text,
    Thinking,
    Call {
        call: u32,
        custom: bool,
        /// The start of the arguments, held back while it may still be `null` or only white space. `None` once they are written.
        held_start: Option<String>,
        start: Value,
    },
    /// A block that is complete in its start event.
    Complete(Value),
}

impl BlockQueue {
    /// Adds text.
    pub(crate) fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.append(BlockKind::Text, delta_object("text_delta", "text", text));
        }
    }

    /// Adds thinking.
    pub(crate) fn add_thinking(&mut self, text: &str) {
        if !text.is_empty() {
            let delta = delta_object("thinking_delta", "thinking", text);
            self.append(BlockKind::Thinking, delta);
        }
    }

    /// Ends thinking with its signature. A signature without thinking becomes a block of its own.
    pub(crate) fn end_thinking(&mut self, signature: &str) {
        let is_open = self.open_last(&BlockKind::Thinking).is_some();
        if is_open || !signature.is_empty() {
            // Clients expect exactly one signature, at the end; it may be empty.
            self.append(
                BlockKind::Thinking,
                delta_object("signature_delta", "signature", signature),
            );
            self.end_last();
        }
    }

    /// Adds a citation to the last text. A text whose end is written can have no more.
    pub(crate) fn add_citation(&mut self, citation: &Value) {
        let is_text = |block: &Block| matches!(block.kind, BlockKind::Text);
        if let Some(at) = self.blocks.iter().rposition(is_text) {
            let delta = citation_delta_object(citation);
            self.waiting += if at > 0 { delta.len() } else { 0 };
            self.blocks[at].deltas.push(delta);
        }
    }

    /// Ends the open text. Its signature is written only if another block follows: clients use the last block as the text of the response.
    pub(crate) fn end_text(&mut self, signature: Option<Value>) {
        self.end_open_text();
        self.text_signature = signature.or(self.text_signature.take());
    }

    /// Adds a block that is complete in its start event.
    pub(crate) fn add_complete(&mut self, block: Value) {
        self.push(BlockKind::Complete(block));
        self.end_last();
    }

    /// Adds a block whose input is written as one delta.
    pub(crate) fn add_complete_with_input(&mut self, mut block: Value, input: &Value) {
        block["input"] = json!({});
        self.push(BlockKind::Complete(block));
        self.add_to_last(delta_object(
            "input_json_delta",
            "partial_json",
            &input.to_string(),
        ));
        self.end_last();
    }

    /// Starts a tool call. Returns whether it is a new one.
    pub(crate) fn start_call(&mut self, call: u32, custom: bool, start: Value) -> bool {
        let is_new = self.position_of_call(call).is_none();
        if is_new {
            let held_start = Some(String::new());
            self.push(BlockKind::Call {
                call,
                custom,
                held_start,
                start,
            });
        }
        is_new
    }

    /// Adds arguments to a call. Returns whether that call is open.
    pub(crate) fn add_arguments(&mut self, call: u32, json: &str) -> bool {
        let Some(at) = self.position_of_call(call) else {
            return false;
        };
        let block = &mut self.blocks[at];
        if let Some(piece) = block.kind.arguments_piece(json) {
            let delta = delta_object("input_json_delta", "partial_json", &piece);
            self.waiting += if at > 0 { delta.len() } else { 0 };
            block.deltas.push(delta);
        }
        true
    }

    /// Ends a call. The block `next` is written after it.
    pub(crate) fn end_call(&mut self, call: u32, next: Option<Value>) {
        let Some(at) = self.position_of_call(call) else {
            return;
        };
        self.blocks[at].end();
        if let Some(block) = next {
            let mut block = Block::new(BlockKind::Complete(block));
            block.is_ended = true;
            self.blocks.insert(at + 1, block);
        }
    }

    /// Ends the last block if it is text or thinking.
    pub(crate) fn end_open_text(&mut self) {
        if self.open_last(&BlockKind::Text).is_some() {
            self.end_last();
        } else if self.open_last(&BlockKind::Thinking).is_some() {
            self.end_thinking("");
        }
    }

    /// Ends every block.
    pub(crate) fn end_all(&mut self) {
        self.end_open_text();
        for block in self.blocks.iter_mut().filter(|block| !block.is_ended) {
            block.end();
        }
    }

    /// Writes the first block as far as it is known, and every block after it whose predecessors have ended.
    pub(crate) fn write_ready(&mut self, out: &mut Vec<u8>) {
        while let Some(block) = self.blocks.front_mut() {
            let index = block.index.unwrap_or_else(|| {
                write_block_start(out, self.next_index, &block.kind.start_object());
                self.next_index += 1;
                self.next_index - 1
            });
            block.index = Some(index);
            for delta in block.deltas.drain(..) {
                write_block_delta(out, index, &delta);
            }
            if !block.is_ended {
                break;
            }
            write_block_stop(out, index);
            self.blocks.pop_front();
        }
        if self.blocks.len() <= 1 {
            self.waiting = 0;
        }
    }

    /// Ends the block that is being written and discards the others.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(index) = self.blocks.front().and_then(|block| block.index) {
            write_block_stop(out, index);
        }
        self.blocks.clear();
    }

    /// The number of waiting bytes.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting
    }

    /// The last block if it is of this kind and open.
    fn open_last(&mut self, kind: &BlockKind) -> Option<&mut Block> {
        let is_kind =
            |block: &Block| std::mem::discriminant(&block.kind) == std::mem::discriminant(kind);
        let last = self.blocks.back_mut();
        last.filter(|block| !block.is_ended && is_kind(block))
    }

    /// Adds to the open last block of this kind, or starts one.
    fn append(&mut self, kind: BlockKind, delta: String) {
        if self.open_last(&kind).is_none() {
            self.push(kind);
        }
        self.add_to_last(delta);
    }

    fn push(&mut self, kind: BlockKind) {
        self.end_open_text();
        if let Some(signature) = self.text_signature.take() {
            self.blocks
                .push_back(Block::new(BlockKind::Complete(signature)));
            self.end_last();
        }
        self.blocks.push_back(Block::new(kind));
    }

    /// Adds a delta to the last block.
    fn add_to_last(&mut self, delta: String) {
        let is_waiting = self.blocks.len() > 1;
        if let Some(block) = self.blocks.back_mut() {
            self.waiting += if is_waiting { delta.len() } else { 0 };
            block.deltas.push(delta);
        }
    }

    fn end_last(&mut self) {
        if let Some(block) = self.blocks.back_mut() {
            block.is_ended = true;
        }
    }

    /// Position of the open block of a call.
    fn position_of_call(&self, number: u32) -> Option<usize> {
        let is_it = |block: &Block| match &block.kind {
            BlockKind::Call { call, .. } => !block.is_ended && *call == number,
            _ => false,
        };
        self.blocks.iter().position(is_it)
    }
}

impl Block {
    fn new(kind: BlockKind) -> Self {
        Self {
            kind,
            deltas: Vec::new(),
            index: None,
            is_ended: false,
        }
    }

    /// Ends the block. Arguments that were held back are empty. The string of a free-text call is closed.
    fn end(&mut self) {
        if let BlockKind::Call {
            custom: true,
            held_start,
            ..
        } = &self.kind
        {
            let end = if held_start.is_some() {
                r#"{"input":""}"#
            } else {
                r#""}"#
            };
            self.deltas
                .push(delta_object("input_json_delta", "partial_json", end));
        }
        self.is_ended = true;
    }
}

impl BlockKind {
    /// The block in `content_block_start`. Clients require its empty members.
    fn start_object(&self) -> Value {
        match self {
            Self::Text => json!({"type": "text", "text": ""}),
            Self::Thinking => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Self::Call { start, .. } | Self::Complete(start) => start.clone(),
        }
    }

    /// The JSON text to write for a piece of a call's arguments. `None` if it is held back.
    fn arguments_piece(&mut self, json: &str) -> Option<String> {
        let Self::Call {
            custom, held_start, ..
        } = self
        else {
            return None;
        };
        match (*custom, held_start) {
            (_, _) if json.is_empty() => None,
            // Free text is the only member of an object.
            (true, held_start) => {
                let begin = if held_start.take().is_some() {
                    r#"{"input":""#
                } else {
                    ""
                };
                Some(format!("{begin}{}", escape_json(json)))
            }
            (false, held_start) => {
                let Some(started) = held_start else {
                    return Some(json.to_owned());
                };
                started.push_str(json);
                let may_be_null = "null".starts_with(started.trim());
                (!may_be_null).then(|| held_start.take().unwrap_or_default())
            }
        }
    }
}
