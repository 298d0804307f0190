//! A stream passed on: whole events as slices of what came, the end held back.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use super::super::error;
use super::super::stream_write::Framing;
use super::super::wire::{Scan, splice_model};
use super::text_of;
use crate::error::{Garbled, WireError};
use crate::format::{Forwarded, Rendering, StreamForward};
use crate::hub::Usage;
use crate::sse::EVENT_MAX;

/// Passes one stream on.
pub(in super::super) struct Stream {
    model: String,
    array: bool,
    framing: Framing,
    /// The beginning of an event that is not whole.
    tail: BytesMut,
    /// How much of it is known to hold no end.
    searched: usize,
    /// The event that finishes, and what came behind it: their JSON.
    held: Vec<Vec<u8>>,
    /// Passed on too late: what the body's end completed.
    late: Bytes,
    usage: Option<Usage>,
    text_bytes: u64,
    /// Each reply that began, and whether it has finished.
    choices: BTreeMap<u32, bool>,
    blocked: bool,
    /// An error behind events that were good.
    failed: Option<Garbled>,
}

impl Stream {
    pub(in super::super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            model: rendering.model.to_owned(),
            array: rendering.json_array,
            framing: Framing::new(rendering.json_array),
            tail: BytesMut::new(),
            searched: 0,
            held: Vec::new(),
            late: Bytes::new(),
            usage: None,
            text_bytes: 0,
            choices: BTreeMap::new(),
            blocked: false,
            failed: None,
        }
    }

    /// The bytes to split into events: what was kept and what came; none while not even one event is whole.
    fn with_tail(&mut self, bytes: Bytes) -> Result<Option<Bytes>, Garbled> {
        if self.tail.is_empty() {
            return Ok(Some(bytes));
        }
        self.tail.extend_from_slice(&bytes);
        if event_end(&self.tail, self.searched).is_some() {
            self.searched = 0;
            return Ok(Some(self.tail.split().freeze()));
        }
        self.keep_tail()?;
        Ok(None)
    }

    fn keep_tail(&mut self) -> Result<(), Garbled> {
        if self.tail.len() > EVENT_MAX {
            return Err(Garbled::TooLarge(EVENT_MAX));
        }
        // An end may be cut in its middle.
        self.searched = self.tail.len().saturating_sub(3);
        Ok(())
    }

    /// Takes one event, `chunk[range]`.
    fn event(&mut self, range: Range<usize>, out: &mut Output<'_>) -> Result<(), Garbled> {
        let raw = &out.chunk[range.clone()];
        let mut joined = Vec::new();
        let (json, regular) = match single_line(raw) {
            Some(json) => (json, !self.array),
            None => {
                join_data(raw, &mut joined);
                (joined.as_slice(), false)
            }
        };
        let text = text_of(json)?;
        if text.trim().is_empty() || text.trim() == "[DONE]" {
            return Ok(());
        }
        let scan = Scan::of(text)?;
        if let Some(usage) = &scan.usage_metadata {
            self.usage = Some(usage.usage());
        }
        self.text_bytes += scan.text_bytes();
        let place = self.place(&scan);
        let spliced = splice_model(json, &scan, &self.model);
        if place != Place::Behind && !self.held.is_empty() {
            // Not the end yet: old models say that they are done on every piece.
            self.release(out.made());
        }
        if place == Place::Now && regular && spliced.is_none() {
            out.pass(range);
            return Ok(());
        }
        let mut json = match spliced {
            None => json.to_vec(),
            Some((before, name, after)) => [before, &name, after].concat(),
        };
        // It is JSON, so line breaks stand between tokens, where a space is as good.
        json.iter_mut()
            .filter(|byte| matches!(byte, b'\n' | b'\r'))
            .for_each(|byte| *byte = b' ');
        match place {
            Place::Now => self.framing.whole(&json, out.made()),
            Place::End | Place::Behind => self.held.push(json),
        }
        if self.held.iter().map(Vec::len).sum::<usize>() > EVENT_MAX {
            return Err(Garbled::TooLarge(EVENT_MAX));
        }
        Ok(())
    }

    /// Writes what is held back.
    fn release(&mut self, into: &mut Vec<u8>) {
        for json in self.held.drain(..) {
            self.framing.whole(&json, into);
        }
    }

    /// Where an event belongs.
    fn place(&mut self, scan: &Scan<'_>) -> Place {
        let (mut ends, mut goes_on) = (scan.is_blocked(), false);
        self.blocked |= ends;
        for (index, finishes, has_content) in scan.candidates() {
            let finished = self.choices.entry(index).or_default();
            ends |= finishes;
            goes_on |= has_content && !*finished;
            *finished |= finishes;
        }
        match (ends, goes_on) {
            (true, _) => Place::End,
            (false, false) if !self.held.is_empty() => Place::Behind,
            (false, _) => Place::Now,
        }
    }
}

