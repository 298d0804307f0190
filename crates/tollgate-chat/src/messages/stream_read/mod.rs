//! Reads an upstream's stream into the hub's events.

mod event_data;

use serde_json::Value;
use serde_json::value::RawValue;

use super::citations::read_citation;
use super::constants::{NAME, SIGNATURE_PREFIX, VENDOR};
use super::fields::JsonString;
use super::finish::finish_from_reason;
use super::ids::generate_call_id;
use super::usage::UsageCounts;
use crate::error::MalformedResponse;
use crate::format::StreamReader;
use crate::hub::{Citation, Event, FinishReason, Opaque, Part, PartKind};
use crate::sse::{Decoder, MAX_EVENT_BYTES};
use event_data::Delta;
pub(crate) use event_data::{EventData, MessageHead, parse_event, parse_stream_error};

/// Reads a stream of this format.
#[derive(Default)]
pub(crate) struct Reader {
    decoder: Decoder,
    state: State,
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let state = &mut self.state;
        self.decoder
            .push(bytes, |event| state.read_event(event.data, out))
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let state = &mut self.state;
        self.decoder
            .finish(|event| state.read_event(event.data, out))?;
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
    counts: UsageCounts,
    calls: u32,
    /// The open blocks, with their indexes.
    open: Vec<(u64, OpenBlock)>,
}

/// An open block.
enum OpenBlock {
    Text {
        /// Sent at the block's end: they belong to all of its text, of which some may follow them.
        citations: Vec<Citation>,
    },
    Thinking {
        signature: String,
    },
    Call {
        call: u32,
        /// The input in `content_block_start`, used if no deltas follow.
        input: String,
        has_pieces: bool,
    },
    /// A block of a type that only this format has. It becomes one event at its end.
    FormatSpecific {
        block: Value,
        input: String,
    },
}

