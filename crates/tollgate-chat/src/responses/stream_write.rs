//! A stream for a client, and the frame of the reply object that streams and whole replies share.
//!
//! The writer compares what the reply holds ([`Output`]) with what it has sent, and sends the difference. One item is open at a
//! time: calls that run side by side wait until the one before them is complete.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::error::write_failure;
use super::output::{Body, Item, Output, Piece, PieceKind};
use super::request::echo;
use super::usage::{Outcome, write_usage};
use crate::error::WireError;
use crate::format::{Rendering, StreamWriter};
use crate::hub::Event;

/// The reply object without its output.
pub(super) struct Frame {
    id: String,
    created_at: i64,
    model: String,
    echo: Map<String, Value>,
}

impl Frame {
    /// The frame of a reply to the request that `rendering` knows.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            id: format!("resp_{}", rendering.seed),
            created_at: rendering.created,
            model: rendering.model.to_owned(),
            echo: echo(rendering.request),
        }
    }

    /// Takes what the upstream said of itself. Its id only where it is one of this format.
    pub(super) fn learn(&mut self, id: &str, created: Option<i64>) {
        if id.starts_with("resp_") {
            id.clone_into(&mut self.id);
        }
        self.created_at = created.unwrap_or(self.created_at);
    }

    /// The tier that served the reply.
    pub(super) fn served_by(&mut self, tier: &str) {
        self.echo.insert("service_tier".to_owned(), tier.into());
    }

    /// The object with these members.
    pub(super) fn object(&self, status: &str, output: Value, usage: Value) -> Map<String, Value> {
        let mut object = Map::from_iter([
            ("id".to_owned(), Value::from(self.id.as_str())),
            ("object".to_owned(), Value::from("response")),
            ("created_at".to_owned(), Value::from(self.created_at)),
            ("status".to_owned(), Value::from(status)),
            ("error".to_owned(), Value::Null),
            ("incomplete_details".to_owned(), Value::Null),
            ("model".to_owned(), Value::from(self.model.as_str())),
            ("output".to_owned(), output),
            ("usage".to_owned(), usage),
        ]);
        object.extend(self.echo.clone());
        object
    }

    /// The finished object.
    pub(super) fn finished(&self, output: &Output, outcome: Outcome) -> Map<String, Value> {
        let items = output.items.iter().map(Item::value).collect();
        let usage = output.usage.as_ref().map_or(Value::Null, write_usage);
        let mut object = self.object(outcome.status(), Value::Array(items), usage);
        match outcome {
            Outcome::Completed => {}
            Outcome::Incomplete(reason) => {
                object.insert("incomplete_details".to_owned(), json!({"reason": reason}));
            }
            Outcome::Failed(code, message) => {
                object.insert(
                    "error".to_owned(),
                    json!({"code": code, "message": message}),
                );
            }
        }
        object
    }
}

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

/// What has been sent of the live item.
#[derive(Debug, Default)]
struct Sent {
    /// The item was announced.
    item: bool,
    /// The part that is open, or comes next.
    part: usize,
    /// It was announced.
    part_begun: bool,
    /// Bytes of its text, or of the call's input.
    bytes: usize,
    /// Its annotations.
    annotations: usize,
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
        let mut wire = Wire {
            out,
            sequence: &mut self.sequence,
            item_id: &item.id,
            output_index: self.live,
        };
        if !self.sent.item {
            self.sent.item = true;
            let body = json!({"output_index": self.live, "item": item.skeleton()});
            emit(wire.out, wire.sequence, "response.output_item.added", &body);
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
                    wire.send(
                        call_words(*custom).0,
                        &Place::default(),
                        Delta { delta: new },
                    );
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
        let mut wire = Wire {
            out,
            sequence: &mut self.sequence,
            item_id: &item.id,
            output_index: self.live,
        };
        match &item.body {
            Body::Parts { parts, .. } => {
                if let Some(piece) = parts.get(self.sent.part) {
                    wire.close_piece(parts, piece, &mut self.sent);
                }
            }
            Body::Call { input, custom, .. } if whole => {
                let (_, done, member) = call_words(*custom);
                wire.send(done, &Place::default(), json!({member: input}));
            }
            Body::Whole(value) if value["type"] == "image_generation_call" => {
                let done = "response.image_generation_call.completed";
                wire.send(done, &Place::default(), json!({}));
            }
            Body::Call { .. } | Body::Whole(_) => {}
        }
        let body = json!({"output_index": self.live, "item": item.value()});
        emit(wire.out, wire.sequence, "response.output_item.done", &body);
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

/// A comment: this format's SDKs skip it at any point.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The events of a call's input: delta, done, and the member of done.
fn call_words(custom: bool) -> (&'static str, &'static str, &'static str) {
    match custom {
        false => (
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "arguments",
        ),
        true => (
            "response.custom_tool_call_input.delta",
            "response.custom_tool_call_input.done",
            "input",
        ),
    }
}

/// The events of a part: added, delta, text done, part done.
fn piece_words(kind: PieceKind) -> [&'static str; 4] {
    match kind {
        PieceKind::Text => [
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
        ],
        PieceKind::Refusal => [
            "response.content_part.added",
            "response.refusal.delta",
            "response.refusal.done",
            "response.content_part.done",
        ],
        PieceKind::Summary => [
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
        ],
        PieceKind::Raw => [
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
        ],
    }
}

/// The way to the client for events of one item.
struct Wire<'a> {
    out: &'a mut Vec<u8>,
    sequence: &'a mut u64,
    item_id: &'a str,
    output_index: usize,
}

/// Which part of the item an event is about, if any.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct Place {
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
}

