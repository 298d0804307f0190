//! Content blocks: what requests and replies have in common.

use serde_json::{Map, Value, json};

use super::fields::{Fields, Path, put_back};
use super::wire::{CARRIED, NAME, VENDOR};
use crate::error::InvalidRequest;
use crate::hub::{Citation, ExtraFields, Opaque, Part, PartKind, Source};
use crate::media;

/// Reads one block and adds its part to `parts`. Empty text adds nothing; a block of a type that only this format has is kept whole.
pub(super) fn push_block(
    block: Value,
    at: &Path<'_>,
    parts: &mut Vec<Part>,
) -> Result<(), InvalidRequest> {
    let mut fields = Fields::of(block, at)?;
    let kind = match fields.needed_name("type")?.as_str() {
        "text" => text(&mut fields)?,
        "image" => image(&mut fields, at)?,
        "document" => document(&mut fields, at)?,
        "tool_use" => tool_use(&mut fields)?,
        "tool_result" => tool_result(&mut fields, at)?,
        "thinking" => thinking(&mut fields)?,
        "redacted_thinking" => {
            let data = fields.needed_text("data")?;
            match data.strip_prefix(CARRIED) {
                Some(carried) => {
                    sign(parts.last_mut(), carried);
                    return Ok(());
                }
                None => Some(PartKind::RedactedReasoning(Opaque::from_portable(
                    &data, VENDOR,
                ))),
            }
        }
        other => {
            fields.keep("type", json!(other));
            None
        }
    };
    let Some(kind) = kind else {
        parts.push(Part::new(foreign(fields)));
        return Ok(());
    };
    if matches!(&kind, PartKind::Text { text, .. } if text.is_empty()) {
        return Ok(());
    }
    let cache_ttl = cache_control(&mut fields)?;
    parts.push(Part {
        kind,
        cache_ttl,
        extra: fields.rest(),
    });
    Ok(())
}

/// A content that is one string or a list of blocks; whether it was a string.
pub(super) fn content(value: Value, at: &Path<'_>) -> Result<(Vec<Part>, bool), InvalidRequest> {
    match value {
        Value::String(text) if text.is_empty() => Ok((Vec::new(), true)),
        Value::String(text) => Ok((vec![Part::text(text)], true)),
        Value::Array(blocks) => {
            let mut parts = Vec::with_capacity(blocks.len());
            for (index, block) in blocks.into_iter().enumerate() {
                push_block(block, &Path::Item(at, index), &mut parts)?;
            }
            Ok((parts, false))
        }
        _ => Err(at.bad("must be a string or a list of content blocks")),
    }
}

/// The marker's lifetime, empty where none is said.
pub(super) fn cache_control(fields: &mut Fields<'_>) -> Result<Option<String>, InvalidRequest> {
    match fields.take("cache_control") {
        None => Ok(None),
        Some(Value::Object(marker)) => {
            let ttl = marker.get("ttl").and_then(Value::as_str);
            Ok(Some(ttl.unwrap_or_default().to_owned()))
        }
        Some(_) => Err(fields.bad("cache_control", "must be an object")),
    }
}

/// The whole block, for types that only this format has.
fn foreign(fields: Fields<'_>) -> PartKind {
    PartKind::FormatSpecific {
        format: NAME,
        value: fields.into_value(),
    }
}

/// Puts a carried signature where it belongs.
fn sign(part: Option<&mut Part>, carried: &str) {
    if let Some(PartKind::ToolCall { signature, .. } | PartKind::Text { signature, .. }) =
        part.map(|part| &mut part.kind)
    {
        *signature = Some(Opaque::from_portable(carried, VENDOR));
    }
}

fn text(fields: &mut Fields<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let text = fields.needed_text("text")?;
    let citations = fields.list("citations")?.unwrap_or_default();
    Ok(Some(PartKind::Text {
        text,
        citations: citations.into_iter().filter_map(read_citation).collect(),
        signature: None,
    }))
}

