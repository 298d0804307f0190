//! Client text made fit for messages and records: cut short, control characters escaped.

use std::io::{self, Write};

use serde_json::Value;

/// Bytes of client text that a message quotes.
const QUOTED: usize = 60;
/// Bytes of a client value that an adjustment keeps.
const KEPT: usize = 200;

/// A JSON value as a message shows it: its JSON text, at most about 60 bytes of it.
pub(crate) fn show(value: &Value) -> String {
    let (text, cut) = json_prefix(value, QUOTED);
    let mut shown = escape(&text);
    if cut {
        shown.push('…');
    }
    shown
}

/// A text as a message shows it: quoted, escaped, at most about 60 bytes of it.
pub(crate) fn quote(text: &str) -> String {
    let kept = prefix(text, QUOTED);
    let more = if kept.len() < text.len() { "…" } else { "" };
    format!("\"{}{more}\"", escape(kept))
}

/// A field name that a client made up, as messages and adjustments show it.
pub(crate) fn name(text: &str) -> String {
    let kept = prefix(text, QUOTED);
    let more = if kept.len() < text.len() { "…" } else { "" };
    format!("{}{more}", escape(kept))
}

/// A client's value as an adjustment keeps it: itself when it is small, else the beginning of its
/// JSON text.
pub(crate) fn clip(value: &Value) -> Value {
    let (text, cut) = json_prefix(value, KEPT);
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

/// The beginning of a value's JSON text, at most `bytes` bytes, and whether more follows. Costs no
/// more than it returns, however large the value is.
fn json_prefix(value: &Value, bytes: usize) -> (String, bool) {
    struct Head {
        kept: Vec<u8>,
        room: usize,
    }
    impl Write for Head {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let fits = data.len().min(self.room - self.kept.len());
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
    let mut head = Head {
        kept: Vec::new(),
        room: bytes,
    };
    let cut = serde_json::to_writer(&mut head, value).is_err();
    let text = String::from_utf8_lossy(&head.kept);
    (text.trim_end_matches('\u{fffd}').to_owned(), cut)
}

/// The text with control characters and those that turn the writing direction escaped.
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
            assert_eq!(show(&value), shown);
        }
        assert_eq!(quote("x\ny"), "\"x\\u{a}y\"");
        assert_eq!(name(&"x".repeat(100)).chars().count(), 61);
        assert_eq!(clip(&json!([1])), json!([1]));
        let clipped = clip(&json!("x".repeat(10_000_000)));
        assert!(clipped.as_str().is_some_and(|s| s.len() < 210));
    }
}
