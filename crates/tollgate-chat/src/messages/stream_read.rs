//! Reads an upstream's stream.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::blocks::read_citation;
use super::error::words_of;
use super::usage::Counts;
use super::wire::{CARRIED, NAME, Text, VENDOR, finish_of};
use crate::error::MalformedResponse;
use crate::format::StreamReader;
use crate::hub::{Event, FinishReason, Opaque, Part, PartKind};
use crate::sse::{Decoder, MAX_EVENT_BYTES};

/// The data of any event; each has some of the members.
#[derive(Deserialize)]
pub(super) struct Data<'a> {
    /// What happened.
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Text<'a>>,
    /// Of `message_start`.
    #[serde(borrow)]
    pub(super) message: Option<&'a RawValue>,
    /// The block's number.
    pub(super) index: Option<u64>,
    /// Of `content_block_start`.
    #[serde(borrow)]
    pub(super) content_block: Option<&'a RawValue>,
    /// Of `content_block_delta` and `message_delta`.
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    /// Of `message_delta`.
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
    /// Of `error`.
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

/// What is added to a block, or to the message.
#[derive(Deserialize, Default)]
pub(super) struct Delta<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) signature: Option<Text<'a>>,
    #[serde(borrow)]
    citation: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<Text<'a>>,
}

/// The head of the message.
#[derive(Deserialize, Default)]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) usage: Option<&'a RawValue>,
}

/// One event's data. What is no JSON is no event of this format.
pub(super) fn parse(data: &str) -> Result<Data<'_>, MalformedResponse> {
    serde_json::from_str(data).map_err(|error| {
        MalformedResponse::Invalid(format!("an event is not the format's: {error}"))
    })
}

/// The words of an error event.
pub(super) fn stream_error(error: &RawValue) -> MalformedResponse {
    let value: Value = serde_json::from_str(error.get()).unwrap_or_default();
    MalformedResponse::Upstream(words_of(&json!({"error": value})))
}

/// Reads a stream of this format.
#[derive(Default)]
pub(super) struct Reader {
    decoder: Decoder,
    state: State,
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let state = &mut self.state;
        self.decoder
            .push(bytes, |event| state.event(event.data, out))
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let state = &mut self.state;
        self.decoder.finish(|event| state.event(event.data, out))?;
        if state.is_finished {
            Ok(())
        } else {
            Err(MalformedResponse::Truncated)
        }
    }
}

#[derive(Default)]
struct State {
    id: String,
    is_started: bool,
    is_finished: bool,
    counts: Counts,
    calls: u32,
    /// The blocks that are open, by their number.
    open: Vec<(u64, Open)>,
}

/// A block that is open.
enum Open {
    Text,
    Thinking {
        signature: String,
    },
    Call {
        call: u32,
        /// The whole input, where the start already has it.
        input: String,
        has_pieces: bool,
    },
    /// One that only this format knows: given out whole at its end.
    Foreign {
        block: Value,
        input: String,
    },
}

impl State {
    fn event(&mut self, data: &str, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let data = parse(data)?;
        if let Some(error) = data.error {
            return Err(stream_error(error));
        }
        match data.kind.as_deref() {
            Some("message_start") => self.start(data.message, out),
            Some("message_delta") => {
                self.begin(out);
                self.message_delta(data.delta.unwrap_or_default(), data.usage, out);
            }
            Some("message_stop") => {
                self.begin(out);
                self.end(FinishReason::EndTurn, None, out);
            }
            _ if self.is_finished => {}
            Some("content_block_start") => {
                self.begin(out);
                self.block_start(data.index.unwrap_or(0), data.content_block, out)?;
            }
            Some("content_block_delta") => {
                self.begin(out);
                self.block_delta(data.index.unwrap_or(0), data.delta.unwrap_or_default(), out)?;
            }
            Some("content_block_stop") => {
                self.begin(out);
                let index = data.index.unwrap_or(0);
                if let Some(at) = self.open.iter().position(|open| open.0 == index) {
                    close(self.open.remove(at).1, out);
                }
            }
            // Pings, and what the vendor adds one day.
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, message: Option<&RawValue>, out: &mut Vec<Event>) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let head: Head<'_> = message
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        self.id = owned(head.id);
        self.counts = head.usage.map(Counts::of).unwrap_or_default();
        out.push(Event::Start {
            id: self.id.clone(),
            model: owned(head.model),
            created: None,
            usage: self.counts.usage(),
        });
    }

    /// A stream that begins in its middle still begins.
    fn begin(&mut self, out: &mut Vec<Event>) {
        self.start(None, out);
    }

    fn block_start(
        &mut self,
        index: u64,
        block: Option<&RawValue>,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let malformed =
            || MalformedResponse::Invalid("a content block is not the format's".to_owned());
        let block: Value = block
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .ok_or_else(malformed)?;
        // A number that is used again begins a new block all the same.
        if let Some(at) = self.open.iter().position(|open| open.0 == index) {
            close(self.open.remove(at).1, out);
        }
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let open = match text("type") {
            "text" => {
                push_text(text("text"), out);
                Open::Text
            }
            "thinking" => {
                push_thinking(text("thinking"), out);
                Open::Thinking {
                    signature: text("signature").to_owned(),
                }
            }
            "redacted_thinking" => {
                out.push(redacted(text("data")));
                return Ok(());
            }
            "tool_use" => self.call_start(index, &block, out)?,
            "" => return Err(malformed()),
            _ => Open::Foreign {
                block,
                input: String::new(),
            },
        };
        self.open.push((index, open));
        Ok(())
    }

