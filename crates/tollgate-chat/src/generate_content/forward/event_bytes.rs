//! Splits a byte stream into SSE events, and joins those that are forwarded, without copying where
//! possible.

use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;

/// The output of one push: a slice of the chunk if its events are adjacent and unchanged, otherwise
/// a copy.
pub(crate) struct EventOutput<'c> {
    pub(crate) chunk: &'c Bytes,
    run: Range<usize>,
    copied: Vec<u8>,
}

impl<'c> EventOutput<'c> {
    pub(crate) fn new(chunk: &'c Bytes) -> Self {
        Self {
            chunk,
            run: 0..0,
            copied: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty() && self.copied.is_empty()
    }

    /// Adds a range of the chunk.
    pub(crate) fn push_range(&mut self, range: Range<usize>) {
        if self.is_empty() {
            self.run = range;
        } else if self.run.end == range.start && !self.run.is_empty() {
            self.run.end = range.end;
        } else {
            let chunk = self.chunk;
            self.copied().extend_from_slice(&chunk[range]);
        }
    }

    /// The buffer for bytes that are not from the chunk.
    pub(crate) fn copied(&mut self) -> &mut Vec<u8> {
        let run = std::mem::replace(&mut self.run, 0..0);
        self.copied.extend_from_slice(&self.chunk[run]);
        &mut self.copied
    }

    pub(crate) fn finish(self) -> Bytes {
        match self.copied.is_empty() {
            true => self.chunk.slice(self.run),
            false => {
                let mut out = self;
                Bytes::from(std::mem::take(out.copied()))
            }
        }
    }
}

/// The JSON of an event that is just `data: JSON` and an empty line.
pub(crate) fn single_line_json(raw: &[u8]) -> Option<&[u8]> {
    let end = memchr2(b'\n', b'\r', raw)?;
    let is_all = raw[end..].iter().all(|byte| matches!(byte, b'\n' | b'\r'));
    raw[..end].strip_prefix(b"data: ").filter(|_| is_all)
}

/// Joins the data lines of any event.
pub(crate) fn join_data(raw: &[u8], into: &mut Vec<u8>) {
    let raw = raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(raw);
    for line in raw.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let Some(data) = line.strip_prefix(b"data:") else {
            continue;
        };
        if !into.is_empty() {
            into.push(b'\n');
        }
        into.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
    }
}

/// The number of line break bytes at the beginning.
pub(crate) fn leading_newlines(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| matches!(byte, b'\n' | b'\r'))
        .count()
}

/// The end of the first event, its empty line included. The first `from` bytes are known to hold no
/// end.
pub(crate) fn find_event_end(bytes: &[u8], from: usize) -> Option<usize> {
    let line_end = |at: usize| match bytes.get(at)? {
        b'\n' => Some(at + 1),
        // The next byte decides whether the line ends with `\r` or `\r\n`.
        b'\r' => Some(at + 1 + usize::from(*bytes.get(at + 1)? == b'\n')),
        _ => None,
    };
    let mut at = from;
    loop {
        at += memchr2(b'\n', b'\r', bytes.get(at..)?)?;
        let next = line_end(at)?;
        if matches!(bytes.get(next)?, b'\n' | b'\r') {
            return line_end(next);
        }
        at = next;
    }
}
