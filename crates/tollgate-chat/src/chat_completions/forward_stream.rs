//! A stream passed on between equal formats.
//!
//! Whole events go out as they came, as slices of what came where an event is not split over chunks. Changed are only the model's name
//! where it differs, usage chunks that the client did not ask for (left out) or that have no `choices` (given an
//! empty list), and events with empty data, which SDKs cannot parse. `[DONE]` is held back.

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::facts::{Facts, look};
use super::forward::span_of;
use super::stream_write::write_error_event;
use crate::error::{Garbled, WireError};
use crate::format::{Forwarded, Rendering, StreamForward};
use crate::hub::Usage;
use crate::sse::EVENT_MAX;

/// Passes one stream on.
pub(super) struct Forward {
    /// The client's name of the model, quoted.
    model: String,
    include_usage: bool,
    /// An event that is not whole yet.
    tail: Vec<u8>,
    usage: Option<Usage>,
    text_bytes: u64,
    begun: u128,
    finished: u128,
    ended: bool,
    closed: bool,
    /// The last event, where its blank line never came.
    last: Vec<u8>,
    /// What went wrong behind events that were still good.
    failed: Option<Garbled>,
}

/// What becomes of an event.
enum Fate {
    /// It goes out as it is.
    Pass,
    /// It goes out with these pieces of it replaced, in order.
    Patch(Vec<(Range<usize>, &'static [u8])>),
    /// It goes out as these bytes.
    Replace(Vec<u8>),
    /// It is left out.
    Omit,
    /// It is the end.
    Done,
}

/// Stands in a patch for the client's name of the model.
const MODEL: &[u8] = b"";

impl Forward {
    /// A stream that is to look like that.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            model: Value::from(rendering.model).to_string(),
            include_usage: rendering.include_usage,
            tail: Vec::new(),
            usage: None,
            text_bytes: 0,
            begun: 0,
            finished: 0,
            ended: false,
            closed: false,
            last: Vec::new(),
            failed: None,
        }
    }

    /// The events of `bytes`, which are whole, as they go out.
    fn events(&mut self, bytes: &Bytes) -> Result<Bytes, Garbled> {
        // As long as nothing changes, what goes out is a slice.
        let mut same = 0..0;
        let mut changed: Option<Vec<u8>> = None;
        let mut at = 0;
        while at < bytes.len() && !self.ended {
            let end = at + event_end(&bytes[at..]).unwrap_or(bytes.len() - at);
            let fate = match self.fate(&bytes[at..end]) {
                Ok(fate) => fate,
                // Words that were good go out first; before any, another channel can be tried.
                Err(error) if self.text_bytes > 0 && self.failed.is_none() => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            if matches!(fate, Fate::Pass)
                && changed.is_none()
                && (same.is_empty() || same.end == at)
            {
                same = if same.is_empty() {
                    at..end
                } else {
                    same.start..end
                };
            } else if !matches!(fate, Fate::Omit | Fate::Done) {
                let out = changed.get_or_insert_with(|| {
                    let mut out = Vec::with_capacity(bytes.len() + 64);
                    out.extend_from_slice(&bytes[same.clone()]);
                    out
                });
                self.put(fate, &bytes[at..end], out);
            } else if matches!(fate, Fate::Done) {
                self.ended = true;
            }
            at = end;
        }
        Ok(changed.map_or_else(|| bytes.slice(same), Bytes::from))
    }

    /// Adds an event to what goes out.
    fn put(&self, fate: Fate, event: &[u8], out: &mut Vec<u8>) {
        match fate {
            Fate::Pass => out.extend_from_slice(event),
            Fate::Replace(new) => out.extend(new),
            Fate::Patch(pieces) => {
                let mut at = 0;
                for (range, new) in pieces {
                    out.extend_from_slice(&event[at..range.start]);
                    out.extend_from_slice(if new == MODEL {
                        self.model.as_bytes()
                    } else {
                        new
                    });
                    at = range.end;
                }
                out.extend_from_slice(&event[at..]);
            }
            Fate::Omit | Fate::Done => {}
        }
    }

    fn fate(&mut self, event: &[u8]) -> Result<Fate, Garbled> {
        let range = match data_of(event) {
            Data::None => return Ok(Fate::Pass),
            Data::Empty => return Ok(Fate::Omit),
            Data::One(range) => range,
            // Lines of one JSON text: whole again as one line.
            Data::Many(joined) => {
                let fate = self.fate(&joined)?;
                let mut out = Vec::with_capacity(joined.len());
                self.put(fate, &joined, &mut out);
                return Ok(Fate::Replace(out));
            }
        };
        let data = &event[range.clone()];
        if data.trim_ascii() == b"[DONE]" {
            return Ok(Fate::Done);
        }
        let facts = look(data)?;
        self.begun |= facts.begun;
        self.finished |= facts.finished;
        self.text_bytes += facts.text_bytes;
        self.usage = facts.usage.or(self.usage);
        let is_usage_chunk = facts.usage.is_some() && facts.choices.unwrap_or(0) == 0;
        if is_usage_chunk && !self.include_usage {
            return Ok(Fate::Omit);
        }
        Ok(self.repaired(data, range.start, &facts))
    }

    /// `offset` is where `data` begins in its event.
    fn repaired(&self, data: &[u8], offset: usize, facts: &Facts<'_>) -> Fate {
        let mut pieces: Vec<(Range<usize>, &'static [u8])> = Vec::new();
        if facts.choices.is_none() && facts.usage.is_some() {
            let inside = data
                .iter()
                .position(|byte| *byte == b'{')
                .map_or(0, |open| open + 1);
            pieces.push((offset + inside..offset + inside, br#""choices":[],"#));
        }
        if let Some(there) = facts.model.filter(|there| *there != self.model) {
            let span = span_of(data, there);
            pieces.push((offset + span.start..offset + span.end, MODEL));
        }
        if pieces.is_empty() {
            return Fate::Pass;
        }
        Fate::Patch(pieces)
    }
}

impl StreamForward for Forward {
    fn push(&mut self, bytes: Bytes) -> Result<Forwarded, Garbled> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut now = Bytes::new();
        if !self.ended
            && !self.closed
            && let Some(whole) = self.whole_events(bytes)?
        {
            now = self.events(&whole)?;
        }
        Ok(Forwarded {
            now,
            ended: self.ended,
        })
    }

    fn finish(&mut self) -> Result<(), Garbled> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if !self.ended && !self.tail.is_empty() {
            // A last event without its blank line.
            let last = std::mem::take(&mut self.tail);
            self.last = self.events(&last.into())?.to_vec();
        }
        self.ended |= self.begun != 0 && self.begun & !self.finished == 0;
        if self.ended {
            Ok(())
        } else {
            Err(Garbled::BrokeOff)
        }
    }

    fn end(&mut self) -> Bytes {
        if std::mem::replace(&mut self.closed, true) {
            return Bytes::new();
        }
        const DONE: &[u8] = b"data: [DONE]\n\n";
        match std::mem::take(&mut self.last) {
            last if last.is_empty() => Bytes::from_static(DONE),
            last => [last.as_slice(), b"\n\n", DONE].concat().into(),
        }
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.closed {
            out.extend_from_slice(b": keep-alive\n\n");
        }
    }

    fn error(&mut self, error: &WireError, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.closed, true) {
            write_error_event(error, out);
        }
    }
}

impl Forward {
    /// What is whole now; the rest is kept.
    fn whole_events(&mut self, bytes: Bytes) -> Result<Option<Bytes>, Garbled> {
        let whole = if self.tail.is_empty() {
            let end = last_event_end(&bytes, 0);
            self.tail.extend_from_slice(&bytes[end..]);
            bytes.slice(..end)
        } else {
            let seen = self.tail.len();
            self.tail.extend_from_slice(&bytes);
            let end = last_event_end(&self.tail, seen.saturating_sub(3));
            let rest = self.tail.split_off(end);
            std::mem::replace(&mut self.tail, rest).into()
        };
        if self.tail.len() > EVENT_MAX {
            return Err(Garbled::TooLarge(EVENT_MAX));
        }
        Ok(Some(whole).filter(|whole: &Bytes| !whole.is_empty()))
    }
}

/// The length of the first event, its blank line included; none where it is not whole.
fn event_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    // An event may not begin with its end: blank lines before it are its own.
    let mut has_line = false;
    loop {
        let length = memchr::memchr2(b'\n', b'\r', &bytes[at..])?;
        let line_end = at + length;
        let next = match &bytes[line_end..] {
            [b'\r', b'\n', ..] => line_end + 2,
            _ => line_end + 1,
        };
        if length == 0 && (has_line || next == bytes.len()) {
            return Some(next);
        }
        has_line |= length > 0;
        at = next;
    }
}

