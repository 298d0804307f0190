//! Counts pictures and files in a request's text in one pass, without reading it as JSON.

use memchr::{memchr, memmem};
use serde_json::Value;

/// What was found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Found {
    /// Members named `inlineData` or `fileData`.
    pub(in super::super) count: u32,
    /// Bytes of base64 in them.
    pub(in super::super) payload_bytes: u64,
}

/// `data` stands this near behind the `inlineData` that it belongs to; a text of the same name elsewhere is no payload.
const NEAR: usize = 1024;

/// Never too few; a text that talks about `"inlineData"` counts too.
pub(in super::super) fn count(body: &[u8]) -> Found {
    if spells_letters_by_number(body) {
        return count_slowly(body);
    }
    let mut found = Found::default();
    let mut inline_at = None;
    let mut at = 0;
    // The one ending that `"inlineData"`, `"inline_data"`, `"fileData"`, `"file_data"` and `"data"` share.
    let needle = memmem::Finder::new(b"ata\"");
    while let Some(next) = needle.find(&body[at..]) {
        let (head, end) = (&body[..at + next], at + next + 4);
        at = end;
        if head.ends_with(b"\"inlineD") || head.ends_with(b"\"inline_d") {
            found.count += 1;
            inline_at = Some(end);
        } else if head.ends_with(b"\"fileD") || head.ends_with(b"\"file_d") {
            found.count += 1;
        } else if head.ends_with(b"\"d") && inline_at.is_some_and(|from| end - from <= NEAR) {
            if let Some(length) = text_behind(&body[end..]) {
                found.payload_bytes += length as u64;
                at += length;
            }
            inline_at = None;
        }
    }
    found
}

/// The length of the string value behind a member's name; none where the value is no string.
fn text_behind(rest: &[u8]) -> Option<usize> {
    let value = rest.trim_ascii_start().strip_prefix(b":")?;
    let text = value.trim_ascii_start().strip_prefix(b"\"")?;
    memchr(b'"', text)
}

/// Whether some letter is written `\u0061`: then a member's name may hide from a search for text. Nobody honest does it.
fn spells_letters_by_number(body: &[u8]) -> bool {
    memmem::find_iter(body, b"\\u00").any(|at| matches!(body.get(at + 4), Some(b'4'..=b'7')))
}

fn count_slowly(body: &[u8]) -> Found {
    let mut found = Found::default();
    if let Ok(value) = serde_json::from_slice(body) {
        walk(&value, &mut found);
    }
    found
}

fn walk(value: &Value, found: &mut Found) {
    match value {
        Value::Array(list) => list.iter().for_each(|item| walk(item, found)),
        Value::Object(members) => {
            for (name, value) in members {
                match name.as_str() {
                    "inlineData" | "inline_data" => {
                        found.count += 1;
                        let data = value.get("data").and_then(Value::as_str);
                        found.payload_bytes += data.map_or(0, |data| data.len() as u64);
                    }
                    "fileData" | "file_data" => found.count += 1,
                    _ => {}
                }
                walk(value, found);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_are_counted_however_they_are_spelled() {
        for (body, count, payload_bytes) in [
            (
                r#"{"inlineData":{"mimeType":"image/png","data":"AAAA"}}"#,
                1,
                4,
            ),
            (
                r#"{"inline_data" : {"data" : "AAAAAA","mime_type":"x"}}"#,
                1,
                6,
            ),
            (r#"{"fileData":{"fileUri":"gs://x"}}"#, 1, 0),
            (
                r#"{"file_data":{}} {"data":"long text"} {"metadata":1}"#,
                1,
                0,
            ),
            (r#"{"inlin\u0065Data":{"d\u0061ta":"AAAAAAAA"}}"#, 1, 8),
            (r#"{"text":"a \"data\": \"x\""}"#, 0, 0),
            (r#"{"text":"\u003cb\u003e"}"#, 0, 0),
            (r#"{"inlineData":{"data":"AAA"#, 1, 0),
        ] {
            let expected = Found {
                count,
                payload_bytes,
            };
            assert_eq!(super::count(body.as_bytes()), expected, "{body}");
        }
    }
}
