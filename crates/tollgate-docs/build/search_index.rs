//! Writes the search index: every part of every page with its texts, as JSON. The script of the pages ranks the results.

use std::fmt::Write as _;

use crate::markdown::{Page, page_address};
use crate::navigation::Navigation;

/// `[{"address", "title", "section", "parts": [[anchor, heading, text], …]}, …]`.
pub(crate) fn write(navigation: &Navigation, pages: &[Page]) -> String {
    let mut index = String::from("[");
    for (at, page) in pages.iter().enumerate() {
        if at > 0 {
            index.push(',');
        }
        let _ = write!(
            index,
            "\n{{\"address\":{},\"title\":{},\"section\":{},\"parts\":[",
            json_string(&page_address(&page.address)),
            json_string(&page.title),
            json_string(navigation.section_title(&page.address)),
        );
        for (at, part) in page.parts.iter().enumerate() {
            if at > 0 {
                index.push(',');
            }
            let (anchor, title) = match part.level {
                1 => ("", ""),
                _ => (part.anchor.as_str(), part.title.as_str()),
            };
            let words: Vec<&str> = part.text.split_whitespace().collect();
            let _ = write!(
                index,
                "[{},{},{}]",
                json_string(anchor),
                json_string(title),
                json_string(&words.join(" ")),
            );
        }
        index.push_str("]}");
    }
    index.push_str("\n]\n");
    index
}

fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(json, "\\u{:04x}", u32::from(c));
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
