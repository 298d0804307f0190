//! A stream passed on between equal formats.
//!
//! Whole events at a time, as slices of what came. Only events that hold a response object are looked into: for the model's name,
//! and at the end for usage. The events that open a stream are held until something follows them, so that a failure right
//! after them can still be answered by another upstream.

use std::borrow::Cow;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::emit::{KEEP_ALIVE, emit};
use super::error::{failure, write_failure};
use super::forward::{Edits, TextBytes, quoted, usage_of};
use super::frame::Frame;
use super::stream_read::malformed;
use super::usage::write_usage;
use crate::error::{Garbled, WireError};
use crate::format::{Forwarded, Rendering, StreamForward};
use crate::hub::Usage;
use crate::sse::EVENT_MAX;

/// See [`crate::Format::forward_stream`].
pub(super) struct Forward {
    frame: Frame,
    /// The client's name of the model, as JSON.
    model: String,
    splitter: Splitter,
    /// The events that opened the stream; sent with what follows them.
    held: Vec<Bytes>,
    /// Nothing has been sent.
    is_fresh: bool,
    /// What went wrong behind events that were still good.
    failed: Option<Garbled>,
    /// The good end, and whether it came.
    end: Bytes,
    has_ended: bool,
    usage: Option<Usage>,
    text_bytes: u64,
    /// The number that the next event would have.
    sequence: u64,
}

/// An event of the wire.
#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    sequence_number: Option<u64>,
    delta: Option<TextBytes>,
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

/// What becomes of an event.
enum Fate {
    /// It goes on as it is.
    Pass,
    /// It goes on in these words.
    Change(Vec<u8>),
    /// It opens the stream; in other words where they are given.
    Hold(Option<Vec<u8>>),
    /// It is the good end.
    End(Option<Vec<u8>>),
    /// It is of no use to the client.
    Skip,
}

impl Forward {
    /// A stream that has not begun.
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        Self {
            frame: Frame::new(rendering),
            model: quoted(rendering.model),
            splitter: Splitter::default(),
            held: Vec::new(),
            is_fresh: true,
            failed: None,
            end: Bytes::new(),
            has_ended: false,
            usage: None,
            text_bytes: 0,
            sequence: 0,
        }
    }

    /// Takes whole events.
    fn events(&mut self, buffer: &Bytes, ends: &[usize]) -> Result<Bytes, Garbled> {
        let mut pieces = Pieces::of(buffer);
        let mut start = 0;
        for &end in ends {
            let span = start..end;
            start = end;
            let fate = match self.fate(&buffer[span.clone()]) {
                Ok(fate) => fate,
                // Before anything good, another upstream can be tried.
                Err(error) if self.is_fresh => return Err(error),
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            };
            match fate {
                Fate::Skip => {}
                Fate::Pass => {
                    self.open(&mut pieces);
                    pieces.pass(span);
                }
                Fate::Change(new) => {
                    self.open(&mut pieces);
                    pieces.add(new.into());
                }
                Fate::Hold(new) => {
                    let event = new.map_or_else(|| buffer.slice(span), Bytes::from);
                    self.held.push(event);
                }
                Fate::End(new) => {
                    self.open(&mut pieces);
                    self.end = new.map_or_else(|| buffer.slice(span), Bytes::from);
                    self.has_ended = true;
                    break;
                }
            }
        }
        Ok(pieces.join())
    }

    /// Something follows what opened the stream.
    fn open(&mut self, pieces: &mut Pieces<'_>) {
        if self.is_fresh {
            self.is_fresh = false;
            for event in self.held.drain(..) {
                pieces.add(event);
            }
        }
    }

    fn fate(&mut self, event: &[u8]) -> Result<Fate, Garbled> {
        let Some(data) = data_of(event)? else {
            // Comments and empty lines keep a stream alive; they do not open it.
            return Ok(if self.is_fresh {
                Fate::Skip
            } else {
                Fate::Pass
            });
        };
        if matches!(data.trim(), "" | "[DONE]") {
            return Ok(Fate::Skip);
        }
        let wire: Wire<'_> = serde_json::from_str(&data).map_err(|error| malformed(&error))?;
        if let Some(number) = wire.sequence_number {
            self.sequence = number.saturating_add(1);
        }
        match wire.kind.as_ref() {
            "response.failed" | "error" => {
                return Err(failure(serde_json::from_str(&data).unwrap_or_default()));
            }
            "" if wire.error.is_some() => {
                return Err(failure(serde_json::from_str(&data).unwrap_or_default()));
            }
            _ => {}
        }
        if !wire.kind.starts_with("response.audio") {
            self.text_bytes += wire.delta.map_or(0, |bytes| bytes.0);
        }
        let Some(raw) = wire.response else {
            return Ok(Fate::Pass);
        };
        let response: Response<'_> =
            serde_json::from_str(raw.get()).map_err(|error| malformed(&error))?;
        if let Some(id) = &response.id {
            self.frame
                .learn(id, response.created_at.map(|at| at as i64));
        }
        self.usage = response.usage.and_then(usage_of).or(self.usage);
        let mut edits = Edits::of(&data);
        if let Some(model) = response.model {
            edits.set(model, self.model.as_str());
        }
        let new = edits.done().map(|data| render(&wire.kind, &data));
        Ok(match wire.kind.as_ref() {
            "response.created" | "response.in_progress" | "response.queued" if self.is_fresh => {
                Fate::Hold(new)
            }
            "response.completed" | "response.incomplete" => Fate::End(new),
            _ => new.map_or(Fate::Pass, Fate::Change),
        })
    }
}

