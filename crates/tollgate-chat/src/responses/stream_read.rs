//! An upstream's stream read into events.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::failure;
use super::steps::{List, Steps};
use crate::error::Garbled;
use crate::format::StreamReader;
use crate::hub::Event;
use crate::sse::Decoder;

/// See [`crate::Format::stream_reader`].
#[derive(Default)]
pub(super) struct Reader {
    decoder: Decoder,
    steps: Steps,
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), Garbled> {
        let steps = &mut self.steps;
        self.decoder
            .push(bytes, |event| Self::take(steps, event.data, out))
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), Garbled> {
        let steps = &mut self.steps;
        self.decoder
            .finish(|event| Self::take(steps, event.data, out))?;
        match self.steps.finished {
            true => Ok(()),
            false => Err(Garbled::BrokeOff),
        }
    }
}

/// An event of the wire, its parts unread.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    output_index: Option<u64>,
    #[serde(default)]
    content_index: Option<u64>,
    #[serde(default)]
    summary_index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    refusal: Option<&'a RawValue>,
    arguments: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    part: Option<&'a RawValue>,
    annotation: Option<&'a RawValue>,
    logprobs: Option<&'a RawValue>,
    response: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl Reader {
    /// Takes the data of one event.
    fn take(steps: &mut Steps, data: &str, out: &mut Vec<Event>) -> Result<(), Garbled> {
        if steps.finished || data.trim() == "[DONE]" {
            return Ok(());
        }
        let wire: Wire<'_> = serde_json::from_str(data).map_err(|error| malformed(&error))?;
        match wire.kind.as_ref() {
            // Told only when something follows: a failure as the next event is no reply that began.
            "response.created" | "response.in_progress" | "response.queued" => {
                steps.learn(&read(wire.response)?);
                Ok(())
            }
            "response.completed" | "response.incomplete" => {
                let Some(response) = wire.response else {
                    return Err(Garbled::Malformed("an end without its response".into()));
                };
                let response = value(response)?;
                steps.learn(&response);
                steps.terminal(&response, wire.kind == "response.incomplete", out)
            }
            "response.failed" | "error" => Err(failed(data)),
            "" if wire.error.is_some() => Err(failed(data)),
            _ => Self::piece(steps, &wire, out),
        }
    }

    /// An event of an item.
    fn piece(steps: &mut Steps, wire: &Wire<'_>, out: &mut Vec<Event>) -> Result<(), Garbled> {
        let at = wire.output_index.unwrap_or(0);
        let content = (List::Content, wire.content_index.unwrap_or(0));
        let summary = (List::Summary, wire.summary_index.unwrap_or(0));
        let delta = || text_of(wire.delta);
        match wire.kind.strip_prefix("response.").unwrap_or_default() {
            "output_item.added" => steps.added(at, &read(wire.item)?, out),
            "output_item.done" => steps.item_done(at, read(wire.item)?, out)?,
            "content_part.done" => steps.part_done(at, content, read(wire.part)?, out),
            "output_text.delta" => {
                steps.text(at, content, &delta()?, out);
                steps.logprobs(at, read(wire.logprobs)?, out);
            }
            "output_text.done" => {
                steps.text_done(at, content, &text_of(wire.text)?, read(wire.logprobs)?, out);
            }
            "output_text.annotation.added" => steps.annotation(at, read(wire.annotation)?, out),
            "refusal.delta" => steps.refusal(at, content, &delta()?, out),
            "refusal.done" => steps.refusal_done(at, content, &text_of(wire.refusal)?, out),
            "reasoning_summary_text.delta" => steps.thought(at, summary, &delta()?, out),
            "reasoning_text.delta" => steps.thought(at, content, &delta()?, out),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                steps.input(at, &delta()?, out);
            }
            "function_call_arguments.done" | "custom_tool_call_input.done" => {
                steps.fill_input(at, &text_of(wire.arguments.or(wire.input))?, out);
            }
            _ => {}
        }
        Ok(())
    }
}

fn failed(data: &str) -> Garbled {
    failure(serde_json::from_str(data).unwrap_or_default())
}

fn read(raw: Option<&RawValue>) -> Result<Value, Garbled> {
    raw.map_or(Ok(Value::Null), value)
}

fn value(raw: &RawValue) -> Result<Value, Garbled> {
    serde_json::from_str(raw.get()).map_err(|error| malformed(&error))
}

/// The text of a JSON string; empty where there is none.
fn text_of(raw: Option<&RawValue>) -> Result<Cow<'_, str>, Garbled> {
    match raw {
        Some(raw) if raw.get().starts_with('"') => super::glance::text_of(raw.get())
            .ok_or_else(|| Garbled::Malformed("a text holds no valid characters".to_owned())),
        _ => Ok(Cow::Borrowed("")),
    }
}

/// Says where, not what: content does not belong into the log.
pub(super) fn malformed(error: &serde_json::Error) -> Garbled {
    let (line, column) = (error.line(), error.column());
    Garbled::Malformed(format!(
        "JSON, line {line} column {column}: {:?}",
        error.classify()
    ))
}
