//! Events on their way out: their names, their order inside of an item, their bytes.

use serde::Serialize;
use serde_json::{Value, json};

use super::item::{Piece, PieceKind};

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

/// What has been sent of the live item.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// The item was announced.
    pub(super) item: bool,
    /// The part that is open, or comes next.
    pub(super) part: usize,
    /// It was announced.
    pub(super) part_begun: bool,
    /// Bytes of its text, or of the call's input.
    pub(super) bytes: usize,
    /// Its annotations.
    pub(super) annotations: usize,
}

/// The way to the client for events of one item.
pub(super) struct Wire<'a> {
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

impl<'a> Wire<'a> {
    /// For the item of that id, at its place in the output.
    pub(super) fn new(
        out: &'a mut Vec<u8>,
        sequence: &'a mut u64,
        item_id: &'a str,
        output_index: usize,
    ) -> Self {
        Self {
            out,
            sequence,
            item_id,
            output_index,
        }
    }

    /// The item itself, as it begins or as it is.
    pub(super) fn item(&mut self, kind: &str, item: Value) {
        let body = json!({"output_index": self.output_index, "item": item});
        emit(self.out, self.sequence, kind, &body);
    }

    /// A piece of a call's input.
    pub(super) fn input(&mut self, delta: &str, custom: bool) {
        self.send(call_words(custom).0, &Place::default(), Delta { delta });
    }

    /// All of a call's input.
    pub(super) fn input_done(&mut self, input: &str, custom: bool) {
        let (_, done, member) = call_words(custom);
        self.send(done, &Place::default(), json!({member: input}));
    }

    /// A picture is made.
    pub(super) fn picture_done(&mut self) {
        let done = "response.image_generation_call.completed";
        self.send(done, &Place::default(), json!({}));
    }

    /// Announces the part that is due, and sends its new text and sources.
    pub(super) fn piece(&mut self, parts: &[Piece], sent: &mut Sent) {
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
    pub(super) fn close_piece(&mut self, parts: &[Piece], piece: &Piece, sent: &mut Sent) {
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