impl StreamForward for Forward {
    fn push(&mut self, bytes: Bytes) -> Result<Forwarded, Garbled> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut now = Bytes::new();
        if !self.has_ended {
            let (buffer, ends) = self.splitter.push(bytes)?;
            now = self.events(&buffer, &ends)?;
        }
        Ok(Forwarded {
            now,
            ended: self.has_ended,
        })
    }

    fn finish(&mut self) -> Result<(), Garbled> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if !self.has_ended {
            // An end without its blank line still counts.
            let rest = self.splitter.rest();
            if !rest.is_empty() {
                let end = [rest.len()];
                self.events(&rest, &end)?;
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
            }
        }
        match self.has_ended {
            true => Ok(()),
            false => Err(Garbled::BrokeOff),
        }
    }

    fn end(&mut self) -> Bytes {
        std::mem::take(&mut self.end)
    }

    fn usage(&self) -> Option<Usage> {
        self.usage
    }

    fn text_bytes(&self) -> u64 {
        self.text_bytes
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(KEEP_ALIVE);
    }

    fn error(&mut self, error: &WireError, out: &mut Vec<u8>) {
        if self.is_fresh {
            self.is_fresh = false;
            for event in &self.held {
                out.extend_from_slice(event);
            }
            if self.held.is_empty() {
                let begun = self.frame.object("in_progress", json!([]), Value::Null);
                let body = json!({"response": begun});
                emit(out, &mut self.sequence, "response.created", &body);
            }
        }
        let usage = self.usage.as_ref().map_or(Value::Null, write_usage);
        let mut response = self.frame.object("failed", json!([]), usage);
        response.insert("error".to_owned(), write_failure(error));
        let body = json!({"response": response});
        emit(out, &mut self.sequence, "response.failed", &body);
    }
}

/// An event in our own lines.
fn render(kind: &str, data: &str) -> Vec<u8> {
    // Line ends stand only between the tokens of JSON.
    let data = data.replace(['\n', '\r'], " ");
    format!("event: {kind}\ndata: {data}\n\n").into_bytes()
}

