//! A stream for a client.
//!
//! The writer compares what the reply holds ([`Output`]) with what it has sent, and sends the difference. One item is open at a
//! time: calls that run side by side wait until the one before them is complete.

use serde_json::{Value, json};

use super::emit::{KEEP_ALIVE, Sent, Wire, emit};
use super::error::write_failure;
use super::frame::Frame;
use super::item::{Body, Item};
use super::output::Output;
use super::usage::{Outcome, write_usage};
use crate::error::WireError;
use crate::format::{Rendering, StreamWriter};
use crate::hub::Event;

/// See [`crate::Format::stream_writer`].
pub(super) struct Writer {
    frame: Frame,
    output: Output,
    stage: Stage,
    /// The next event's number.
    sequence: u64,
    /// The first item that is not complete on the wire.
    live: usize,
    sent: Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Fresh,
    Open,
    Ended,
}

impl Writer {
    /// A stream that has not begun.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            frame: Frame::new(rendering),
            output: Output::new(rendering),
            stage: Stage::Fresh,
            sequence: 0,
            live: 0,
            sent: Sent::default(),
        }
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if self.stage != Stage::Fresh {
            return;
        }
        self.stage = Stage::Open;
        let response = self.frame.object("in_progress", json!([]), Value::Null);
        let body = json!({"response": response});
        emit(out, &mut self.sequence, "response.created", &body);
        emit(out, &mut self.sequence, "response.in_progress", &body);
    }

    /// Sends what is new. An item is closed when another waits behind it, so that its status is known by then.
    fn sync(&mut self, out: &mut Vec<u8>) {
        while self.live < self.output.items.len() {
            self.show(out);
            let is_last = self.live + 1 == self.output.items.len();
            let item = &mut self.output.items[self.live];
            if is_last || !item.ended {
                return;
            }
            item.complete();
            self.show(out);
            self.close(out, true);
        }
    }

    /// Announces the live item and sends the texts that are new in it.
    fn show(&mut self, out: &mut Vec<u8>) {
        let Some(item) = self.output.items.get(self.live) else {
            return;
        };
        let mut wire = Wire::new(out, &mut self.sequence, &item.id, self.live);
        if !self.sent.item {
            self.sent.item = true;
            wire.item("response.output_item.added", item.skeleton());
        }
        match &item.body {
            Body::Parts { parts, .. } => {
                while let Some(piece) = parts.get(self.sent.part) {
                    wire.piece(parts, &mut self.sent);
                    if self.sent.part + 1 == parts.len() {
                        break;
                    }
                    wire.close_piece(parts, piece, &mut self.sent);
                }
            }
            Body::Call { input, custom, .. } => {
                let new = &input[self.sent.bytes..];
                if !new.is_empty() {
                    self.sent.bytes = input.len();
                    wire.input(new, *custom);
                }
            }
            Body::Whole(_) => {}
        }
    }

    /// Closes the live item, which has been shown. `whole`: its texts are as long as they were meant to be.
    fn close(&mut self, out: &mut Vec<u8>, whole: bool) {
        let Some(item) = self.output.items.get(self.live) else {
            return;
        };
        let mut wire = Wire::new(out, &mut self.sequence, &item.id, self.live);
        match &item.body {
            Body::Parts { parts, .. } => {
                if let Some(piece) = parts.get(self.sent.part) {
                    wire.close_piece(parts, piece, &mut self.sent);
                }
            }
            Body::Call { input, custom, .. } if whole => {
                wire.input_done(input, *custom);
            }
            Body::Whole(value) if value["type"] == "image_generation_call" => {
                wire.picture_done();
            }
            Body::Call { .. } | Body::Whole(_) => {}
        }
        wire.item("response.output_item.done", item.value());
        self.live += 1;
        self.sent = Sent::default();
    }

    /// Closes everything. `cut`: the last item is not complete, nor is any call that has not ended.
    fn close_all(&mut self, out: &mut Vec<u8>, cut: bool, failed: bool) {
        while self.live < self.output.items.len() {
            let is_last = self.live + 1 == self.output.items.len();
            let item = &mut self.output.items[self.live];
            match (cut && is_last) || (failed && !item.ended) {
                true => item.status = "incomplete",
                false => item.complete(),
            }
            let whole = item.ended || !failed;
            self.show(out);
            self.close(out, whole);
        }
    }
}

impl StreamWriter for Writer {
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.stage == Stage::Ended {
            return;
        }
        if let (Event::Start { id, created, .. }, Stage::Fresh) = (event, self.stage) {
            self.frame.learn(id, *created);
        }
        self.begin(out);
        self.output.push(event);
        self.sync(out);
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.stage != Stage::Ended {
            out.extend_from_slice(KEEP_ALIVE);
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.stage == Stage::Ended {
            return;
        }
        self.begin(out);
        let finish = self.output.finish.unwrap_or_default();
        let outcome = Outcome::of(finish, self.output.has_refusal());
        self.close_all(out, outcome != Outcome::Completed, false);
        let kind = match outcome {
            Outcome::Completed => "response.completed",
            Outcome::Incomplete(_) => "response.incomplete",
            Outcome::Failed(..) => "response.failed",
        };
        // Not every client takes the end of a stream without counts.
        self.output.usage.get_or_insert_default();
        let response = self.frame.finished(&self.output, outcome);
        emit(
            out,
            &mut self.sequence,
            kind,
            &json!({"response": response}),
        );
        self.stage = Stage::Ended;
    }

    fn error(&mut self, error: &WireError, out: &mut Vec<u8>) {
        if self.stage == Stage::Ended {
            return;
        }
        self.begin(out);
        self.close_all(out, true, true);
        let items = self.output.items.iter().map(Item::value).collect();
        let usage = self.output.usage.as_ref().map(write_usage);
        let usage = usage.unwrap_or(Value::Null);
        let mut response = self.frame.object("failed", Value::Array(items), usage);
        response.insert("error".to_owned(), write_failure(error));
        let body = json!({"response": response});
        emit(out, &mut self.sequence, "response.failed", &body);
        self.stage = Stage::Ended;
    }
}
