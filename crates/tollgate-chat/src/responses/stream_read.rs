//! Reads an upstream's stream into hub events.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::{malformed, upstream_failure};
use super::hub_events::{HubEventBuilder, PartList};
use super::json;
use crate::error::MalformedResponse;
use crate::format::StreamReader;
use crate::hub::Event;
use crate::sse::Decoder;

/// See [`crate::Format::stream_reader`].
#[derive(Default)]
pub(super) struct Reader {
    decoder: Decoder,
    builder: HubEventBuilder,
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let builder = &mut self.builder;
        self.decoder
            .push(bytes, |event| Self::read_event(builder, event.data, out))
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let builder = &mut self.builder;
        self.decoder
            .finish(|event| Self::read_event(builder, event.data, out))?;
        match self.builder.finished {
            true => Ok(()),
            false => Err(MalformedResponse::Truncated),
        }
    }
}

/// An event of the stream, whose members are not parsed yet.
#[derive(Deserialize)]
struct StreamEvent<'a> {
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
    /// Reads the data of one event.
    fn read_event(
        builder: &mut HubEventBuilder,
        data: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        if builder.finished || data.trim() == "[DONE]" {
            return Ok(());
        }
        let event: StreamEvent<'_> =
            serde_json::from_str(data).map_err(|error| malformed(&error))?;
        match event.kind.as_ref() {
            // Reported only when another event follows: if the next event is a failure, the response never started.
            "response.created" | "response.in_progress" | "response.queued" => {
                builder.read_metadata(&parse_optional(event.response)?);
                Ok(())
            }
            "response.completed" | "response.incomplete" => {
                let Some(response) = event.response else {
                    return Err(MalformedResponse::Invalid(
                        "an end without its response".into(),
                    ));
                };
                let response = parse(response)?;
                builder.read_metadata(&response);
                builder.response_done(&response, event.kind == "response.incomplete", out)
            }
            "response.failed" | "error" => Err(parse_failure(data)),
            "" if event.error.is_some() => Err(parse_failure(data)),
            _ => Self::read_item_event(builder, &event, out),
        }
    }

    /// Reads an event about an output item.
    fn read_item_event(
        builder: &mut HubEventBuilder,
        event: &StreamEvent<'_>,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let at = event.output_index.unwrap_or(0);
        let content = (PartList::Content, event.content_index.unwrap_or(0));
        let summary = (PartList::Summary, event.summary_index.unwrap_or(0));
        let delta = || decode_optional_string(event.delta);
        match event.kind.strip_prefix("response.").unwrap_or_default() {
            "output_item.added" => builder.item_added(at, &parse_optional(event.item)?, out),
            "output_item.done" => builder.item_done(at, parse_optional(event.item)?, out)?,
            "content_part.done" => builder.part_done(at, content, parse_optional(event.part)?, out),
            "output_text.delta" => {
                builder.text_delta(at, content, &delta()?, out);
                builder.logprobs(at, parse_optional(event.logprobs)?, out);
            }
            "output_text.done" => {
                builder.text_done(
                    at,
                    content,
                    &decode_optional_string(event.text)?,
                    parse_optional(event.logprobs)?,
                    out,
                );
            }
            "output_text.annotation.added" => {
                builder.annotation_added(at, parse_optional(event.annotation)?, out)
            }
            "refusal.delta" => builder.refusal_delta(at, content, &delta()?, out),
            "refusal.done" => {
                builder.refusal_done(at, content, &decode_optional_string(event.refusal)?, out)
            }
            "reasoning_summary_text.delta" => builder.reasoning_delta(at, summary, &delta()?, out),
            "reasoning_text.delta" => builder.reasoning_delta(at, content, &delta()?, out),
            "function_call_arguments.delta" | "custom_tool_call_input.delta" => {
                builder.call_input_delta(at, &delta()?, out);
            }
            "function_call_arguments.done" | "custom_tool_call_input.done" => {
                builder.call_input_done(
                    at,
                    &decode_optional_string(event.arguments.or(event.input))?,
                    out,
                );
            }
            _ => {}
        }
        Ok(())
    }
}

fn parse_failure(data: &str) -> MalformedResponse {
    upstream_failure(serde_json::from_str(data).unwrap_or_default())
}

fn parse_optional(raw: Option<&RawValue>) -> Result<Value, MalformedResponse> {
    raw.map_or(Ok(Value::Null), parse)
}

fn parse(raw: &RawValue) -> Result<Value, MalformedResponse> {
    serde_json::from_str(raw.get()).map_err(|error| malformed(&error))
}

/// Decodes a JSON string; empty if the member is missing or not a string.
fn decode_optional_string(raw: Option<&RawValue>) -> Result<Cow<'_, str>, MalformedResponse> {
    match raw {
        Some(raw) if raw.get().starts_with('"') => json::decode_json_string(raw.get())
            .ok_or_else(|| MalformedResponse::Invalid("a string is not valid Unicode".to_owned())),
        _ => Ok(Cow::Borrowed("")),
    }
}
