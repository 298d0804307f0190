//! Finds the events in the bytes of a stream, and the lines of an event.

/// Finds the blank line that ends an event.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventEndSearch {
    /// End of the bytes that were searched.
    pub(crate) at: usize,
    /// Start of the current line.
    pub(crate) line: usize,
}

impl EventEndSearch {
    /// The end of the first event in `bytes`, after its blank line. `None` if the event is incomplete, or if the bytes end in `\r`: a
    /// `\n` may follow.
    pub(crate) fn end_of_event(&mut self, bytes: &[u8]) -> Option<usize> {
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

/// What the lines of one event contain.
#[derive(Default)]
pub(crate) struct EventLines<'a> {
    /// Whether it has an `event:` line with a name.
    pub(crate) has_name: bool,
    /// The value of the first `data:` line.
    pub(crate) data: Option<&'a str>,
    /// Whether it has more than one `data:` line.
    pub(crate) has_multiple_data: bool,
}

impl<'a> EventLines<'a> {
    pub(crate) fn parse(event: &'a str) -> Self {
        let mut out = Self::default();
        for line in split_lines(event) {
            if let Some(data) = data_value(line) {
                out.has_multiple_data |= out.data.is_some();
                out.data = out.data.or(Some(data));
            } else if let Some(name) = line.strip_prefix("event:") {
                out.has_name |= !name.trim().is_empty();
            }
        }
        out
    }

    /// The values of all `data:` lines, joined by newlines.
    pub(crate) fn join_data(event: &str) -> String {
        let data: Vec<&str> = split_lines(event).filter_map(data_value).collect();
        data.join("\n")
    }
}

/// The lines of an event. There is an additional empty line between `\r` and `\n`.
fn split_lines(event: &str) -> impl Iterator<Item = &str> {
    let event = event.strip_prefix('\u{feff}').unwrap_or(event);
    let mut from = 0;
    let ends = memchr::memchr2_iter(b'\n', b'\r', event.as_bytes());
    ends.chain([event.len()]).map(move |end| {
        let line = &event[from..end];
        from = end + 1;
        line
    })
}

fn data_value(line: &str) -> Option<&str> {
    let data = line.strip_prefix("data:")?;
    Some(data.strip_prefix(' ').unwrap_or(data))
}
