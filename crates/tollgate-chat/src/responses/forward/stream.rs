//! Forwards a stream: complete events as slices of the upstream's bytes.
//!
//! Only events with a response object are parsed: to set the model's name, and at the end to read
//! usage. The opening events are held until something follows them, so that a failure right after
//! them can still fail over to another upstream.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::event_splitter::{EventSplitter, OutputChunks, event_data};
use super::json_edits::{JsonEdits, json_string};
use super::text_bytes::{TextBytes, hosted_output_bytes};
use crate::error::{ErrorBody, MalformedResponse};
use crate::format::{ForwardedChunk, RenderOptions, StreamForwarder};
use crate::hub::Usage;
use crate::responses::error::{failure_object, malformed, upstream_failure};
use crate::responses::output::ResponseObject;
use crate::responses::stream_events::{KEEP_ALIVE, write_event};
use crate::responses::usage::{complete_usage, count_web_searches, parse_usage, write_usage};
use crate::tokens::generated_media_bytes;

/// See [`crate::Format::stream_forwarder`].
pub(crate) struct Forwarder {
    frame: ResponseObject,
    /// The model's name for the client, as a JSON string literal.
    model: String,
    splitter: EventSplitter,
    /// The opening events, sent together with the event that follows them.
    held_events: Vec<Bytes>,
    /// Whether nothing has been sent to the client yet.
    nothing_sent: bool,
    /// Whether the last event was replaced. If so, the second half of a split `\r\n` belongs to the replaced bytes and is skipped.
    was_replaced: bool,
    /// An error that occurred after valid events: the next call returns it.
    failed: Option<MalformedResponse>,
    /// The final event, held back, and whether it arrived.
    end: Bytes,
    has_ended: bool,
    /// The response's id in the last event that has one.
    id: Option<String>,
    usage: Option<Usage>,
    text_bytes: u64,
    /// The `sequence_number` for an event that the gateway adds.
    sequence: u64,
}

/// The members of an event that forwarding needs.
#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    sequence_number: Option<u64>,
    delta: Option<TextBytes>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    created_at: Option<f64>,
    model: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
}

/// What to do with an event.
enum EventAction {
    /// Forward it unchanged.
    Pass,
    /// Send these bytes in its place.
    Replace(Vec<u8>),
    /// The event opens the stream: hold it, replaced by these bytes if there are any.
    Hold(Option<Vec<u8>>),
    /// The event ends the stream: hold it back, replaced by these bytes if there are any.
    End(Option<Vec<u8>>),
    /// Leave the event out.
    Skip,
}

