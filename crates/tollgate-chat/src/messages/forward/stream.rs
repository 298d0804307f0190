//! Forwards a stream, complete events at a time: slices of the upstream's bytes wherever nothing changes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::event_lines::{EventEndSearch, EventLines};
use super::json_edits::{Members, apply_edits, span};
use crate::error::{ErrorBody, MalformedResponse};
use crate::format::{ForwardedChunk, RenderOptions, StreamForwarder};
use crate::hub::Usage;
use crate::messages::stream_read::{EventData, MessageHead, parse_event, parse_stream_error};
use crate::messages::stream_write::{
    write_block_stop, write_error_event, write_message_stop, write_ping,
};
use crate::messages::usage::UsageCounts;
use crate::operator_costs::without_costs;
use crate::sse::MAX_EVENT_BYTES;

/// Forwards one stream.
pub(crate) struct Forwarder {
    model: String,
    /// The bytes of an incomplete event, and how far they have been searched for its end.
    partial: BytesMut,
    search: EventEndSearch,
    /// `message_start` and the pings after it. They are sent with the first block, so that the request can fail over to another upstream if an error
    /// arrives before it.
    held_back: BytesMut,
    is_started: bool,
    /// Index of the open block.
    open_block: Option<u64>,
    /// Whether a stop reason was seen: after it, only `message_stop` is expected.
    has_stopped: bool,
    /// The event `message_stop`, once seen.
    end: Option<Bytes>,
    /// An error that is returned by the next call, because valid events before it had to be returned first.
    failure: Option<MalformedResponse>,
    is_done: bool,
    /// The message's id.
    id: Option<String>,
    counts: UsageCounts,
    text_bytes: u64,
}

/// Byte ranges to replace, in order.
type Edits = Vec<(Range<usize>, String)>;

/// The changes to a batch of complete events.
#[derive(Default)]
struct Batch {
    /// The changes to its bytes.
    edits: Edits,
    /// End of the bytes that are sent.
    end: usize,
}

