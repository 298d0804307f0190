//! Replaces values inside a JSON text without rewriting the rest of it.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON text and the replacements to apply to it.
pub(crate) struct JsonEdits<'a> {
    text: &'a str,
    list: Vec<(Range<usize>, Cow<'a, str>)>,
}

impl<'a> JsonEdits<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            list: Vec::new(),
        }
    }

    /// Replaces `value`, which must be borrowed from the text; does nothing if it equals `new`.
    pub(crate) fn replace(&mut self, value: &RawValue, new: impl Into<Cow<'a, str>>) {
        let new = new.into();
        let value = value.get();
        let start = (value.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let span = start..start.saturating_add(value.len());
        if value != new && self.text.get(span.clone()) == Some(value) {
            self.list.push((span, new));
        }
    }

    /// The text with all replacements applied. `None` if there are none.
    pub(crate) fn apply(mut self) -> Option<String> {
        if self.list.is_empty() {
            return None;
        }
        self.list.sort_by_key(|edit| edit.0.start);
        let more: usize = self.list.iter().map(|edit| edit.1.len()).sum();
        let mut out = String::with_capacity(self.text.len() + more);
        let mut at = 0;
        for (span, new) in &self.list {
            out.push_str(self.text.get(at..span.start).unwrap_or_default());
            out.push_str(new);
            at = at.max(span.end);
        }
        out.push_str(self.text.get(at..).unwrap_or_default());
        Some(out)
    }
}

/// `text` as a JSON string literal.
pub(crate) fn json_string(text: &str) -> String {
    Value::from(text).to_string()
}
