//! Streams between equal formats: whole events as they come, slices of the upstream's bytes wherever nothing changes.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::forward::{Members, span, spliced};
use super::stream_read::{Data, Head, parse, stream_error};
use super::stream_write::{put_error, put_message_stop, put_ping, put_stop};
use super::usage::Counts;
use crate::error::{ErrorBody, MalformedResponse};
use crate::format::{ForwardedChunk, RenderOptions, StreamForwarder};
use crate::hub::Usage;
use crate::sse::MAX_EVENT_BYTES;

/// Passes a stream of this format on.
pub(super) struct Forward {
    model: String,
    /// Bytes of an event that is not whole yet, and how far they have been searched for its end.
    rest: BytesMut,
    search: Search,
    /// The message's start and pings behind it: given out with the first block, so that an error before that can still be
    /// answered by another upstream.
    held: BytesMut,
    is_started: bool,
    /// The block that is open.
    open: Option<u64>,
    /// Whether a stop reason was seen: nothing is missing then but the end.
    has_stopped: bool,
    /// The good end, once seen.
    end: Option<Bytes>,
    /// What is wrong, where something good had to be given out first.
    failure: Option<MalformedResponse>,
    is_done: bool,
    counts: Counts,
    text_bytes: u64,
}

/// Finds the blank line that ends an event.
#[derive(Debug, Clone, Copy, Default)]
struct Search {
    /// Up to where it has looked.
    at: usize,
    /// Where the line begins that it is in.
    line: usize,
}

impl Search {
    /// One past the blank line that ends the event that `bytes` begin with. A lone `\r` at the end decides nothing yet: a `\n` may follow.
    fn end_of_event(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &bytes[self.at..]) {
            let at = self.at + found;
            let next = match (bytes[at], bytes.get(at + 1)) {
                (b'\r', None) => {
                    self.at = at;
                    return None;
                }
                (b'\r', Some(b'\n')) => at + 2,
                _ => at + 1,
            };
            let is_blank = at == self.line;
            (self.at, self.line) = (next, next);
            if is_blank {
                return Some(next);
            }
        }
        self.at = bytes.len();
        None
    }
}

/// What a batch of whole events becomes.
#[derive(Default)]
struct Batch {
    /// Places to replace.
    edits: Vec<(Range<usize>, String)>,
    /// Up to where it is given out.
    upto: usize,
}

impl Forward {
    pub(super) fn new(rendering: &RenderOptions<'_>) -> Self {
        Self {
            model: Value::from(rendering.model).to_string(),
            rest: BytesMut::new(),
            search: Search::default(),
            held: BytesMut::new(),
            is_started: false,
            open: None,
            has_stopped: false,
            end: None,
            failure: None,
            is_done: false,
            counts: Counts::default(),
            text_bytes: 0,
        }
    }

    /// The whole events that `bytes` complete; what is left over waits.
    fn whole_events(&mut self, bytes: Bytes) -> Result<Bytes, MalformedResponse> {
        let is_fresh = self.rest.is_empty();
        if !is_fresh {
            self.rest.extend_from_slice(&bytes);
        }
        let text: &[u8] = if is_fresh { &bytes } else { &self.rest };
        let mut search = self.search;
        let mut upto = 0;
        while let Some(end) = search.end_of_event(text) {
            upto = end;
        }
        self.search = Search {
            at: search.at - upto,
            line: search.line - upto,
        };
        if text.len() - upto > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        if is_fresh {
            self.rest.extend_from_slice(&bytes[upto..]);
            return Ok(bytes.slice(..upto));
        }
        Ok(self.rest.split_to(upto).freeze())
    }

    /// Looks at every event of `bytes`, up to the good end or the first that is wrong.
    fn look(&mut self, bytes: &Bytes) -> Bytes {
        let mut batch = Batch::default();
        let mut search = Search::default();
        let mut from = 0;
        let mut held_upto = None;
        while self.end.is_none() && from < bytes.len() {
            let end = search.end_of_event(bytes).unwrap_or(bytes.len());
            match self.event(&bytes[from..end], from, &mut batch) {
                Ok(Seen::Passed) => batch.upto = end,
                Ok(Seen::Early) => {
                    batch.upto = end;
                    held_upto = Some(end);
                }
                Ok(Seen::End) => self.end = Some(bytes.slice(from..end)),
                Err(failure) => {
                    self.failure = Some(failure);
                    break;
                }
            }
            from = end;
        }
        self.given(bytes, batch, held_upto)
    }

    fn given(&mut self, bytes: &Bytes, batch: Batch, held_upto: Option<usize>) -> Bytes {
        let kept = bytes.slice(..batch.upto);
        let text = match batch.edits.is_empty() {
            true => kept,
            false => Bytes::from(spliced(&kept, &batch.edits)),
        };
        let is_all_held = held_upto == Some(batch.upto) && self.end.is_none();
        if is_all_held {
            self.held.extend_from_slice(&text);
            return Bytes::new();
        }
        if self.held.is_empty() || text.is_empty() && self.end.is_none() {
            return text;
        }
        let mut all = self.held.split();
        all.extend_from_slice(&text);
        all.freeze()
    }