#[derive(Serialize)]
struct About<'a> {
    item_id: &'a str,
    output_index: usize,
}

#[derive(Serialize)]
struct Delta<'a> {
    delta: &'a str,
}

#[derive(Serialize)]
struct TextDelta<'a> {
    delta: &'a str,
    logprobs: [u8; 0],
}

impl Wire<'_> {
    /// Announces the part that is due, and sends its new text and sources.
    fn piece(&mut self, parts: &[Piece], sent: &mut Sent) {
        let piece = &parts[sent.part];
        let [added, delta, ..] = piece_words(piece.kind);
        let place = place(parts, sent.part);
        if !sent.part_begun {
            sent.part_begun = true;
            self.send(added, &place, json!({"part": piece.skeleton()}));
        }
        let new = &piece.text[sent.bytes..];
        if !new.is_empty() {
            sent.bytes = piece.text.len();
            match piece.kind {
                PieceKind::Text => {
                    let logprobs = [];
                    self.send(
                        delta,
                        &place,
                        TextDelta {
                            delta: new,
                            logprobs,
                        },
                    );
                }
                _ => self.send(delta, &place, Delta { delta: new }),
            }
        }
        while let Some(annotation) = piece.annotations.get(sent.annotations) {
            let body = json!({"annotation_index": sent.annotations, "annotation": annotation});
            self.send("response.output_text.annotation.added", &place, body);
            sent.annotations += 1;
        }
    }

    /// Closes the open part, and makes the next one due.
    fn close_piece(&mut self, parts: &[Piece], piece: &Piece, sent: &mut Sent) {
        let [_, _, text_done, part_done] = piece_words(piece.kind);
        let place = place(parts, sent.part);
        let member = piece.kind.words().1;
        let mut done = json!({member: piece.text});
        if piece.kind == PieceKind::Text {
            done["logprobs"] = Value::Array(piece.logprobs.clone());
        }
        self.send(text_done, &place, done);
        self.send(part_done, &place, json!({"part": piece.value()}));
        (sent.part, sent.part_begun) = (sent.part + 1, false);
        (sent.bytes, sent.annotations) = (0, 0);
    }

    fn send(&mut self, kind: &str, place: &Place, body: impl Serialize) {
        let about = About {
            item_id: self.item_id,
            output_index: self.output_index,
        };
        let start = head(self.out, self.sequence, kind);
        splice(self.out, start, &about);
        splice(self.out, self.out.len() - 1, place);
        splice(self.out, self.out.len() - 1, &body);
        self.out.extend_from_slice(b"\n\n");
    }
}

/// Where a part stands among those that its index counts.
fn place(parts: &[Piece], at: usize) -> Place {
    let is_summary = |piece: &Piece| piece.kind == PieceKind::Summary;
    let summary = is_summary(&parts[at]);
    let index = parts[..at]
        .iter()
        .filter(|p| is_summary(p) == summary)
        .count();
    match summary {
        true => Place {
            summary_index: Some(index),
            content_index: None,
        },
        false => Place {
            summary_index: None,
            content_index: Some(index),
        },
    }
}

/// One event: `body`'s members behind type and number.
pub(super) fn emit(out: &mut Vec<u8>, sequence: &mut u64, kind: &str, body: &impl Serialize) {
    let start = head(out, sequence, kind);
    splice(out, start, body);
    out.extend_from_slice(b"\n\n");
}

/// The lines of an event up to the end of its common members; returns where the object's closing brace stands.
fn head(out: &mut Vec<u8>, sequence: &mut u64, kind: &str) -> usize {
    let line =
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence}}}");
    *sequence += 1;
    out.extend_from_slice(line.as_bytes());
    out.len() - 1
}

/// Adds the members of `body` to the object whose closing brace stands at `brace`, the last byte of `out`.
fn splice(out: &mut Vec<u8>, brace: usize, body: &impl Serialize) {
    out.truncate(brace);
    let start = out.len();
    // Strings, numbers and their containers always have a JSON text.
    if serde_json::to_writer(&mut *out, body).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"{}");
    }
    match out.len() - start {
        // No members: only the brace that was there.
        2 => {
            out.truncate(start);
            out.push(b'}');
        }
        _ => out[start] = b',',
    }
}