fn image(fields: &mut Fields<'_>, at: &Path<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let source = fields
        .take("source")
        .ok_or_else(|| fields.bad("source", "is required"))?;
    let at = Path::Member(at, "source");
    let mut inner = Fields::of(source, &at)?;
    let source = match inner.needed_text("type")?.as_str() {
        "base64" => base64(&mut inner)?,
        "url" => url(&mut inner)?,
        "file" => Source::FileId(inner.needed_name("file_id")?),
        _ => return Err(inner.bad("type", "must be `base64`, `url` or `file`")),
    };
    Ok(Some(PartKind::Image {
        source,
        detail: None,
    }))
}

fn document(fields: &mut Fields<'_>, at: &Path<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let source = fields
        .take("source")
        .ok_or_else(|| fields.bad("source", "is required"))?;
    if source.get("type").and_then(Value::as_str) == Some("content") {
        // Blocks inside: nothing that another format could say.
        fields.keep("type", json!("document"));
        fields.keep("source", source);
        return Ok(None);
    }
    let at = Path::Member(at, "source");
    let mut inner = Fields::of(source, &at)?;
    let source = match inner.needed_text("type")?.as_str() {
        "base64" => base64(&mut inner)?,
        "url" => url(&mut inner)?,
        "file" => Source::FileId(inner.needed_name("file_id")?),
        "text" => Source::Text(inner.needed_text("data")?),
        _ => {
            let why = "must be `base64`, `url`, `text`, `content` or `file`";
            return Err(inner.bad("type", why));
        }
    };
    let name = fields.text("title")?;
    Ok(Some(PartKind::File { source, name }))
}

fn base64(source: &mut Fields<'_>) -> Result<Source, InvalidRequest> {
    let declared = source.text("media_type")?.unwrap_or_default();
    let data = source.needed_text("data")?;
    media::parse_inline_source(&data, &declared).map_err(|why| source.bad("data", why))
}

fn url(source: &mut Fields<'_>) -> Result<Source, InvalidRequest> {
    let url = source.needed_name("url")?;
    if media::is_data_uri(&url) {
        return media::parse_inline_source(&url, "").map_err(|why| source.bad("url", why));
    }
    Ok(Source::Url {
        url,
        media_type: None,
    })
}

fn tool_use(fields: &mut Fields<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let id = fields.needed_name("id")?;
    let name = fields.needed_name("name")?;
    let arguments = match fields.take("input") {
        None => "{}".to_owned(),
        Some(input) => input.to_string(),
    };
    Ok(Some(PartKind::ToolCall {
        id,
        name,
        arguments,
        custom: false,
        signature: None,
    }))
}

fn tool_result(fields: &mut Fields<'_>, at: &Path<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let id = fields.needed_name("tool_use_id")?;
    let at = Path::Member(at, "content");
    let (content, plain) = match fields.take("content") {
        None => (Vec::new(), false),
        Some(value) => content(value, &at)?,
    };
    Ok(Some(PartKind::ToolResult {
        id,
        name: None,
        content,
        plain,
        is_error: fields.flag("is_error")?.unwrap_or(false),
        custom: false,
    }))
}

fn thinking(fields: &mut Fields<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let text = fields.needed_text("thinking")?;
    let signature = fields.text("signature")?.filter(|s| !s.is_empty());
    Ok(Some(PartKind::Reasoning {
        text,
        signature: signature.map(|s| Opaque::from_portable(&s, VENDOR)),
        id: None,
        summary: false,
    }))
}

/// Where each kind of citation has the page and its title.
fn citation_members(kind: &str) -> (Option<&'static str>, &'static str) {
    match kind {
        "web_search_result_location" => (Some("url"), "title"),
        "search_result_location" => (Some("source"), "title"),
        _ => (None, "document_title"),
    }
}

