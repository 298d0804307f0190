//! Counts attachments in the raw text of a request, without parsing it.

use memchr::memmem;
use serde_json::Value;

use crate::escaped_letters::has_escaped_letters;

/// The number of `inlineData` and `fileData` members. Never too low: a text that mentions `"inlineData"` counts too.
pub(crate) fn count_attachments(body: &[u8]) -> u32 {
    const NAMES: [&[u8]; 4] = [
        b"\"inlineData\"",
        b"\"inline_data\"",
        b"\"fileData\"",
        b"\"file_data\"",
    ];
    // An escaped letter could be part of a member's name. No real client escapes letters.
    if has_escaped_letters(body) {
        return serde_json::from_slice(body).map_or(0, |value| count_members(&value));
    }
    let needle = memmem::Finder::new(b"ata\"");
    let is_name = |at: usize| {
        // The common ending of all names.
        let head = &body[..at + 4];
        NAMES.iter().any(|name| head.ends_with(name))
    };
    let count = needle.find_iter(body).filter(|at| is_name(*at)).count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn count_members(value: &Value) -> u32 {
    match value {
        Value::Array(list) => list.iter().map(count_members).sum(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| {
                let is_attachment = matches!(
                    name.as_str(),
                    "inlineData" | "inline_data" | "fileData" | "file_data"
                );
                u32::from(is_attachment) + count_members(value)
            })
            .sum(),
        _ => 0,
    }
}
