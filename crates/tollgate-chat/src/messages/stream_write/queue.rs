//! Blocks one after the other, whatever the order in which their pieces come.
//!
//! The first block of the queue is on the wire; what comes for the others is kept until it is closed. Text and thinking end when
//! something else begins, a call only at its own end: so nothing waits unless calls overlap.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::wire::{citation_delta, delta, escaped, put_delta, put_start, put_stop};

/// The blocks that are open on the wire or wait for it.
#[derive(Default)]
pub(super) struct Queue {
    blocks: VecDeque<Block>,
    /// The number of the block that comes next on the wire.
    next_index: u64,
    /// What waits behind the first block, in bytes.
    waiting: usize,
}

/// A block in the queue.
struct Block {
    kind: BlockKind,
    /// Deltas that wait, as JSON.
    deltas: Vec<String>,
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
        /// The beginning of arguments that may turn out to be none (white space, `null`); none once they have begun.
        head: Option<String>,
        start: Value,
    },
    /// One that has everything in its start.
    Whole(Value),
}

impl Queue {
    /// A piece of text.
    pub(super) fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.grow(BlockKind::Text, delta("text_delta", "text", text));
        }
    }

    /// A piece of thinking.
    pub(super) fn thinking(&mut self, text: &str) {
        if !text.is_empty() {
            let delta = delta("thinking_delta", "thinking", text);
            self.grow(BlockKind::Thinking, delta);
        }
    }

    /// The end of thinking, with what proves it. A proof without thinking is a block of its own.
    pub(super) fn thinking_end(&mut self, proof: &str) {
        let is_running = self.running(&BlockKind::Thinking).is_some();
        if is_running || !proof.is_empty() {
            // The signature is always there, be it empty, once and last.
            self.grow(
                BlockKind::Thinking,
                delta("signature_delta", "signature", proof),
            );
            self.end_last();
        }
    }

    /// A source of the text that is open.
    pub(super) fn citation(&mut self, citation: &Value) {
        if self.running(&BlockKind::Text).is_some() {
            self.grow(BlockKind::Text, citation_delta(citation));
        }
    }

    /// A block that has everything in its start.
    pub(super) fn whole(&mut self, block: Value) {
        self.push(BlockKind::Whole(block));
        self.end_last();
    }

    /// A block whose input comes in one piece.
    pub(super) fn whole_with_input(&mut self, mut block: Value, input: &Value) {
        block["input"] = json!({});
        self.push(BlockKind::Whole(block));
        self.add(delta(
            "input_json_delta",
            "partial_json",
            &input.to_string(),
        ));
        self.end_last();
    }

    /// A call begins; whether it is a new one.
    pub(super) fn call_start(&mut self, call: u32, custom: bool, start: Value) -> bool {
        let is_new = self.call(call).is_none();
        if is_new {
            let head = Some(String::new());
            self.push(BlockKind::Call {
                call,
                custom,
                head,
                start,
            });
        }
        is_new
    }

    /// A piece of the arguments of a call; whether there is such a call.
    pub(super) fn call_arguments(&mut self, call: u32, json: &str) -> bool {
        let Some(at) = self.call(call) else {
            return false;
        };
        let block = &mut self.blocks[at];
        if let Some(piece) = block.kind.arguments(json) {
            let delta = delta("input_json_delta", "partial_json", &piece);
            self.waiting += if at > 0 { delta.len() } else { 0 };
            block.deltas.push(delta);
        }
        true
    }

    /// The end of a call, and the block that goes behind it, if any.
    pub(super) fn call_end(&mut self, call: u32, behind: Option<Value>) {
        let Some(at) = self.call(call) else { return };
        self.blocks[at].end();
        if let Some(block) = behind {
            let mut block = Block::of(BlockKind::Whole(block));
            block.is_ended = true;
            self.blocks.insert(at + 1, block);
        }
    }

    /// Ends the last block if it is text or thinking: something else begins.
    pub(super) fn end_running(&mut self) {
        if self.running(&BlockKind::Text).is_some() {
            self.end_last();
        } else if self.running(&BlockKind::Thinking).is_some() {
            self.thinking_end("");
        }
    }

    /// Ends every block.
    pub(super) fn end_all(&mut self) {
        self.end_running();
        for block in self.blocks.iter_mut().filter(|block| !block.is_ended) {
            block.end();
        }
    }

    /// Writes what can be written: the first block as far as it has come, and those behind it as the ones before them end.
    pub(super) fn advance(&mut self, out: &mut Vec<u8>) {
        while let Some(block) = self.blocks.front_mut() {
            let index = block.index.unwrap_or_else(|| {
                put_start(out, self.next_index, &block.kind.start());
                self.next_index += 1;
                self.next_index - 1
            });
            block.index = Some(index);
            for delta in block.deltas.drain(..) {
                put_delta(out, index, &delta);
            }
            if !block.is_ended {
                break;
            }
            put_stop(out, index);
            self.blocks.pop_front();
        }
        if self.blocks.len() <= 1 {
            self.waiting = 0;
        }
    }

    /// Closes the block on the wire and forgets the others.
    pub(super) fn abandon(&mut self, out: &mut Vec<u8>) {
        if let Some(index) = self.blocks.front().and_then(|block| block.index) {
            put_stop(out, index);
        }
        self.blocks.clear();
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The last block, if it is of that kind and not ended.
    fn running(&mut self, kind: &BlockKind) -> Option<&mut Block> {
        let is_kind =
            |block: &Block| std::mem::discriminant(&block.kind) == std::mem::discriminant(kind);
        let last = self.blocks.back_mut();
        last.filter(|block| !block.is_ended && is_kind(block))
    }

    /// Adds to the running block of that kind, or begins one.
    fn grow(&mut self, kind: BlockKind, delta: String) {
        if self.running(&kind).is_none() {
            self.push(kind);
        }
        self.add(delta);
    }

    fn push(&mut self, kind: BlockKind) {
        self.end_running();
        self.blocks.push_back(Block::of(kind));
    }

    /// Adds to the last block.
    fn add(&mut self, delta: String) {
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

    /// Where the open block of a call is.
    fn call(&self, wanted: u32) -> Option<usize> {
        let is_it = |block: &Block| match &block.kind {
            BlockKind::Call { call, .. } => !block.is_ended && *call == wanted,
            _ => false,
        };
        self.blocks.iter().position(is_it)
    }
}

impl Block {
    fn of(kind: BlockKind) -> Self {
        Self {
            kind,
            deltas: Vec::new(),
            index: None,
            is_ended: false,
        }
    }

    /// What was held back of a call's arguments was nothing; free text gets its closing quote.
    fn end(&mut self) {
        if let BlockKind::Call {
            custom: true, head, ..
        } = &self.kind
        {
            let end = if head.is_some() {
                r#"{"input":""}"#
            } else {
                r#""}"#
            };
            self.deltas
                .push(delta("input_json_delta", "partial_json", end));
        }
        self.is_ended = true;
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

    /// The piece of JSON text that is sent for a piece of a call's arguments.
    fn arguments(&mut self, json: &str) -> Option<String> {
        let Self::Call { custom, head, .. } = self else {
            return None;
        };
        match (*custom, head) {
            (_, _) if json.is_empty() => None,
            // Free text travels as the one member of an object.
            (true, head) => {
                let begin = if head.take().is_some() {
                    r#"{"input":""#
                } else {
                    ""
                };
                Some(format!("{begin}{}", escaped(json)))
            }
            (false, head) => {
                let Some(begun) = head else {
                    return Some(json.to_owned());
                };
                begun.push_str(json);
                let may_be_none = "null".starts_with(begun.trim());
                (!may_be_none).then(|| head.take().unwrap_or_default())
            }
        }
    }
}