impl Forwarder {
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            model: Value::from(options.model).to_string(),
            partial: BytesMut::new(),
            search: EventEndSearch::default(),
            held_back: BytesMut::new(),
            is_started: false,
            open_block: None,
            has_stopped: false,
            end: None,
            failure: None,
            is_done: false,
            id: None,
            counts: UsageCounts::default(),
            text_bytes: 0,
        }
    }

    /// The events that `bytes` complete. An incomplete event is kept.
    fn take_complete_events(&mut self, bytes: Bytes) -> Result<Bytes, MalformedResponse> {
        let is_fresh = self.partial.is_empty();
        if !is_fresh {
            self.partial.extend_from_slice(&bytes);
        }
        let text: &[u8] = if is_fresh { &bytes } else { &self.partial };
        let mut search = self.search;
        let mut end = 0;
        while let Some(event_end) = search.end_of_event(text) {
            end = event_end;
        }
        self.search = EventEndSearch {
            at: search.at - end,
            line: search.line - end,
        };
        if text.len() - end > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        if is_fresh {
            self.partial.extend_from_slice(&bytes[end..]);
            return Ok(bytes.slice(..end));
        }
        Ok(self.partial.split_to(end).freeze())
    }

    /// Processes the events in `bytes`, up to `message_stop` or the first error.
    fn process_events(&mut self, bytes: &Bytes) -> Bytes {
        let mut batch = Batch::default();
        let mut search = EventEndSearch::default();
        let mut from = 0;
        let mut held_back_end = None;
        while self.end.is_none() && from < bytes.len() {
            let end = search.end_of_event(bytes).unwrap_or(bytes.len());
            match self.process_event(&bytes[from..end], from, &mut batch) {
                Ok(Outcome::Forwarded) => batch.end = end,
                Ok(Outcome::Early) => {
                    batch.end = end;
                    held_back_end = Some(end);
                }
                Ok(Outcome::End) => self.end = Some(bytes.slice(from..end)),
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
            from = end;
        }
        self.take_output(bytes, batch, held_back_end)
    }

    fn take_output(&mut self, bytes: &Bytes, batch: Batch, held_back_end: Option<usize>) -> Bytes {
        let kept = bytes.slice(..batch.end);
        let text = match batch.edits.is_empty() {
            true => kept,
            false => Bytes::from(apply_edits(&kept, &batch.edits)),
        };
        let is_all_held = held_back_end == Some(batch.end) && self.end.is_none();
        if is_all_held {
            self.held_back.extend_from_slice(&text);
            return Bytes::new();
        }
        if self.held_back.is_empty() || text.is_empty() && self.end.is_none() {
            return text;
        }
        let mut all = self.held_back.split();
        all.extend_from_slice(&text);
        all.freeze()
    }

    /// Processes one event. It begins at `offset` in its batch.
    fn process_event(
        &mut self,
        event: &[u8],
        offset: usize,
        batch: &mut Batch,
    ) -> Result<Outcome, MalformedResponse> {
        let text = std::str::from_utf8(event)
            .map_err(|_| MalformedResponse::Invalid("an event is not UTF-8".to_owned()))?;
        let lines = EventLines::parse(text);
        let joined;
        let data = match lines.data {
            Some(data) if !lines.has_multiple_data => data,
            Some(_) => {
                joined = EventLines::join_data(text);
                &joined
            }
            None => return Ok(self.forwarded_or_early()),
        };
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(self.forwarded_or_early());
        }
        let event_data = parse_event(data)?;
        if let Some(error) = event_data.error {
            return Err(parse_stream_error(error));
        }
        let kind = event_data.kind.as_deref().unwrap_or_default();
        let edits = match kind {
            "message_start" => self.change_message_start(&event_data, data),
            // The end is sent as it is.
            "message_stop" => Edits::new(),
            _ => remove_costs(event_data.usage, data),
        };
        if lines.has_multiple_data && !edits.is_empty() {
            // The edited data becomes one line. In valid JSON, line breaks occur only between tokens.
            let data =
                String::from_utf8_lossy(&apply_edits(data.as_bytes(), &edits)).replace('\n', " ");
            let new = format!("event: {kind}\ndata: {data}\n\n");
            batch.edits.push((offset..offset + event.len(), new));
        } else {
            if !lines.has_name && !kind.is_empty() {
                // Clients skip events without a name.
                batch
                    .edits
                    .push((offset..offset, format!("event: {kind}\n")));
            }
            let position = |at: usize| offset + span(event, data).start + at;
            let edits = edits.into_iter();
            batch
                .edits
                .extend(edits.map(|(at, new)| (position(at.start)..position(at.end), new)));
        }
        match kind {
            "message_start" => return Ok(Outcome::Early),
            "ping" => return Ok(self.forwarded_or_early()),
            "message_stop" => return Ok(Outcome::End),
            "content_block_start" => {
                self.open_block = event_data.index;
                self.text_bytes += event_data.content_block.map_or(0, opening_bytes);
            }
            "content_block_stop" => self.open_block = None,
            _ => self.read_delta(&event_data),
        }
        self.is_started = true;
        Ok(Outcome::Forwarded)
    }

    fn forwarded_or_early(&self) -> Outcome {
        match self.is_started {
            true => Outcome::Forwarded,
            false => Outcome::Early,
        }
    }

    /// Reads the usage. Returns the edits of `data` that replace the model's name and remove costs.
    fn change_message_start(&mut self, event_data: &EventData<'_>, data: &str) -> Edits {
        let Some(message) = event_data.message else {
            return Edits::new();
        };
        let head: MessageHead<'_> = serde_json::from_str(message.get()).unwrap_or_default();
        self.counts
            .update(head.usage.map(UsageCounts::parse_start).unwrap_or_default());
        let members: Result<Members<'_>, _> = serde_json::from_str(message.get());
        let get = |name| members.as_ref().ok()?.get(name);
        self.id = get("id").and_then(|id| serde_json::from_str(id.get()).ok());
        let mut edits = remove_costs(head.usage, data);
        let model = get("model");
        if let Some(model) = model.filter(|model| model.get() != self.model) {
            edits.push((span(data.as_bytes(), model.get()), self.model.clone()));
            edits.sort_by_key(|(range, _)| range.start);
        }
        edits
    }

    fn read_delta(&mut self, event_data: &EventData<'_>) {
        if let Some(usage) = event_data.usage {
            self.counts.update(UsageCounts::parse(usage));
        }
        let Some(delta) = &event_data.delta else {
            return;
        };
        self.has_stopped |= delta.stop_reason.is_some();
        let texts = [&delta.text, &delta.thinking, &delta.partial_json];
        let lengths = texts.into_iter().flatten().map(|text| text.len() as u64);
        self.text_bytes += lengths.sum::<u64>();
    }
}

