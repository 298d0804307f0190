//! Forwards a stream: complete events as slices of the upstream's bytes; the end is held back.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::chunk_summary::{ChunkSummary, as_utf8, split_around_model};
use super::event_bytes::{
    EventOutput, find_event_end, join_data, leading_newlines, single_line_json,
};
use crate::error::{ErrorBody, MalformedResponse};
use crate::format::{ForwardedChunk, RenderOptions, StreamForwarder};
use crate::generate_content::error;
use crate::generate_content::stream_framing::StreamFraming;
use crate::hub::Usage;
use crate::sse::MAX_EVENT_BYTES;

/// Forwards one stream.
pub(crate) struct Forwarder {
    model: String,
    array: bool,
    framing: StreamFraming,
    /// The beginning of an incomplete event.
    tail: BytesMut,
    /// The number of bytes of `tail` that are known to contain no event end.
    searched: usize,
    /// The JSON of the finishing event and of those after it.
    held: Vec<Vec<u8>>,
    /// Output of an event that only the end of the body completed; it is sent before the held objects.
    completed_late: Bytes,
    usage: Option<Usage>,
    text_bytes: u64,
    /// The choices seen, and whether each has finished.
    choices: BTreeMap<u32, bool>,
    blocked: bool,
    /// An error that occurred after valid events: later calls return it.
    failed: Option<MalformedResponse>,
}

impl Forwarder {
    pub(crate) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            model: options.model.to_owned(),
            array: options.json_array,
            framing: StreamFraming::new(options.json_array),
            tail: BytesMut::new(),
            searched: 0,
            held: Vec::new(),
            completed_late: Bytes::new(),
            usage: None,
            text_bytes: 0,
            choices: BTreeMap::new(),
            blocked: false,
            failed: None,
        }
    }

    /// The bytes to split into events: the kept beginning and the new bytes. `None` while no event
    /// is complete.
    fn take_complete_events(&mut self, bytes: Bytes) -> Result<Option<Bytes>, MalformedResponse> {
        if self.tail.is_empty() {
            return Ok(Some(bytes));
        }
        self.tail.extend_from_slice(&bytes);
        if find_event_end(&self.tail, self.searched).is_some() {
            self.searched = 0;
            return Ok(Some(self.tail.split().freeze()));
        }
        self.keep_tail()?;
        Ok(None)
    }

    fn keep_tail(&mut self) -> Result<(), MalformedResponse> {
        if self.tail.len() > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        // The bytes of an event end may be split between two chunks.
        self.searched = self.tail.len().saturating_sub(3);
        Ok(())
    }

    /// Forwards the event at `chunk[range]`.
    fn forward_event(
        &mut self,
        range: Range<usize>,
        out: &mut EventOutput<'_>,
    ) -> Result<(), MalformedResponse> {
        let raw = &out.chunk[range.clone()];
        let mut joined = Vec::new();
        let (json, regular) = match single_line_json(raw) {
            Some(json) => (json, !self.array),
            None => {
                join_data(raw, &mut joined);
                (joined.as_slice(), false)
            }
        };
        let text = as_utf8(json)?;
        if text.trim().is_empty() || text.trim() == "[DONE]" {
            return Ok(());
        }
        let summary = ChunkSummary::parse(text)?;
        if let Some(usage) = &summary.usage_metadata {
            self.usage = Some(usage.to_usage());
        }
        self.text_bytes += summary.text_bytes();
        let placement = self.classify(&summary);
        let spliced = split_around_model(json, &summary, &self.model);
        if placement != Placement::HoldAfterEnd && !self.held.is_empty() {
            // The held object was not the end: older models send a finish reason on every chunk.
            self.write_held(out.copied());
        }
        if placement == Placement::SendNow && regular && spliced.is_none() {
            out.push_range(range);
            return Ok(());
        }
        let mut json = match spliced {
            None => json.to_vec(),
            Some((before, name, after)) => [before, &name, after].concat(),
        };
        // In valid JSON, line breaks occur only between tokens, where a space means the same.
        json.iter_mut()
            .filter(|byte| matches!(byte, b'\n' | b'\r'))
            .for_each(|byte| *byte = b' ');
        match placement {
            Placement::SendNow => self.framing.write_object(&json, out.copied()),
            Placement::HoldAsEnd | Placement::HoldAfterEnd => self.held.push(json),
        }
        if self.held.iter().map(Vec::len).sum::<usize>() > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        Ok(())
    }

    /// Writes the held objects.
    fn write_held(&mut self, into: &mut Vec<u8>) {
        for json in self.held.drain(..) {
            self.framing.write_object(&json, into);
        }
    }

    /// Decides when an event is sent.
    fn classify(&mut self, summary: &ChunkSummary<'_>) -> Placement {
        let (mut ends, mut goes_on) = (summary.is_prompt_blocked(), false);
        self.blocked |= ends;
        for (index, finishes, has_content) in summary.candidates() {
            let finished = self.choices.entry(index).or_default();
            ends |= finishes;
            goes_on |= has_content && !*finished;
            *finished |= finishes;
        }
        match (ends, goes_on) {
            (true, _) => Placement::HoldAsEnd,
            (false, false) if !self.held.is_empty() => Placement::HoldAfterEnd,
            (false, _) => Placement::SendNow,
        }
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Placement {
    /// Sent at once.
    SendNow,
    /// Held as the new end; what was held before is sent.
    HoldAsEnd,
    /// Held after the end.
    HoldAfterEnd,
}

impl StreamForwarder for Forwarder {
    /// `ended` is never set: which finish reason was the last is known only at the end of the body.
    fn push(&mut self, bytes: Bytes) -> Result<ForwardedChunk, MalformedResponse> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(chunk) = self.take_complete_events(bytes)? else {
            return Ok(ForwardedChunk::default());
        };
        let mut out = EventOutput::new(&chunk);
        let mut at = 0;
        loop {
            at += leading_newlines(&chunk[at..]);
            let Some(length) = find_event_end(&chunk[at..], 0) else {
                break;
            };
            match self.forward_event(at..at + length, &mut out) {
                Ok(()) => at += length,
                // Valid events are sent first. If nothing was sent yet, the request can fail over to another channel.
                Err(error) if !out.is_empty() => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => {
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
        let forwarded = out.finish();
        self.tail.extend_from_slice(&chunk[at..]);
        self.keep_tail()?;
        Ok(ForwardedChunk {
            bytes: forwarded,
            ended: false,
        })
    }

    fn finish(&mut self) -> Result<(), MalformedResponse> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut last = std::mem::take(&mut self.tail);
        if !last.is_empty() {
            last.extend_from_slice(b"\n\n");
            let chunk = last.freeze();
            let mut out = EventOutput::new(&chunk);
            self.forward_event(0..chunk.len(), &mut out)?;
            // `push` is not called again, so this output is sent before the held objects.
            self.completed_late = out.finish();
        }
        let finished = !self.choices.is_empty() && self.choices.values().all(|finished| *finished);
        match finished || self.blocked {
            true => Ok(()),
            false => Err(MalformedResponse::Truncated),
        }
    }

    fn end(&mut self) -> Bytes {
        if self.framing.closed {
            return Bytes::new();
        }
        let mut out = self.completed_late.to_vec();
        self.write_held(&mut out);
        self.framing.close(&mut out);
        Bytes::from(out)
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.framing.closed {
            out.push(b'\n');
        }
    }

    fn error(&mut self, wire: &ErrorBody, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        // The held end is replaced by the error.
        self.held.clear();
        self.framing
            .write_object(error::error_object(wire).to_string().as_bytes(), out);
        self.framing.close(out);
    }
}