impl Forwarder {
    /// A forwarder of a stream that has not started.
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            frame: ResponseObject::new(options),
            model: json_string(options.model),
            splitter: EventSplitter::default(),
            held_events: Vec::new(),
            nothing_sent: true,
            was_replaced: false,
            failed: None,
            end: Bytes::new(),
            has_ended: false,
            id: None,
            usage: None,
            text_bytes: 0,
            sequence: 0,
        }
    }

    /// Forwards the complete events of `buffer` that end at `ends`.
    fn forward_events(
        &mut self,
        buffer: &Bytes,
        ends: &[usize],
    ) -> Result<Bytes, MalformedResponse> {
        let mut output = OutputChunks::new(buffer);
        let mut start = 0;
        for &end in ends {
            let span = start..end;
            start = end;
            let action = match self.classify_event(&buffer[span.clone()]) {
                Ok(action) => action,
                // Nothing was sent, so the request can fail over to another upstream.
                Err(error) if self.nothing_sent => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            };
            let replaced = match &action {
                EventAction::Replace(_) | EventAction::Hold(Some(_)) => true,
                EventAction::Skip => self.was_replaced,
                _ => false,
            };
            self.was_replaced = replaced;
            match action {
                EventAction::Skip => {}
                EventAction::Pass => {
                    self.flush_held(&mut output);
                    output.push_range(span);
                }
                EventAction::Replace(new) => {
                    self.flush_held(&mut output);
                    output.push_bytes(new.into());
                }
                EventAction::Hold(new) => {
                    let event = new.map_or_else(|| buffer.slice(span), Bytes::from);
                    self.held_events.push(event);
                }
                EventAction::End(new) => {
                    self.flush_held(&mut output);
                    self.end = new.map_or_else(|| buffer.slice(span), Bytes::from);
                    self.has_ended = true;
                    break;
                }
            }
        }
        Ok(output.concat())
    }

    /// Sends the held opening events before the first other event.
    fn flush_held(&mut self, output: &mut OutputChunks<'_>) {
        if self.nothing_sent {
            self.nothing_sent = false;
            for event in self.held_events.drain(..) {
                output.push_bytes(event);
            }
        }
    }

    fn classify_event(&mut self, event: &[u8]) -> Result<EventAction, MalformedResponse> {
        let Some(data) = event_data(event)? else {
            // Comments and empty lines only keep a stream alive; they do not open it.
            let is_rest = self.was_replaced && event == b"\n";
            return Ok(if self.nothing_sent || is_rest {
                EventAction::Skip
            } else {
                EventAction::Pass
            });
        };
        if matches!(data.trim(), "" | "[DONE]") {
            return Ok(EventAction::Skip);
        }
        let wire: StreamEvent<'_> =
            serde_json::from_str(&data).map_err(|error| malformed(&error))?;
        if let Some(number) = wire.sequence_number {
            self.sequence = number.saturating_add(1);
        }
        match wire.kind.as_ref() {
            "response.failed" | "error" => {
                return Err(upstream_failure(
                    serde_json::from_str(&data).unwrap_or_default(),
                ));
            }
            "" if wire.error.is_some() => {
                return Err(upstream_failure(
                    serde_json::from_str(&data).unwrap_or_default(),
                ));
            }
            _ => {}
        }
        // Some servers leave the names of events out: then all events get one.
        let is_named = has_event_name(event) || wire.kind.is_empty();
        let delta = wire.delta.map_or(0, |bytes| bytes.0);
        self.text_bytes += match wire.kind.as_ref() {
            "response.audio.delta" => generated_media_bytes("audio/", delta),
            // The transcript is a second form of the audio, which is counted already.
            "response.audio.transcript.delta" => 0,
            "response.output_item.done" => wire.item.map_or(0, hosted_output_bytes),
            _ => delta,
        };
        let Some(raw) = wire.response else {
            return Ok(match is_named {
                true => EventAction::Pass,
                false => EventAction::Replace(format_event(&wire.kind, &data)),
            });
        };
        let response: Response<'_> =
            serde_json::from_str(raw.get()).map_err(|error| malformed(&error))?;
        if let Some(id) = &response.id {
            if self.id.as_deref() != Some(id) {
                self.id = Some(id.to_string());
            }
            self.frame
                .set_identity(id, response.created_at.map(|at| at as i64));
        }
        let usage = response.usage.and_then(parse_usage).map(|usage| Usage {
            web_searches: count_web_searches(raw.get().as_bytes()),
            ..usage
        });
        self.usage = usage.or(self.usage);
        let mut edits = JsonEdits::new(&data);
        if let Some(model) = response.model {
            edits.replace(model, self.model.as_str());
        }
        if let Some(usage) = response.usage
            && let Some(complete) = complete_usage(usage)
        {
            edits.replace(usage, complete);
        }
        let unnamed = (!is_named).then(|| data.to_string());
        let new = edits.apply().or(unnamed);
        let new = new.map(|data| format_event(&wire.kind, &data));
        Ok(match wire.kind.as_ref() {
            "response.created" | "response.in_progress" | "response.queued"
                if self.nothing_sent =>
            {
                EventAction::Hold(new)
            }
            "response.completed" | "response.incomplete" => EventAction::End(new),
            _ => new.map_or(EventAction::Pass, EventAction::Replace),
        })
    }
}

impl StreamForwarder for Forwarder {
    fn push(&mut self, bytes: Bytes) -> Result<ForwardedChunk, MalformedResponse> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut forwarded = Bytes::new();
        if !self.has_ended {
            let (buffer, ends) = self.splitter.push(bytes)?;
            forwarded = self.forward_events(&buffer, &ends)?;
        }
        Ok(ForwardedChunk {
            bytes: forwarded,
            ended: self.has_ended,
        })
    }

    fn finish(&mut self) -> Result<(), MalformedResponse> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if !self.has_ended {
            // A final event without its blank line still counts.
            let rest = self.splitter.take_rest();
            if !rest.is_empty() {
                let end = [rest.len()];
                self.forward_events(&rest, &end)?;
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
            }
        }
        let has_blank_line = |event: &[u8]| {
            [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"]
                .iter()
                .any(|end| event.ends_with(end))
        };
        if !self.end.is_empty() && !has_blank_line(&self.end) {
            // Clients discard an event without its blank line.
            self.end = [&self.end[..], b"\n\n"].concat().into();
        }
        match self.has_ended {
            true => Ok(()),
            false => Err(MalformedResponse::Truncated),
        }
    }

    fn end(&mut self) -> Bytes {
        std::mem::take(&mut self.end)
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn response_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(KEEP_ALIVE);
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if self.nothing_sent {
            self.nothing_sent = false;
            for event in &self.held_events {
                out.extend_from_slice(event);
            }
            if self.held_events.is_empty() {
                let created = self.frame.build("in_progress", json!([]), Value::Null);
                let body = json!({"response": created});
                write_event(out, &mut self.sequence, "response.created", &body);
            }
        }
        let usage = self.usage.as_ref().map_or(Value::Null, write_usage);
        let mut response = self.frame.build("failed", json!([]), usage);
        response.insert("error".to_owned(), failure_object(error));
        let body = json!({"response": response});
        write_event(out, &mut self.sequence, "response.failed", &body);
    }
}

/// Whether an event has an `event:` line.
fn has_event_name(event: &[u8]) -> bool {
    let mut lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.any(|line| line.starts_with(b"event:"))
}

/// An event with new data, in standard SSE lines.
fn format_event(kind: &str, data: &str) -> Vec<u8> {
    // In valid JSON, line breaks occur only between tokens.
    let data = data.replace(['\n', '\r'], " ");
    format!("event: {kind}\ndata: {data}\n\n").into_bytes()
}
