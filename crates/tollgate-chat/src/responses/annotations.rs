//! Converts annotations of `output_text` parts (`url_citation`, `file_citation` …) to and from the hub's [`Citation`].

use serde_json::{Map, Value};

use super::constants::NAME;
use super::extra_fields::write_extra_fields;
use super::json::take_member;
use crate::hub::{Citation, ExtraFields};

/// Reads `annotations` as citations: `url_citation` into the hub's fields, other types unchanged
/// into [`ExtraFields`].
pub(super) fn read_annotations(list: Option<Value>) -> Vec<Citation> {
    let Some(Value::Array(list)) = list else {
        return Vec::new();
    };
    list.into_iter().filter_map(read_annotation).collect()
}

/// Reads one annotation. `None` if it is not an object.
pub(super) fn read_annotation(value: Value) -> Option<Citation> {
    let Value::Object(mut members) = value else {
        return None;
    };
    let is_link = members
        .get("type")
        .is_some_and(|kind| kind == "url_citation");
    let mut citation = Citation {
        url: String::new(),
        title: String::new(),
        start: None,
        end: None,
        cited_text: None,
        extra: ExtraFields::NONE,
    };
    if is_link {
        members.shift_remove("type");
        let mut text = |name: &str| match take_member(&mut members, name) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        };
        (citation.url, citation.title) = (text("url"), text("title"));
        let mut take_offset =
            |name: &str| take_member(&mut members, name).and_then(|at| at.as_u64());
        (citation.start, citation.end) = (take_offset("start_index"), take_offset("end_index"));
    } else if let Some(name) = members.get("filename").and_then(Value::as_str) {
        citation.title = name.to_owned();
    }
    citation.extra = ExtraFields::new(NAME, members);
    Some(citation)
}

/// Writes a citation of `text` as an annotation. `None` if it has no URL and is not an annotation
/// of this format. A citation without an end covers the whole text.
pub(super) fn write_annotation(citation: &Citation, text: &str) -> Option<Value> {
    let extra = citation.extra.for_format(NAME);
    if extra.is_some_and(|extra| extra.contains_key("type")) {
        return extra.cloned().map(Value::Object);
    }
    if citation.url.is_empty() {
        return None;
    }
    let start = citation.start.unwrap_or(0);
    let all = || text.chars().count() as u64;
    let end = citation.end.unwrap_or_else(all);
    let mut value = Map::from_iter([
        ("type".to_owned(), Value::from("url_citation")),
        ("url".to_owned(), Value::from(citation.url.as_str())),
        ("title".to_owned(), Value::from(citation.title.as_str())),
        ("start_index".to_owned(), Value::from(start)),
        ("end_index".to_owned(), Value::from(end)),
    ]);
    write_extra_fields(&citation.extra, &mut value);
    Some(Value::Object(value))
}