/// A source of a text; none for what is no citation at all.
pub(super) fn read_citation(value: Value) -> Option<Citation> {
    let Value::Object(mut members) = value else {
        return None;
    };
    let kind = members.get("type").and_then(Value::as_str)?;
    let (url, title) = citation_members(kind);
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

/// The citation as this format itself had it; none where it came from another.
pub(super) fn write_own_citation(citation: &Citation) -> Option<Value> {
    let extra = citation.extra.for_format(NAME)?;
    let (url, title) = citation_members(extra.get("type")?.as_str()?);
    let mut out = Map::new();
    put_back(&citation.extra, &mut out);
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

/// A citation for a client: its own, or a page of the web from another format.
pub(super) fn write_citation(citation: &Citation) -> Option<Value> {
    write_own_citation(citation).or_else(|| {
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

/// The `input` of a call: the object that its arguments are, or one that holds them. A call is never dropped for what it says.
pub(super) fn input_of(arguments: &str, custom: bool) -> Value {
    if custom {
        return json!({"input": arguments});
    }
    if arguments.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(arguments) {
        Ok(input @ Value::Object(_)) => input,
        Ok(Value::Null) => json!({}),
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            // Encoded twice.
            Ok(input @ Value::Object(_)) => input,
            _ => json!({"_raw": inner}),
        },
        _ => json!({"_raw": arguments}),
    }
}

/// The marker on a block.
pub(super) fn marker(ttl: &str) -> Value {
    // The format knows two lifetimes; what asks for more than the short one means the long one.
    match ttl {
        "" => json!({"type": "ephemeral"}),
        "5m" => json!({"type": "ephemeral", "ttl": "5m"}),
        _ => json!({"type": "ephemeral", "ttl": "1h"}),
    }
}

/// Thinking as a client of this format sends it back: another vendor's proof wrapped, so that it can be told from this one's.
pub(super) fn proof_for_client(signature: Option<&Opaque>) -> String {
    match signature {
        None => String::new(),
        Some(extra) if extra.vendor == VENDOR => extra.data.clone(),
        Some(other) => other.to_portable(),
    }
}

/// The block that carries another vendor's signature on the block before it.
pub(super) fn carrier(signature: &Opaque) -> Value {
    json!({"type": "redacted_thinking", "data": format!("{CARRIED}{}", signature.to_portable())})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: Value) -> Result<Vec<Part>, InvalidRequest> {
        let mut parts = Vec::new();
        let list = Path::Member(&Path::Root, "content");
        push_block(block, &Path::Item(&list, 0), &mut parts)?;
        Ok(parts)
    }

    #[test]
    fn trap_10_arguments_that_are_no_object_are_wrapped() {
        for (arguments, expected) in [
            ("", json!({})),
            ("null", json!({})),
            (" {\"a\": 1} ", json!({"a": 1})),
            ("\"{\\\"a\\\":1}\"", json!({"a": 1})),
            ("[1]", json!({"_raw": "[1]"})),
            ("{\"a\":", json!({"_raw": "{\"a\":"})),
        ] {
            assert_eq!(input_of(arguments, false), expected, "{arguments}");
        }
        assert_eq!(input_of("free", true), json!({"input": "free"}));
    }

    #[test]
    fn errors_name_the_block() {
        for (block, field) in [
            (json!("text"), "content[0]"),
            (json!({"text": "x"}), "content[0].type"),
            (json!({"type": "text"}), "content[0].text"),
            (json!({"type": "image"}), "content[0].source"),
            (
                json!({"type": "image", "source": {"type": "ftp"}}),
                "content[0].source.type",
            ),
            (
                json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "?"}}),
                "content[0].source.data",
            ),
            (
                json!({"type": "tool_use", "name": "f", "input": {}}),
                "content[0].id",
            ),
            (
                json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}),
                "content[0].content[0].source",
            ),
        ] {
            assert_eq!(read(block.clone()).unwrap_err().field, field, "{block}");
        }
    }

    #[test]
    fn citations_survive() {
        for citation in [
            json!({"type": "web_search_result_location", "url": "https://a", "title": "A", "encrypted_index": "x", "cited_text": "c"}),
            json!({"type": "search_result_location", "source": "s", "title": null, "cited_text": "c", "search_result_index": 0}),
            json!({"type": "char_location", "document_index": 0, "document_title": "D", "cited_text": "c", "start_char_index": 0}),
        ] {
            let read = read_citation(citation.clone()).unwrap();
            assert_eq!(write_citation(&read), Some(citation));
        }
    }

    #[test]
    fn trap_28_a_carried_signature_finds_its_call() {
        let signature = Opaque::new("gemini", "sig");
        let call = Part::new(PartKind::ToolCall {
            id: "a".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            custom: false,
            signature: None,
        });
        let mut parts = vec![call];
        push_block(carrier(&signature), &Path::Root, &mut parts).unwrap();
        assert!(
            matches!(&parts[..], [Part { kind: PartKind::ToolCall { signature: Some(s), .. }, .. }] if *s == signature)
        );
    }
}