/// The edit of `data` that removes the operator's costs from `usage`, which is a slice of it.
fn remove_costs(usage: Option<&RawValue>, data: &str) -> Edits {
    let new = usage.and_then(|usage| {
        Some((
            span(data.as_bytes(), usage.get()),
            without_costs(usage.get())?,
        ))
    });
    new.into_iter().collect()
}

/// The bytes of generated content that the start of a block contains and no delta repeats: redacted thinking, results of code.
fn opening_bytes(block: &RawValue) -> u64 {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow, rename = "type")]
        kind: Cow<'a, str>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
        #[serde(borrow)]
        content: Option<&'a RawValue>,
    }
    let Ok(block) = serde_json::from_str::<Block<'_>>(block.get()) else {
        return 0;
    };
    let results = block
        .content
        .filter(|_| block.kind.contains("code_execution"));
    let raw = [block.data, results].into_iter().flatten();
    raw.map(|raw| raw.get().len() as u64).sum()
}

/// How an event is handled.
enum Outcome {
    /// It is sent to the client.
    Forwarded,
    /// It is held back until the first block.
    Early,
    /// It is the end of the stream.
    End,
}

impl StreamForwarder for Forwarder {
    fn push(&mut self, bytes: Bytes) -> Result<ForwardedChunk, MalformedResponse> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.is_done || self.end.is_some() {
            return Ok(ForwardedChunk {
                bytes: Bytes::new(),
                ended: self.end.is_some(),
            });
        }
        let events = self.take_complete_events(bytes)?;
        let now = self.process_events(&events);
        match self.failure.take() {
            Some(failure) if now.is_empty() => Err(failure),
            failure => {
                self.failure = failure;
                Ok(ForwardedChunk {
                    bytes: now,
                    ended: self.end.is_some(),
                })
            }
        }
    }

    fn finish(&mut self) -> Result<(), MalformedResponse> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        if self.end.is_none() && !self.partial.is_empty() {
            // A last event without its blank line still counts.
            let mut partial = std::mem::take(&mut self.partial);
            partial.extend_from_slice(b"\n\n");
            let last = self.process_events(&partial.freeze());
            if let Some(failure) = self.failure.take() {
                return Err(failure);
            }
            // `push` is not called again, so it is sent before the end.
            self.held_back.extend_from_slice(&last);
        }
        match (&self.end, self.has_stopped) {
            (Some(end), _) if !end.is_empty() => Ok(()),
            (Some(_), _) | (None, true) => {
                let mut end = Vec::new();
                write_message_stop(&mut end);
                self.end = Some(Bytes::from(end));
                Ok(())
            }
            (None, false) => Err(MalformedResponse::Truncated),
        }
    }

    fn end(&mut self) -> Bytes {
        if std::mem::replace(&mut self.is_done, true) {
            return Bytes::new();
        }
        let end = self.end.clone().unwrap_or_default();
        if self.held_back.is_empty() {
            return end;
        }
        let mut all = self.held_back.split();
        all.extend_from_slice(&end);
        all.freeze()
    }

    fn usage(&self) -> Option<Usage> {
        self.counts.to_usage()
    }

    fn response_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.is_done || self.end.is_some() {
            return;
        }
        // A ping is only valid after `message_start`.
        out.extend_from_slice(&self.held_back.split());
        if self.is_started || !out.is_empty() {
            self.is_started = true;
            write_ping(out);
        }
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        self.held_back.clear();
        if let Some(index) = self.open_block.take() {
            write_block_stop(out, index);
        }
        write_error_event(out, error);
    }
}
