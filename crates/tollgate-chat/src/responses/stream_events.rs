//! Writes the server-sent events of one output item: their names, their order and their JSON.

use serde::Serialize;
use serde_json::{Value, json};

use super::output::{TextPart, TextPartKind};

/// An SSE comment. SDKs of this format ignore it anywhere in a stream.
pub(super) const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Event names for a call's input: delta, done, and the member of the done event that holds the
/// input.
fn call_event_names(custom: bool) -> (&'static str, &'static str, &'static str) {
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

/// Event names for a part: added, delta, text done, part done.
fn part_event_names(kind: TextPartKind) -> [&'static str; 4] {
    match kind {
        TextPartKind::Text => [
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
        ],
        TextPartKind::Refusal => [
            "response.content_part.added",
            "response.refusal.delta",
            "response.refusal.done",
            "response.content_part.done",
        ],
        TextPartKind::ReasoningSummary => [
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
        ],
        TextPartKind::ReasoningText => [
            "response.content_part.added",
            "response.reasoning_text.delta",
            "response.reasoning_text.done",
            "response.content_part.done",
        ],
    }
}

/// What has been sent of the open item.
#[derive(Debug, Default)]
pub(super) struct SentProgress {
    /// Whether `response.output_item.added` was sent.
    pub(super) item_announced: bool,
    /// Index of the part that is open or that follows.
    pub(super) part: usize,
    /// Whether that part's added event was sent.
    pub(super) part_announced: bool,
    /// Bytes sent of that part's text, or of the call's input.
    pub(super) bytes: usize,
    /// Number of annotations sent of that part.
    pub(super) annotations: usize,
}

/// Writes the events of one output item.
pub(super) struct ItemEventWriter<'a> {
    out: &'a mut Vec<u8>,
    sequence: &'a mut u64,
    item_id: &'a str,
    output_index: usize,
}

/// The index of the part that an event refers to, if it refers to one.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct PartIndex {
    #[serde(skip_serializing_if = "Option::is_none")]
    content_index: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary_index: Option<usize>,
}

#[derive(Serialize)]
struct ItemReference<'a> {
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

impl<'a> ItemEventWriter<'a> {
    /// A writer for the item with that id and position in `output`.
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

    /// Writes `response.output_item.added` or `.done`.
    pub(super) fn item_event(&mut self, kind: &str, item: Value) {
        let body = json!({"output_index": self.output_index, "item": item});
        write_event(self.out, self.sequence, kind, &body);
    }

    /// Writes a delta of a call's input.
    pub(super) fn call_input_delta(&mut self, delta: &str, custom: bool) {
        self.send(
            call_event_names(custom).0,
            &PartIndex::default(),
            Delta { delta },
        );
    }

    /// Writes the complete input of a call.
    pub(super) fn call_input_done(&mut self, input: &str, custom: bool) {
        let (_, done, member) = call_event_names(custom);
        self.send(done, &PartIndex::default(), json!({member: input}));
    }

    /// Writes `response.image_generation_call.completed`.
    pub(super) fn image_completed(&mut self) {
        let done = "response.image_generation_call.completed";
        self.send(done, &PartIndex::default(), json!({}));
    }

    /// Announces the current part if that was not done yet, then sends its new text and annotations.
    pub(super) fn part_updates(&mut self, parts: &[TextPart], sent: &mut SentProgress) {
        let part = &parts[sent.part];
        let [added, delta, ..] = part_event_names(part.kind);
        let index = part_index(parts, sent.part);
        if !sent.part_announced {
            sent.part_announced = true;
            self.send(added, &index, json!({"part": part.initial_json()}));
        }
        let new = &part.text[sent.bytes..];
        if !new.is_empty() {
            sent.bytes = part.text.len();
            match part.kind {
                TextPartKind::Text => {
                    let logprobs = [];
                    self.send(
                        delta,
                        &index,
                        TextDelta {
                            delta: new,
                            logprobs,
                        },
                    );
                }
                _ => self.send(delta, &index, Delta { delta: new }),
            }
        }
        while let Some(annotation) = part.annotations.get(sent.annotations) {
            let body = json!({"annotation_index": sent.annotations, "annotation": annotation});
            self.send("response.output_text.annotation.added", &index, body);
            sent.annotations += 1;
        }
    }

    /// Closes the current part and continues with the next.
    pub(super) fn close_part(
        &mut self,
        parts: &[TextPart],
        part: &TextPart,
        sent: &mut SentProgress,
    ) {
        let [_, _, text_done, part_done] = part_event_names(part.kind);
        let index = part_index(parts, sent.part);
        let member = part.kind.type_and_text_member().1;
        let mut done = json!({member: part.text});
        if part.kind == TextPartKind::Text {
            done["logprobs"] = Value::Array(part.logprobs.clone());
        }
        self.send(text_done, &index, done);
        self.send(part_done, &index, json!({"part": part.final_json()}));
        (sent.part, sent.part_announced) = (sent.part + 1, false);
        (sent.bytes, sent.annotations) = (0, 0);
    }

    fn send(&mut self, kind: &str, index: &PartIndex, body: impl Serialize) {
        let reference = ItemReference {
            item_id: self.item_id,
            output_index: self.output_index,
        };
        let start = write_event_head(self.out, self.sequence, kind);
        splice_members(self.out, start, &reference);
        splice_members(self.out, self.out.len() - 1, index);
        splice_members(self.out, self.out.len() - 1, &body);
        self.out.extend_from_slice(b"\n\n");
    }
}

/// The index of a part among the parts of its list (`content` or `summary`).
fn part_index(parts: &[TextPart], at: usize) -> PartIndex {
    let is_summary = |part: &TextPart| part.kind == TextPartKind::ReasoningSummary;
    let summary = is_summary(&parts[at]);
    let index = parts[..at]
        .iter()
        .filter(|p| is_summary(p) == summary)
        .count();
    match summary {
        true => PartIndex {
            summary_index: Some(index),
            content_index: None,
        },
        false => PartIndex {
            summary_index: None,
            content_index: Some(index),
        },
    }
}

/// Writes one event: `type`, `sequence_number` and the members of `body`.
pub(super) fn write_event(
    out: &mut Vec<u8>,
    sequence: &mut u64,
    kind: &str,
    body: &impl Serialize,
) {
    let start = write_event_head(out, sequence, kind);
    splice_members(out, start, body);
    out.extend_from_slice(b"\n\n");
}

/// Writes the beginning of an event up to its common members. Returns the position of the object's
/// closing brace.
fn write_event_head(out: &mut Vec<u8>, sequence: &mut u64, kind: &str) -> usize {
    let line =
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":{sequence}}}");
    *sequence += 1;
    out.extend_from_slice(line.as_bytes());
    out.len() - 1
}

/// Adds the members of `body` to the object whose closing brace is at `brace`, the last byte of
/// `out`.
fn splice_members(out: &mut Vec<u8>, brace: usize, body: &impl Serialize) {
    out.truncate(brace);
    let start = out.len();
    // Serializing strings, numbers and their containers cannot fail.
    if serde_json::to_writer(&mut *out, body).is_err() {
        out.truncate(start);
        out.extend_from_slice(b"{}");
    }
    match out.len() - start {
        // `{}`: no members, keep only the brace.
        2 => {
            out.truncate(start);
            out.push(b'}');
        }
        _ => out[start] = b',',
    }
}
