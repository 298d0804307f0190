//! Server-sent events (SSE): a decoder for upstream streams.
//!
//! Lines are split as bytes and decoded complete, so that chunks may end inside a character. Accepts `\n`, `\r\n` and `\r`, `data:`
//! with and without a space, several `data` lines, a byte order mark, comments, and a last event without a blank line.

use crate::error::MalformedResponse;

/// Larger events are rejected.
pub const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The name in its `event:` line; empty if there is none.
    pub name: &'a str,
    /// Its `data:` lines, joined by `\n`.
    pub data: &'a str,
}

/// Splits a stream of bytes into events. Holds at most one unfinished event.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Bytes of an unfinished line.
    line: Vec<u8>,
    name: String,
    data: String,
    has_data: bool,
    /// Whether the last byte was `\r`, to which a following `\n` belongs.
    after_return: bool,
    /// Whether the first line, which may begin with a byte order mark, was read.
    first_line_read: bool,
}

impl Decoder {
    /// Processes the next bytes and calls `each` for every event that they complete. Stops at the first error of `each`.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(SseEvent<'_>) -> Result<(), MalformedResponse>,
    ) -> Result<(), MalformedResponse> {
        while !bytes.is_empty() {
            if self.after_return && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                self.after_return = false;
                continue;
            }
            self.after_return = false;
            let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) else {
                return self.buffer(bytes);
            };
            self.after_return = bytes[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&bytes[..end], &mut each)?;
            } else {
                self.buffer(&bytes[..end])?;
                let line = std::mem::take(&mut self.line);
                self.take_line(&line, &mut each)?;
            }
            bytes = &bytes[end + 1..];
        }
        Ok(())
    }

    /// Handles the end of the body. An event without its blank line still counts.
    pub fn finish(
        &mut self,
        mut each: impl FnMut(SseEvent<'_>) -> Result<(), MalformedResponse>,
    ) -> Result<(), MalformedResponse> {
        if !self.line.is_empty() {
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut each)?;
        }
        self.dispatch(&mut each)
    }

    fn buffer(&mut self, bytes: &[u8]) -> Result<(), MalformedResponse> {
        if self.line.len() + self.data.len() + bytes.len() > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(SseEvent<'_>) -> Result<(), MalformedResponse>,
    ) -> Result<(), MalformedResponse> {
        let line = if self.first_line_read {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        self.first_line_read = true;
        if line.is_empty() {
            return self.dispatch(each);
        }
        if self.data.len() + line.len() > MAX_EVENT_BYTES {
            return Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES));
        }
        let line = std::str::from_utf8(line)
            .map_err(|_| MalformedResponse::Invalid("a line is not UTF-8".to_owned()))?;
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(value);
            }
            "event" => value.clone_into(&mut self.name),
            _ => {}
        }
        Ok(())
    }

    fn dispatch(
        &mut self,
        each: &mut impl FnMut(SseEvent<'_>) -> Result<(), MalformedResponse>,
    ) -> Result<(), MalformedResponse> {
        let result = if self.has_data && !self.data.is_empty() {
            each(SseEvent {
                name: &self.name,
                data: &self.data,
            })
        } else {
            Ok(())
        };
        self.name.clear();
        self.data.clear();
        self.has_data = false;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(pieces: &[&[u8]]) -> Result<Vec<(String, String)>, MalformedResponse> {
        let mut decoder = Decoder::default();
        let mut events = Vec::new();
        let mut each = |event: SseEvent<'_>| {
            events.push((event.name.to_owned(), event.data.to_owned()));
            Ok(())
        };
        for piece in pieces {
            decoder.push(piece, &mut each)?;
        }
        decoder.finish(&mut each)?;
        Ok(events)
    }

    #[test]
    fn events_do_not_depend_on_line_ends_or_chunk_borders() {
        let expected = vec![
            (String::new(), "{\"a\":\"é猫\"}".to_owned()),
            ("ping".to_owned(), "one\ntwo".to_owned()),
            (String::new(), "last".to_owned()),
        ];
        for end in ["\n", "\r\n", "\r"] {
            let text = "\u{feff}data: {\"a\":\"é猫\"}\n\n: a comment\nid: 7\n\nevent: ping\ndata:one\ndata: two\n\n\n\ndata: last"
                .replace('\n', end);
            let bytes = text.as_bytes();
            assert_eq!(decode(&[bytes]).unwrap(), expected);
            for cut in 0..bytes.len() {
                assert_eq!(
                    decode(&[&bytes[..cut], &bytes[cut..]]).unwrap(),
                    expected,
                    "cut at {cut}"
                );
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(decode(&single).unwrap(), expected);
        }
    }

    #[test]
    fn invalid_utf8_and_oversized_events_are_rejected() {
        assert!(matches!(
            decode(&[b"data: \xff\n\n"]),
            Err(MalformedResponse::Invalid(_))
        ));
        let endless = vec![b'x'; MAX_EVENT_BYTES + 1];
        assert_eq!(
            decode(&[&endless]),
            Err(MalformedResponse::EventTooLarge(MAX_EVENT_BYTES))
        );
    }
}
