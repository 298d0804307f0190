//! Reads and writes citations of texts.

use serde_json::{Map, Value, json};

use super::constants::NAME;
use super::fields::write_extra_fields;
use crate::hub::{Citation, ExtraFields};

/// The fields of a citation type that contain the URL and the title.
fn citation_field_names(kind: &str) -> (Option<&'static str>, &'static str) {
    match kind {
        "web_search_result_location" => (Some("url"), "title"),
        "search_result_location" => (Some("source"), "title"),
        _ => (None, "document_title"),
    }
}

/// Reads a citation. `None` if it has no type.
pub(super) fn read_citation(value: Value) -> Option<Citation> {
    let Value::Object(mut members) = value else {
        return None;
    };
    let kind = members.get("type").and_then(Value::as_str)?;
    let (url, title) = citation_field_names(kind);
    let mut take = |name: &str| match members.get(name) {
        Some(Value::String(_)) => match members.shift_remove(name) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    };
    Some(Citation {
        url: url.and_then(&mut take).unwrap_or_default(),
        title: take(title).unwrap_or_default(),
        start: None,
        end: None,
        cited_text: take("cited_text"),
        extra: ExtraFields::new(NAME, members),
    })
}

/// Writes a citation that was read from this format. `None` if it was read from another.
pub(super) fn write_native_citation(citation: &Citation) -> Option<Value> {
    let extra = citation.extra.for_format(NAME)?;
    let (url, title) = citation_field_names(extra.get("type")?.as_str()?);
    let mut out = Map::new();
    write_extra_fields(&citation.extra, &mut out);
    let texts = [
        (url, Some(&citation.url)),
        (Some(title), Some(&citation.title)),
        (Some("cited_text"), citation.cited_text.as_ref()),
    ];
    for (name, text) in texts {
        if let (Some(name), Some(text)) = (name, text)
            && !(text.is_empty() && out.contains_key(name))
        {
            out.insert(name.to_owned(), json!(text));
        }
    }
    Some(Value::Object(out))
}

/// Writes a citation for a client: a citation of this format unchanged, one of another format as a web page.
pub(super) fn write_citation(citation: &Citation) -> Option<Value> {
    write_native_citation(citation).or_else(|| {
        (!citation.url.is_empty()).then(|| {
            json!({
                "type": "web_search_result_location",
                "url": citation.url,
                "title": citation.title,
                "encrypted_index": "",
                "cited_text": citation.cited_text.as_deref().unwrap_or_default(),
            })
        })
    })
}
