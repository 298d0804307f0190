//! Splits a byte stream into complete SSE events, and joins those that are passed on, without copying where possible.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use crate::error::MalformedResponse;
use crate::sse::MAX_EVENT_BYTES;

/// The data of an event, its lines joined. `None` if it has no data line.
pub(crate) fn event_data(event: &[u8]) -> Result<Option<Cow<'_, str>>, MalformedResponse> {
    let mut data: Option<Cow<'_, str>> = None;
    let event = event.strip_prefix(b"\xef\xbb\xbf").unwrap_or(event);
    for line in event.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let Some(line) = line.strip_prefix(b"data:") else {
            continue;
        };
        let line = std::str::from_utf8(line)
            .map_err(|_| MalformedResponse::Invalid("a line is not UTF-8".to_owned()))?;
        let line = line.strip_prefix(' ').unwrap_or(line);
        data = Some(match data {
            None => Cow::Borrowed(line),
            Some(before) => Cow::Owned(format!("{before}\n{line}")),
        });
    }
    Ok(data)
}

/// The output of one push: consecutive ranges of the buffer become one slice without a copy.
pub(crate) struct OutputChunks<'a> {
    buffer: &'a Bytes,
    run: Range<usize>,
    list: Vec<Bytes>,
}

impl<'a> OutputChunks<'a> {
    pub(crate) fn new(buffer: &'a Bytes) -> Self {
        Self {
            buffer,
            run: 0..0,
            list: Vec::new(),
        }
    }

    pub(crate) fn push_range(&mut self, span: Range<usize>) {
        if self.run.end != span.start {
            self.close_run();
            self.run.start = span.start;
        }
        self.run.end = span.end;
    }

    pub(crate) fn push_bytes(&mut self, piece: Bytes) {
        self.close_run();
        self.list.push(piece);
    }

    pub(crate) fn close_run(&mut self) {
        if !self.run.is_empty() {
            self.list.push(self.buffer.slice(self.run.clone()));
        }
        self.run = 0..0;
    }

    pub(crate) fn concat(mut self) -> Bytes {
        self.close_run();
        match self.list.len() {
            0 => Bytes::new(),
            1 => self.list.remove(0),
            _ => Bytes::from(self.list.concat()),
        }
    }
}

/// Splits bytes after the blank lines that end events. Keeps at most one incomplete event.
#[derive(Default)]
pub(crate) struct EventSplitter {
    tail: BytesMut,
    search: EventEndSearch,
}

/// The part of the incomplete event that has been searched for its end.
#[derive(Default, Clone, Copy)]
struct EventEndSearch {
    /// Start of its last line.
    line: usize,
    /// End of the searched bytes.
    searched: usize,
}

impl EventSplitter {
    /// Adds bytes. Returns a buffer that begins with an event, and the end of each complete event
    /// in it; bytes after the last end are kept for the next push.
    pub(crate) fn push(&mut self, bytes: Bytes) -> Result<(Bytes, Vec<usize>), MalformedResponse> {
        if self.tail.is_empty() {
            let ends = self.search.find_event_ends(&bytes);
            let start = self.advance_past(&ends);
            self.tail.extend_from_slice(&bytes[start..]);
            return self.check_size(bytes, ends);
        }
        self.tail.extend_from_slice(&bytes);
        let ends = self.search.find_event_ends(&self.tail);
        let start = self.advance_past(&ends);
        let events = self.tail.split_to(start).freeze();
        self.check_size(events, ends)
    }

    pub(crate) fn check_size(
        &self,
        events: Bytes,
        ends: Vec<usize>,
    ) -> Result<(Bytes, Vec<usize>), MalformedResponse> {
        match self.tail.len() > MAX_EVENT_BYTES {
            true => Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES)),
            false => Ok((events, ends)),
        }
    }

    /// Moves the search to the position after the last of `ends` and returns that position.
    pub(crate) fn advance_past(&mut self, ends: &[usize]) -> usize {
        let start = ends.last().copied().unwrap_or(0);
        self.search.line -= start;
        self.search.searched -= start;
        start
    }

    pub(crate) fn take_rest(&mut self) -> Bytes {
        self.search = EventEndSearch::default();
        self.tail.split().freeze()
    }
}

impl EventEndSearch {
    /// The ends of all events in `bytes`, resuming where the last search stopped.
    pub(crate) fn find_event_ends(&mut self, bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        while let Some(at) = memchr2(b'\n', b'\r', &bytes[self.searched..]) {
            let at = self.searched + at;
            let is_blank = at == self.line;
            let next = bytes.get(at + 1);
            if bytes[at] == b'\r' && next.is_none() && !is_blank {
                // This may be the first half of `\r\n`: decide when the next byte arrives.
                self.searched = at;
                return ends;
            }
            let is_pair = bytes[at] == b'\r' && next == Some(&b'\n');
            self.line = at + 1 + usize::from(is_pair);
            self.searched = self.line;
            if is_blank {
                ends.push(self.line);
            }
        }
        self.searched = bytes.len();
        ends
    }
}