    /// One event, which begins at `offset` of its batch.
    fn event(
        &mut self,
        event: &[u8],
        offset: usize,
        batch: &mut Batch,
    ) -> Result<Seen, MalformedResponse> {
        let text = std::str::from_utf8(event)
            .map_err(|_| MalformedResponse::Invalid("an event is not UTF-8".to_owned()))?;
        let lines = Lines::of(text);
        let joined;
        let data = match lines.data {
            Some(data) if !lines.has_more_data => data,
            Some(_) => {
                joined = Lines::joined_data(text);
                &joined
            }
            None => return Ok(self.seen()),
        };
        if data.trim().is_empty() || data.trim() == "[DONE]" {
            return Ok(self.seen());
        }
        let seen = parse(data)?;
        if let Some(error) = seen.error {
            return Err(stream_error(error));
        }
        let kind = seen.kind.as_deref().unwrap_or_default();
        if !lines.has_name && !kind.is_empty() {
            // Clients skip events without a name.
            let place = offset..offset;
            batch.edits.push((place, format!("event: {kind}\n")));
        }
        match kind {
            "message_start" => {
                if !lines.has_more_data {
                    let place = offset + span(event, data).start;
                    self.message_start(&seen, data, place, batch);
                }
                return Ok(Seen::Early);
            }
            "ping" => return Ok(self.seen()),
            "message_stop" => return Ok(Seen::End),
            "content_block_start" => self.open = seen.index,
            "content_block_stop" => self.open = None,
            _ => self.delta(&seen),
        }
        self.is_started = true;
        Ok(Seen::Passed)
    }

    /// What belongs to the time that it comes in.
    fn seen(&self) -> Seen {
        match self.is_started {
            true => Seen::Passed,
            false => Seen::Early,
        }
    }

    /// Reads the counts and sets the model's name. `place` is where `data` begins.
    fn message_start(&mut self, seen: &Data<'_>, data: &str, place: usize, batch: &mut Batch) {
        let Some(message) = seen.message else { return };
        let head: Head<'_> = serde_json::from_str(message.get()).unwrap_or_default();
        self.counts
            .overwrite(head.usage.map(Counts::of).unwrap_or_default());
        let members: Result<Members<'_>, _> = serde_json::from_str(message.get());
        let model = members.ok().and_then(|members| members.get("model"));
        if let Some(model) = model.filter(|model| model.get() != self.model) {
            let at = span(data.as_bytes(), model.get());
            let range = place + at.start..place + at.end;
            batch.edits.push((range, self.model.clone()));
        }
    }

    fn delta(&mut self, seen: &Data<'_>) {
        if let Some(usage) = seen.usage {
            self.counts.overwrite(Counts::of(usage));
        }
        let Some(delta) = &seen.delta else { return };
        self.has_stopped |= delta.stop_reason.is_some();
        let texts = [&delta.text, &delta.thinking, &delta.partial_json];
        let lengths = texts.into_iter().flatten().map(|text| text.len() as u64);
        self.text_bytes += lengths.sum::<u64>();
    }
}

/// What an event was.
enum Seen {
    /// One for the client.
    Passed,
    /// One for the client that can wait for the first block.
    Early,
    /// The good end.
    End,
}

/// The lines of one event that matter.
#[derive(Default)]
struct Lines<'a> {
    has_name: bool,
    data: Option<&'a str>,
    has_more_data: bool,
}

impl<'a> Lines<'a> {
    fn of(event: &'a str) -> Self {
        let mut out = Self::default();
        for line in lines(event) {
            if let Some(data) = data_of(line) {
                out.has_more_data |= out.data.is_some();
                out.data = out.data.or(Some(data));
            } else if let Some(name) = line.strip_prefix("event:") {
                out.has_name |= !name.trim().is_empty();
            }
        }
        out
    }

    /// All its data.
    fn joined_data(event: &str) -> String {
        let data: Vec<&str> = lines(event).filter_map(data_of).collect();
        data.join("\n")
    }
}

/// The lines of an event, with empty ones between `\r` and `\n`.
fn lines(event: &str) -> impl Iterator<Item = &str> {
    let event = event.strip_prefix('\u{feff}').unwrap_or(event);
    let mut from = 0;
    let ends = memchr::memchr2_iter(b'\n', b'\r', event.as_bytes());
    ends.chain([event.len()]).map(move |end| {
        let line = &event[from..end];
        from = end + 1;
        line
    })
}

fn data_of(line: &str) -> Option<&str> {
    let data = line.strip_prefix("data:")?;
    Some(data.strip_prefix(' ').unwrap_or(data))
}

impl StreamForwarder for Forward {
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
        let events = self.whole_events(bytes)?;
        let now = self.look(&events);
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
        if self.end.is_none() && !self.rest.is_empty() {
            // An event without its blank line still counts, where it is the end.
            let rest = std::mem::take(&mut self.rest).freeze();
            let mut batch = Batch::default();
            if let Seen::End = self.event(&rest, 0, &mut batch)? {
                self.end = Some(Bytes::new());
            }
        }
        match (&self.end, self.has_stopped) {
            (Some(end), _) if !end.is_empty() => Ok(()),
            (Some(_), _) | (None, true) => {
                let mut end = Vec::new();
                put_message_stop(&mut end);
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
        if self.held.is_empty() {
            return end;
        }
        let mut all = self.held.split();
        all.extend_from_slice(&end);
        all.freeze()
    }

    fn usage(&self) -> Option<Usage> {
        self.counts.usage()
    }

    fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if self.is_done || self.end.is_some() {
            return;
        }
        // A client that waits sees at least that the message has begun.
        out.extend_from_slice(&self.held.split());
        if self.is_started || !out.is_empty() {
            self.is_started = true;
            put_ping(out);
        }
    }

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_done, true) {
            return;
        }
        self.held.clear();
        if let Some(index) = self.open.take() {
            put_stop(out, index);
        }
        put_error(out, error);
    }
}
