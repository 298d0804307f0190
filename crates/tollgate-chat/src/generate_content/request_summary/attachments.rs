//! Counts attachments in the raw text of a request, in one pass and without parsing it.

use memchr::{memchr, memmem};
use serde_json::Value;

use crate::attachments::is_in_media_object;
use crate::open_ended::has_escaped_letters;

/// The result of the count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AttachmentCount {
    /// The number of `inlineData` and `fileData` members.
    pub(crate) count: u32,
    /// Bytes of base64 in `inlineData`.
    pub(crate) payload_bytes: u64,
}

/// `data` counts as payload only in the object of `inlineData`, within this many bytes after that name; else it is another member with the same
/// name.
const MAX_DATA_DISTANCE: usize = 1024;

/// Counts attachments. Never too few: a text that mentions `"inlineData"` counts too.
pub(crate) fn count_attachments(body: &[u8]) -> AttachmentCount {
    // An escaped letter could be part of a member's name. No real client escapes letters.
    if has_escaped_letters(body) {
        return count_by_parsing(body);
    }
    let mut found = AttachmentCount::default();
    let mut inline_at = None;
    let mut at = 0;
    // The common ending of `"inlineData"`, `"inline_data"`, `"fileData"`, `"file_data"` and
    // `"data"`.
    let needle = memmem::Finder::new(b"ata\"");
    while let Some(next) = needle.find(&body[at..]) {
        let (head, end) = (&body[..at + next], at + next + 4);
        at = end;
        if head.ends_with(b"\"inlineD") || head.ends_with(b"\"inline_d") {
            found.count += 1;
            inline_at = Some(end);
        } else if head.ends_with(b"\"fileD") || head.ends_with(b"\"file_d") {
            found.count += 1;
        } else if head.ends_with(b"\"d")
            && inline_at.is_some_and(|from| end - from <= MAX_DATA_DISTANCE)
            && is_in_media_object(head)
        {
            if let Some(length) = string_value_length(&body[end..]) {
                found.payload_bytes += length as u64;
                at += length;
            }
            inline_at = None;
        }
    }
    found
}

/// The length of the string after a member's name. `None` if the value is not a string.
fn string_value_length(rest: &[u8]) -> Option<usize> {
    let value = rest.trim_ascii_start().strip_prefix(b":")?;
    let text = value.trim_ascii_start().strip_prefix(b"\"")?;
    memchr(b'"', text)
}

fn count_by_parsing(body: &[u8]) -> AttachmentCount {
    let mut found = AttachmentCount::default();
    if let Ok(value) = serde_json::from_slice(body) {
        walk(&value, &mut found);
    }
    found
}

fn walk(value: &Value, found: &mut AttachmentCount) {
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
