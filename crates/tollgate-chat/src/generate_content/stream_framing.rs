//! Writes the framing around the objects of a stream: SSE events, or the brackets and commas of one JSON array.

/// Writes the framing around the objects of a stream.
pub(crate) struct StreamFraming {
    array: bool,
    started: bool,
    /// Whether the stream has ended: nothing may be written after it.
    pub(crate) closed: bool,
}

impl StreamFraming {
    pub(crate) fn new(array: bool) -> Self {
        Self {
            array,
            started: false,
            closed: false,
        }
    }

    /// Writes what precedes an object.
    pub(crate) fn write_prefix(&mut self, out: &mut Vec<u8>) {
        let before: &[u8] = match (self.array, self.started) {
            (false, _) => b"data: ",
            (true, false) => b"[",
            (true, true) => b",\n",
        };
        self.started = true;
        out.extend_from_slice(before);
    }

    /// Writes what follows an object.
    pub(crate) fn write_suffix(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.array { b"\n" } else { b"\n\n" });
    }

    /// Writes an object with its prefix and suffix.
    pub(crate) fn write_object(&mut self, json: &[u8], out: &mut Vec<u8>) {
        self.write_prefix(out);
        out.extend_from_slice(json);
        self.write_suffix(out);
    }

    /// Ends the stream.
    pub(crate) fn close(&mut self, out: &mut Vec<u8>) {
        if self.array && !self.closed {
            out.extend_from_slice(if self.started { b"]" } else { b"[]" });
        }
        self.closed = true;
    }
}
