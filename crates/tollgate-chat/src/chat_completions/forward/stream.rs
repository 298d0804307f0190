//! Forwards a stream.
//!
//! Complete events are sent unchanged, as slices of the upstream's chunk unless an event is split over chunks. The only changes: the model's name is
//! replaced if it differs; usage that the client did not request is left out, or `null` in a chunk with content; usage chunks without `choices` get
//! an empty list; the operator's costs are removed from usage; several `data` lines of an event are joined into one; and events with empty data are
//! left out, because SDKs cannot parse them. `[DONE]` is held back.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::response::span_of;
use super::response_summary::{ResponseSummary, find_usage_text, summarize_response};
use crate::chat_completions::stream_write::write_error_event;
use crate::error::{ErrorBody, MalformedResponse};
use crate::format::{ForwardedChunk, RenderOptions, StreamForwarder};
use crate::hub::Usage;
use crate::operator_costs::{may_have_costs, without_costs};
use crate::sse::MAX_EVENT_BYTES;

/// Passes one stream on.
pub(in crate::chat_completions) struct Forwarder {
    /// The client's name of the model, quoted.
    model: String,
    include_usage: bool,
    /// An incomplete event.
    tail: Vec<u8>,
    usage: Option<Usage>,
    text_bytes: u64,
    /// Choices seen, as a bit per index.
    present: u128,
    finished: u128,
    ended: bool,
    closed: bool,
    /// The last event, if it has no blank line.
    last: Vec<u8>,
    /// An error that occurred after events which are sent first.
    failed: Option<MalformedResponse>,
}