impl State {
    fn read_event(&mut self, data: &str, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        if data.trim() == "[DONE]" {
            return Ok(());
        }
        let data = parse_event(data)?;
        if let Some(error) = data.error {
            return Err(parse_stream_error(error));
        }
        match data.kind.as_deref() {
            Some("message_start") => self.start(data.message, out),
            Some("message_delta") => {
                self.ensure_started(out);
                self.read_message_delta(data.delta.unwrap_or_default(), data.usage, out);
            }
            Some("message_stop") => {
                self.ensure_started(out);
                self.finish(FinishReason::EndTurn, None, out);
            }
            _ if self.is_finished => {}
            Some("content_block_start") => {
                self.ensure_started(out);
                self.start_block(data.index.unwrap_or(0), data.content_block, out)?;
            }
            Some("content_block_delta") => {
                self.ensure_started(out);
                self.read_block_delta(
                    data.index.unwrap_or(0),
                    data.delta.unwrap_or_default(),
                    out,
                )?;
            }
            Some("content_block_stop") => {
                self.ensure_started(out);
                let index = data.index.unwrap_or(0);
                if let Some(at) = self.open.iter().position(|open| open.0 == index) {
                    end_block(self.open.remove(at).1, out);
                }
            }
            // Pings and unknown events are ignored.
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, message: Option<&RawValue>, out: &mut Vec<Event>) {
        if self.is_started {
            return;
        }
        self.is_started = true;
        let head: MessageHead<'_> = message
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        self.id = to_owned_string(head.id);
        self.counts = head.usage.map(UsageCounts::parse_start).unwrap_or_default();
        out.push(Event::Start {
            id: self.id.clone(),
            model: to_owned_string(head.model),
            created: None,
            usage: self.counts.to_usage(),
        });
    }

    /// Emits the start if the stream has no `message_start`.
    fn ensure_started(&mut self, out: &mut Vec<Event>) {
        self.start(None, out);
    }

    fn start_block(
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
        // A repeated index starts a new block.
        if let Some(at) = self.open.iter().position(|open| open.0 == index) {
            end_block(self.open.remove(at).1, out);
        }
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let open = match text("type") {
            "text" => {
                push_text(text("text"), out);
                OpenBlock::Text {
                    citations: Vec::new(),
                }
            }
            "thinking" => {
                push_thinking(text("thinking"), out);
                OpenBlock::Thinking {
                    signature: text("signature").to_owned(),
                }
            }
            "redacted_thinking" => {
                out.push(redacted_event(text("data")));
                return Ok(());
            }
            "tool_use" => self.start_call(index, &block, out)?,
            "" => return Err(malformed()),
            _ => OpenBlock::FormatSpecific {
                block,
                input: String::new(),
            },
        };
        self.open.push((index, open));
        Ok(())
    }

    fn start_call(
        &mut self,
        index: u64,
        block: &Value,
        out: &mut Vec<Event>,
    ) -> Result<OpenBlock, MalformedResponse> {
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        let name = text("name");
        if name.is_empty() {
            return Err(MalformedResponse::Invalid(
                "a tool call names no tool".to_owned(),
            ));
        }
        let id = match text("id") {
            "" => generate_call_id(&self.id, index),
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
        Ok(OpenBlock::Call {
            call,
            input: input.map_or_else(|| "{}".to_owned(), Value::to_string),
            has_pieces: false,
        })
    }

    fn read_block_delta(
        &mut self,
        index: u64,
        delta: Delta<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let Some((_, open)) = self.open.iter_mut().find(|open| open.0 == index) else {
            // A text delta without a start opens a text block.
            if let Some(text) = delta.text {
                push_text(&text, out);
                let citations = Vec::new();
                self.open.push((index, OpenBlock::Text { citations }));
            }
            return Ok(());
        };
        match open {
            OpenBlock::Text { citations } => {
                push_text(delta.text.as_deref().unwrap_or_default(), out);
                let citation = delta
                    .citation
                    .and_then(|raw| serde_json::from_str(raw.get()).ok());
                citations.extend(citation.and_then(read_citation));
            }
            OpenBlock::Thinking { signature } => {
                push_thinking(delta.thinking.as_deref().unwrap_or_default(), out);
                signature.push_str(delta.signature.as_deref().unwrap_or_default());
                check_size(signature)?;
            }
            OpenBlock::Call {
                call, has_pieces, ..
            } => {
                if let Some(json) = delta.partial_json.filter(|json| !json.is_empty()) {
                    *has_pieces = true;
                    let (choice, call, json) = (0, *call, json.0.into_owned());
                    out.push(Event::ToolArguments { choice, call, json });
                }
            }
            OpenBlock::FormatSpecific { input, .. } => {
                input.push_str(delta.partial_json.as_deref().unwrap_or_default());
                check_size(input)?;
            }
        }
        Ok(())
    }

    fn read_message_delta(
        &mut self,
        delta: Delta<'_>,
        usage: Option<&RawValue>,
        out: &mut Vec<Event>,
    ) {
        if let Some(usage) = usage {
            self.counts.update(UsageCounts::parse(usage));
            out.extend(self.counts.to_usage().map(Event::Usage));
        }
        if let Some(reason) = delta.stop_reason {
            let sequence = delta.stop_sequence.map(|text| text.0.into_owned());
            self.finish(finish_from_reason(&reason), sequence, out);
        }
    }

    fn finish(
        &mut self,
        finish: FinishReason,
        stop_sequence: Option<String>,
        out: &mut Vec<Event>,
    ) {
        if self.is_finished {
            return;
        }
        self.is_finished = true;
        for (_, open) in self.open.drain(..) {
            end_block(open, out);
        }
        out.push(Event::Finish {
            choice: 0,
            finish: finish.with_tool_calls(self.calls > 0),
            stop_sequence,
        });
    }
}

fn to_owned_string(text: Option<JsonString<'_>>) -> String {
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

fn redacted_event(data: &str) -> Event {
    let choice = 0;
    match data.strip_prefix(SIGNATURE_PREFIX) {
        // The upstream is a Tollgate gateway that uses another vendor: the signature belongs to the previous block.
        Some(signature) => Event::TextEnd {
            choice,
            signature: Some(Opaque::from_portable(signature, VENDOR)),
        },
        None => Event::RedactedReasoning {
            choice,
            data: Opaque::from_portable(data, VENDOR),
        },
    }
}

fn end_block(open: OpenBlock, out: &mut Vec<Event>) {
    let choice = 0;
    match open {
        OpenBlock::Text { citations } => {
            let citations = citations.into_iter();
            out.extend(citations.map(|citation| Event::Citation { choice, citation }));
            out.push(Event::TextEnd {
                choice,
                signature: None,
            });
        }
        OpenBlock::Thinking { signature } => {
            let signature =
                (!signature.is_empty()).then(|| Opaque::from_portable(&signature, VENDOR));
            out.push(Event::ReasoningEnd {
                choice,
                signature,
                id: None,
            });
        }
        OpenBlock::Call {
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
        OpenBlock::FormatSpecific { mut block, input } => {
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

fn check_size(text: &str) -> Result<(), MalformedResponse> {
    match text.len() > MAX_EVENT_BYTES {
        true => Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES)),
        false => Ok(()),
    }
}