#[derive(PartialEq, Clone, Copy)]
enum Place {
    /// Passed on at once.
    Now,
    /// Held back in place of what was held back before.
    End,
    /// Held back behind what is.
    Behind,
}

impl StreamForward for Stream {
    /// `ended` is never said: only the end of the body tells which finish was the last.
    fn push(&mut self, bytes: Bytes) -> Result<Forwarded, Garbled> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let Some(chunk) = self.with_tail(bytes)? else {
            return Ok(Forwarded::default());
        };
        let mut out = Output::of(&chunk);
        let mut at = 0;
        loop {
            at += empty_lines(&chunk[at..]);
            let Some(length) = event_end(&chunk[at..], 0) else {
                break;
            };
            match self.event(at..at + length, &mut out) {
                Ok(()) => at += length,
                // What was good goes out first; before any of it, another channel can be tried.
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
        let now = out.finish();
        self.tail.extend_from_slice(&chunk[at..]);
        self.keep_tail()?;
        Ok(Forwarded { now, ended: false })
    }

    fn finish(&mut self) -> Result<(), Garbled> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut last = std::mem::take(&mut self.tail);
        if !last.is_empty() {
            last.extend_from_slice(b"\n\n");
            let chunk = last.freeze();
            let mut out = Output::of(&chunk);
            self.event(0..chunk.len(), &mut out)?;
            // Too late for `push`: it goes before what is held back.
            self.late = out.finish();
        }
        let finished = !self.choices.is_empty() && self.choices.values().all(|finished| *finished);
        match finished || self.blocked {
            true => Ok(()),
            false => Err(Garbled::BrokeOff),
        }
    }

    fn end(&mut self) -> Bytes {
        if self.framing.closed {
            return Bytes::new();
        }
        let mut out = self.late.to_vec();
        self.release(&mut out);
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

    fn error(&mut self, wire: &WireError, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        // The end that was held back never comes.
        self.held.clear();
        self.framing
            .whole(error::body(wire).to_string().as_bytes(), out);
        self.framing.close(out);
    }
}

/// What a chunk gives: one slice of it where its events stand side by side, else a copy.
struct Output<'c> {
    chunk: &'c Bytes,
    run: Range<usize>,
    made: Vec<u8>,
}

impl<'c> Output<'c> {
    fn of(chunk: &'c Bytes) -> Self {
        Self {
            chunk,
            run: 0..0,
            made: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.run.is_empty() && self.made.is_empty()
    }

    /// Passes a part of the chunk on.
    fn pass(&mut self, range: Range<usize>) {
        if self.is_empty() {
            self.run = range;
        } else if self.run.end == range.start && !self.run.is_empty() {
            self.run.end = range.end;
        } else {
            let chunk = self.chunk;
            self.made().extend_from_slice(&chunk[range]);
        }
    }

    /// Where bytes go that are not of the chunk.
    fn made(&mut self) -> &mut Vec<u8> {
        let run = std::mem::replace(&mut self.run, 0..0);
        self.made.extend_from_slice(&self.chunk[run]);
        &mut self.made
    }

    fn finish(self) -> Bytes {
        match self.made.is_empty() {
            true => self.chunk.slice(self.run),
            false => {
                let mut out = self;
                Bytes::from(std::mem::take(out.made()))
            }
        }
    }
}

/// The JSON of an event that is one line `data: JSON` and an empty one.
fn single_line(raw: &[u8]) -> Option<&[u8]> {
    let end = memchr2(b'\n', b'\r', raw)?;
    let is_all = raw[end..].iter().all(|byte| matches!(byte, b'\n' | b'\r'));
    raw[..end].strip_prefix(b"data: ").filter(|_| is_all)
}

/// The data of an event of any lines.
fn join_data(raw: &[u8], into: &mut Vec<u8>) {
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

/// How many bytes of empty lines stand at the beginning.
fn empty_lines(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| matches!(byte, b'\n' | b'\r'))
        .count()
}

/// The end of the first event, its empty line included. `from`: bytes that are known to hold none.
fn event_end(bytes: &[u8], from: usize) -> Option<usize> {
    let line_end = |at: usize| match bytes.get(at)? {
        b'\n' => Some(at + 1),
        // Whether a `\n` belongs to it, the next byte tells.
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