/// Where the last whole event ends, looking from `from` on; 0 where none does.
fn last_event_end(bytes: &[u8], from: usize) -> usize {
    let ends = memchr::memrchr2_iter(b'\n', b'\r', &bytes[from..]);
    for at in ends.map(|at| at + from) {
        // A `\n` that belongs to it may still come.
        if bytes[at] == b'\r' && at + 1 == bytes.len() {
            continue;
        }
        let before = match bytes[..at] {
            // `\r\n` is one line end.
            [.., b'\r'] if bytes[at] == b'\n' => at.checked_sub(2),
            _ => at.checked_sub(1),
        };
        if before.is_some_and(|before| matches!(bytes[before], b'\n' | b'\r')) {
            return at + 1;
        }
    }
    0
}

enum Data {
    /// Comments and other lines only.
    None,
    /// `data:` without anything.
    Empty,
    /// One line: its value.
    One(Range<usize>),
    /// Several lines, as one event of one line.
    Many(Vec<u8>),
}

fn data_of(event: &[u8]) -> Data {
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < event.len() {
        let end =
            memchr::memchr2(b'\n', b'\r', &event[at..]).map_or(event.len(), |length| at + length);
        let line = &event[at..end];
        let line_start = at
            + if line.starts_with(b"\xef\xbb\xbf") {
                3
            } else {
                0
            };
        if let Some(value) = event[line_start..end].strip_prefix(b"data:") {
            let space = usize::from(value.first() == Some(&b' '));
            found.push(end - value.len() + space..end);
        }
        at = end + 1;
    }
    match found.as_slice() {
        [] => Data::None,
        lines if lines.iter().all(Range::is_empty) => Data::Empty,
        [one] => Data::One(one.clone()),
        lines => {
            let mut joined = b"data: ".to_vec();
            for line in lines {
                joined.extend_from_slice(&event[line.clone()]);
                joined.push(b' ');
            }
            joined.extend_from_slice(b"\n\n");
            Data::Many(joined)
        }
    }
}