/// The data of an event, lines joined; none where it has no data line.
fn data_of(event: &[u8]) -> Result<Option<Cow<'_, str>>, Garbled> {
    let mut data: Option<Cow<'_, str>> = None;
    let event = event.strip_prefix(b"\xef\xbb\xbf").unwrap_or(event);
    for line in event.split(|byte| matches!(byte, b'\n' | b'\r')) {
        let Some(line) = line.strip_prefix(b"data:") else {
            continue;
        };
        let line = std::str::from_utf8(line)
            .map_err(|_| Garbled::Malformed("a line is not UTF-8".to_owned()))?;
        let line = line.strip_prefix(' ').unwrap_or(line);
        data = Some(match data {
            None => Cow::Borrowed(line),
            Some(before) => Cow::Owned(format!("{before}\n{line}")),
        });
    }
    Ok(data)
}

/// What goes on, joined without copying where it lies side by side.
struct Pieces<'a> {
    buffer: &'a Bytes,
    run: Range<usize>,
    list: Vec<Bytes>,
}

impl<'a> Pieces<'a> {
    fn of(buffer: &'a Bytes) -> Self {
        Self {
            buffer,
            run: 0..0,
            list: Vec::new(),
        }
    }

    fn pass(&mut self, span: Range<usize>) {
        if self.run.end != span.start {
            self.close_run();
            self.run.start = span.start;
        }
        self.run.end = span.end;
    }

    fn add(&mut self, piece: Bytes) {
        self.close_run();
        self.list.push(piece);
    }

    fn close_run(&mut self) {
        if !self.run.is_empty() {
            self.list.push(self.buffer.slice(self.run.clone()));
        }
        self.run = 0..0;
    }

    fn join(mut self) -> Bytes {
        self.close_run();
        match self.list.len() {
            0 => Bytes::new(),
            1 => self.list.remove(0),
            _ => Bytes::from(self.list.concat()),
        }
    }
}

/// Cuts bytes behind the blank lines that end events. Keeps at most one unfinished event.
#[derive(Default)]
struct Splitter {
    tail: BytesMut,
    scan: Scan,
}

/// Where in the unfinished event the search for its end is.
#[derive(Default, Clone, Copy)]
struct Scan {
    /// Where its last line begins.
    line: usize,
    /// How far that line was searched.
    searched: usize,
}

impl Splitter {
    /// Bytes that begin with an event, and where in them events end; what is behind the last end is no business of the caller's.
    fn push(&mut self, bytes: Bytes) -> Result<(Bytes, Vec<usize>), Garbled> {
        if self.tail.is_empty() {
            let ends = self.scan.ends(&bytes);
            let start = self.leave(&ends);
            self.tail.extend_from_slice(&bytes[start..]);
            return self.bounded(bytes, ends);
        }
        self.tail.extend_from_slice(&bytes);
        let ends = self.scan.ends(&self.tail);
        let start = self.leave(&ends);
        let whole = self.tail.split_to(start).freeze();
        self.bounded(whole, ends)
    }

    fn bounded(&self, whole: Bytes, ends: Vec<usize>) -> Result<(Bytes, Vec<usize>), Garbled> {
        match self.tail.len() > EVENT_MAX {
            true => Err(Garbled::TooLarge(EVENT_MAX)),
            false => Ok((whole, ends)),
        }
    }

    /// Goes on behind the last of `ends`, and tells where that is.
    fn leave(&mut self, ends: &[usize]) -> usize {
        let start = ends.last().copied().unwrap_or(0);
        self.scan.line -= start;
        self.scan.searched -= start;
        start
    }

    fn rest(&mut self) -> Bytes {
        self.scan = Scan::default();
        self.tail.split().freeze()
    }
}

impl Scan {
    /// Where events end in `bytes`, of which the beginning was searched before.
    fn ends(&mut self, bytes: &[u8]) -> Vec<usize> {
        let mut ends = Vec::new();
        while let Some(at) = memchr2(b'\n', b'\r', &bytes[self.searched..]) {
            let at = self.searched + at;
            let is_blank = at == self.line;
            let next = bytes.get(at + 1);
            if bytes[at] == b'\r' && next.is_none() && !is_blank {
                // Maybe half of a line end: it is looked at again with what follows.
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
