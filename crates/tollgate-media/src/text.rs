//! Prepares client-supplied text for error messages and adjustments: truncates it and escapes control characters.

use std::io::{self, Write};

use serde_json::Value;
use tollgate_core::ApiError;

/// The maximum number of bytes of client text that an error message quotes.
const MESSAGE_BYTES: usize = 60;
/// The maximum number of bytes of a client value that an adjustment contains.
const ADJUSTMENT_BYTES: usize = 200;

/// A 400 error: `field` must be `expected`, but `got` was received.
pub(crate) fn invalid_value(field: &str, expected: &str, got: &Value) -> ApiError {
    ApiError::invalid(format!(
        "`{field}` must be {expected}, got {}",
        show_json(got)
    ))
}

/// A JSON value for an error message: at most the first 60 bytes of its JSON text, escaped.
pub(crate) fn show_json(value: &Value) -> String {
    let (text, cut) = json_prefix(value, MESSAGE_BYTES);
    let mut shown = escape(&text);
    if cut {
        shown.push('…');
    }
    shown
}

/// A text for an error message: at most its first 60 bytes, quoted and escaped.
pub(crate) fn show_text(text: &str) -> String {
    let kept = prefix(text, MESSAGE_BYTES);
    let more = if kept.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", escape(kept))
}

/// A client-supplied name for an error message or adjustment: at most its first 60 bytes, escaped.
pub(crate) fn show_name(text: &str) -> String {
    let kept = prefix(text, MESSAGE_BYTES);
    let more = if kept.len() < text.len() { "…" } else { "" };
    format!("{}{more}", escape(kept))
}

/// A client's value for an adjustment: the value itself if its JSON text has at most 200 bytes, otherwise the start of that text.
pub(crate) fn clip_json(value: &Value) -> Value {
    let (text, cut) = json_prefix(value, ADJUSTMENT_BYTES);
    if cut {
        Value::String(format!("{}…", escape(&text)))
    } else {
        value.clone()
    }
}

/// The first characters of `text`, at most `bytes` bytes of them.
fn prefix(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// The first `bytes` bytes of a value's JSON text, and whether more follows. Serialisation stops there, so the cost does not depend on the size of
/// the value.
fn json_prefix(value: &Value, bytes: usize) -> (String, bool) {
    struct Prefix {
        kept: Vec<u8>,
        capacity: usize,
    }
    impl Write for Prefix {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let fits = data.len().min(self.capacity - self.kept.len());
            self.kept.extend_from_slice(&data[..fits]);
            if fits < data.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            Ok(fits)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut out = Prefix {
        kept: Vec::new(),
        capacity: bytes,
    };
    let cut = serde_json::to_writer(&mut out, value).is_err();
    let text = String::from_utf8_lossy(&out.kept);
    (text.trim_end_matches('\u{fffd}').to_owned(), cut)
}

/// Escapes control characters and characters that change the writing direction.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_values_are_cut_and_control_characters_escaped() {
        for (value, shown) in [
            (json!(1.5), "1.5"),
            (json!("a\u{0}b\u{202e}"), "\"a\\u0000b\\u{202e}\""),
            (json!("é".repeat(500)), &format!("\"{}…", "é".repeat(29))),
            (json!({"a": [1, null]}), "{\"a\":[1,null]}"),
        ] {
            assert_eq!(show_json(&value), shown);
        }
        assert_eq!(show_text("x\ny"), "\"x\\u{a}y\"");
        assert_eq!(show_name(&"x".repeat(100)).chars().count(), 61);
        assert_eq!(clip_json(&json!([1])), json!([1]));
        let clipped = clip_json(&json!("x".repeat(10_000_000)));
        assert!(clipped.as_str().is_some_and(|s| s.len() < 210));
    }
}