/// What happens to an event.
enum Action {
    /// It is sent unchanged.
    Pass,
    /// It is sent with these ranges replaced, in order.
    Patch(Vec<(Range<usize>, Cow<'static, str>)>),
    /// These bytes are sent instead.
    Replace(Vec<u8>),
    /// It is left out.
    Omit,
    /// It is the successful end.
    End,
}

/// Placeholder in a patch for the client's name of the model.
const MODEL: Cow<'static, str> = Cow::Borrowed("");

impl Forwarder {
    /// A forwarder for one stream.
    pub(in crate::chat_completions) fn new(options: &RenderOptions<'_>) -> Self {
        Self {
            model: Value::from(options.model).to_string(),
            include_usage: options.include_usage,
            tail: Vec::new(),
            usage: None,
            text_bytes: 0,
            present: 0,
            finished: 0,
            ended: false,
            closed: false,
            last: Vec::new(),
            failed: None,
        }
    }

    /// Forwards the events of `bytes`, which must be complete.
    fn forward_events(&mut self, bytes: &Bytes) -> Result<Bytes, MalformedResponse> {
        // As long as nothing changes, the output is one slice of `bytes`.
        let mut unchanged = 0..0;
        let mut changed: Option<Vec<u8>> = None;
        let mut at = 0;
        while at < bytes.len() && !self.ended {
            let end = at + event_end(&bytes[at..]).unwrap_or(bytes.len() - at);
            let action = match self.choose_action(&bytes[at..end]) {
                Ok(action) => action,
                // Text before the error is sent first. Without any, the request can fail over to another channel.
                Err(error) if self.text_bytes > 0 && self.failed.is_none() => {
                    self.failed = Some(error);
                    break;
                }
                Err(error) => return Err(error),
            };
            if matches!(action, Action::Pass)
                && changed.is_none()
                && (unchanged.is_empty() || unchanged.end == at)
            {
                unchanged = if unchanged.is_empty() {
                    at..end
                } else {
                    unchanged.start..end
                };
            } else if !matches!(action, Action::Omit | Action::End) {
                let out = changed.get_or_insert_with(|| {
                    let mut out = Vec::with_capacity(bytes.len() + 64);
                    out.extend_from_slice(&bytes[unchanged.clone()]);
                    out
                });
                self.write_event(action, &bytes[at..end], out);
            } else if matches!(action, Action::End) {
                self.ended = true;
            }
            at = end;
        }
        Ok(changed.map_or_else(|| bytes.slice(unchanged), Bytes::from))
    }

    /// Appends an event to the output.
    fn write_event(&self, action: Action, event: &[u8], out: &mut Vec<u8>) {
        match action {
            Action::Pass => out.extend_from_slice(event),
            Action::Replace(new) => out.extend(new),
            Action::Patch(pieces) => {
                let mut at = 0;
                for (range, new) in pieces {
                    out.extend_from_slice(&event[at..range.start]);
                    let is_model = new == MODEL;
                    let new = if is_model { &self.model } else { &*new };
                    out.extend_from_slice(new.as_bytes());
                    at = range.end;
                }
                out.extend_from_slice(&event[at..]);
            }
            Action::Omit | Action::End => {}
        }
    }

    fn choose_action(&mut self, event: &[u8]) -> Result<Action, MalformedResponse> {
        let range = match parse_data(event) {
            Data::None => return Ok(Action::Pass),
            Data::Empty => return Ok(Action::Omit),
            Data::One(range) => range,
            // Several lines of one JSON text are joined into one line.
            Data::Many(joined) => {
                let action = self.choose_action(&joined)?;
                let mut out = Vec::with_capacity(joined.len());
                self.write_event(action, &joined, &mut out);
                return Ok(Action::Replace(out));
            }
        };
        let data = &event[range.clone()];
        if data.trim_ascii() == b"[DONE]" {
            return Ok(Action::End);
        }
        let summary = summarize_response(data)?;
        // Some servers' usage chunks, sent after the finish reason, have choices with empty deltas.
        let is_behind_finish = summary.present & !self.finished == 0 && summary.text_bytes == 0;
        self.present |= summary.present;
        self.finished |= summary.finished;
        self.text_bytes += summary.text_bytes;
        self.usage = summary.usage.or(self.usage);
        if summary.usage.is_some() && is_behind_finish && !self.include_usage {
            return Ok(Action::Omit);
        }
        Ok(self.patch_event(data, range.start, &summary))
    }

    /// Replaces what must change in `data`, which begins at `offset` of its event.
    fn patch_event(&self, data: &[u8], offset: usize, summary: &ResponseSummary<'_>) -> Action {
        let mut pieces: Vec<(Range<usize>, Cow<'static, str>)> = Vec::new();
        if summary.choices.is_none() && summary.usage.is_some() {
            let inside = data
                .iter()
                .position(|byte| *byte == b'{')
                .map_or(0, |open| open + 1);
            pieces.push((offset + inside..offset + inside, r#""choices":[],"#.into()));
        }
        if let Some(current) = summary.model.filter(|current| *current != self.model) {
            let span = span_of(data, current);
            pieces.push((offset + span.start..offset + span.end, MODEL));
        }
        let hides_usage = summary.usage.is_some() && !self.include_usage;
        if (hides_usage || may_have_costs(data))
            && let Some(usage) = find_usage_text(data)
        {
            let span = span_of(data, usage);
            let new = match hides_usage {
                true => Some("null".into()),
                false => without_costs(usage).map(Cow::Owned),
            };
            pieces.extend(new.map(|new| (offset + span.start..offset + span.end, new)));
        }
        if pieces.is_empty() {
            return Action::Pass;
        }
        pieces.sort_by_key(|(range, _)| range.start);
        Action::Patch(pieces)
    }
}

impl StreamForwarder for Forwarder {
    fn push(&mut self, bytes: Bytes) -> Result<ForwardedChunk, MalformedResponse> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut now = Bytes::new();
        if !self.ended
            && !self.closed
            && let Some(complete) = self.take_complete_events(bytes)?
        {
            now = self.forward_events(&complete)?;
        }
        Ok(ForwardedChunk {
            bytes: now,
            ended: self.ended,
        })
    }

    fn finish(&mut self) -> Result<(), MalformedResponse> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if !self.ended && !self.tail.is_empty() {
            // A last event without its blank line.
            let last = std::mem::take(&mut self.tail);
            self.last = self.forward_events(&last.into())?.to_vec();
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
        }
        self.ended |= self.present != 0 && self.present & !self.finished == 0;
        if self.ended {
            Ok(())
        } else {
            Err(MalformedResponse::Truncated)
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

    fn error(&mut self, error: &ErrorBody, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.closed, true) {
            write_error_event(error, out);
        }
    }
}

impl Forwarder {
    /// The complete events; the rest is kept. `None` if there are none.
    fn take_complete_events(&mut self, bytes: Bytes) -> Result<Option<Bytes>, MalformedResponse> {
        let complete = if self.tail.is_empty() {
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
        if self.tail.len() > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        Ok(Some(complete).filter(|complete: &Bytes| !complete.is_empty()))
    }
}

/// The length of the first event including its blank line. `None` if the event is incomplete.
fn event_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    // Blank lines before an event are part of it.
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

/// The end of the last complete event, searching from `from`; 0 if there is none.
fn last_event_end(bytes: &[u8], from: usize) -> usize {
    let ends = memchr::memrchr2_iter(b'\n', b'\r', &bytes[from..]);
    for at in ends.map(|at| at + from) {
        // A `\n` that belongs to it may follow in the next chunk.
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

/// The `data` lines of an event.
enum Data {
    /// No `data` line: only comments and other lines.
    None,
    /// `data:` without a value.
    Empty,
    /// One line: the range of its value.
    One(Range<usize>),
    /// Several lines, as an event with one line.
    Many(Vec<u8>),
}

fn parse_data(event: &[u8]) -> Data {
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