    fn call_start(
        &mut self,
        index: u64,
        block: &Value,
        out: &mut Vec<Event>,
    ) -> Result<Open, MalformedResponse> {
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        if name.is_empty() {
            return Err(MalformedResponse::Invalid(
                "a tool call names no tool".to_owned(),
            ));
        }
        let id = match text("id") {
            "" => minted(&self.id, index),
            id => id.to_owned(),
        };
        let call = self.calls;
        self.calls += 1;
        out.push(Event::ToolStart {
            choice: 0,
            call,
            id,
            name: name.to_owned(),
            custom: false,
        });
        let input = block.get("input").filter(|input| !input.is_null());
        Ok(Open::Call {
            call,
            input: input.map_or_else(|| "{}".to_owned(), Value::to_string),
            has_pieces: false,
        })
    }

    fn block_delta(
        &mut self,
        index: u64,
        delta: Delta<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let Some((_, open)) = self.open.iter_mut().find(|open| open.0 == index) else {
            // Text without a start is still text.
            if let Some(text) = delta.text {
                push_text(&text, out);
                self.open.push((index, Open::Text));
            }
            return Ok(());
        };
        match open {
            Open::Text => {
                push_text(delta.text.as_deref().unwrap_or_default(), out);
                let citation = delta
                    .citation
                    .and_then(|raw| serde_json::from_str(raw.get()).ok());
                if let Some(citation) = citation.and_then(read_citation) {
                    out.push(Event::Citation {
                        choice: 0,
                        citation,
                    });
                }
            }
            Open::Thinking { signature } => {
                push_thinking(delta.thinking.as_deref().unwrap_or_default(), out);
                signature.push_str(delta.signature.as_deref().unwrap_or_default());
                bounded(signature)?;
            }
            Open::Call {
                call, has_pieces, ..
            } => {
                if let Some(json) = delta.partial_json.filter(|json| !json.is_empty()) {
                    *has_pieces = true;
                    let (choice, call, json) = (0, *call, json.0.into_owned());
                    out.push(Event::ToolArguments { choice, call, json });
                }
            }
            Open::Foreign { input, .. } => {
                input.push_str(delta.partial_json.as_deref().unwrap_or_default());
                bounded(input)?;
            }
        }
        Ok(())
    }

    fn message_delta(&mut self, delta: Delta<'_>, usage: Option<&RawValue>, out: &mut Vec<Event>) {
        if let Some(usage) = usage {
            self.counts.overwrite(Counts::of(usage));
            out.extend(self.counts.usage().map(Event::Usage));
        }
        if let Some(reason) = delta.stop_reason {
            let sequence = delta.stop_sequence.map(|text| text.0.into_owned());
            self.end(finish_of(&reason), sequence, out);
        }
    }

    fn end(&mut self, finish: FinishReason, stop_sequence: Option<String>, out: &mut Vec<Event>) {
        if self.is_finished {
            return;
        }
        self.is_finished = true;
        for (_, open) in self.open.drain(..) {
            close(open, out);
        }
        out.push(Event::Finish {
            choice: 0,
            finish: finish.with_tool_calls(self.calls > 0),
            stop_sequence,
        });
    }
}

fn owned(text: Option<Text<'_>>) -> String {
    text.map(|text| text.0.into_owned()).unwrap_or_default()
}

fn push_text(text: &str, out: &mut Vec<Event>) {
    if !text.is_empty() {
        out.push(Event::Text {
            choice: 0,
            text: text.to_owned(),
        });
    }
}

fn push_thinking(text: &str, out: &mut Vec<Event>) {
    if !text.is_empty() {
        out.push(Event::Reasoning {
            choice: 0,
            text: text.to_owned(),
            summary: false,
        });
    }
}

fn redacted(data: &str) -> Event {
    let choice = 0;
    match data.strip_prefix(CARRIED) {
        // A gateway like this one in front of another vendor: the signature is on what has just ended.
        Some(carried) => Event::TextEnd {
            choice,
            signature: Some(Opaque::from_portable(carried, VENDOR)),
        },
        None => Event::RedactedReasoning {
            choice,
            data: Opaque::from_portable(data, VENDOR),
        },
    }
}

fn close(open: Open, out: &mut Vec<Event>) {
    let choice = 0;
    match open {
        Open::Text => out.push(Event::TextEnd {
            choice,
            signature: None,
        }),
        Open::Thinking { signature } => {
            let signature =
                (!signature.is_empty()).then(|| Opaque::from_portable(&signature, VENDOR));
            out.push(Event::ReasoningEnd {
                choice,
                signature,
                id: None,
            });
        }
        Open::Call {
            call,
            input,
            has_pieces,
        } => {
            if !has_pieces {
                let json = input;
                out.push(Event::ToolArguments { choice, call, json });
            }
            out.push(Event::ToolEnd {
                choice,
                call,
                signature: None,
            });
        }
        Open::Foreign { mut block, input } => {
            if let Ok(input @ Value::Object(_)) = serde_json::from_str(&input) {
                block["input"] = input;
            }
            let kind = PartKind::FormatSpecific {
                format: NAME,
                value: block,
            };
            out.push(Event::Part {
                choice,
                part: Part::new(kind),
            });
        }
    }
}

fn bounded(text: &str) -> Result<(), MalformedResponse> {
    match text.len() > MAX_EVENT_BYTES {
        true => Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES)),
        false => Ok(()),
    }
}

/// An id for a call that has none: the same whenever the same reply is read.
pub(super) fn minted(message: &str, index: u64) -> String {
    let digest = Sha256::digest(format!("{message}/{index}"));
    let hex: String = digest[..12]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("toolu_{hex}")
}
