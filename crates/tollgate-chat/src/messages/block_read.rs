//! Reads content blocks of requests and responses.

use serde_json::{Value, json};

use super::citations::read_citation;
use super::constants::{NAME, SIGNATURE_PREFIX, VENDOR};
use super::fields::{Fields, JsonPath};
use crate::error::InvalidRequest;
use crate::hub::{Opaque, Part, PartKind, Source};
use crate::media;

/// Reads one block and adds its part to `parts`. Empty text adds nothing. A block of a type that only this format has is kept as it is.
pub(super) fn read_block(
    block: Value,
    path: &JsonPath<'_>,
    parts: &mut Vec<Part>,
) -> Result<(), InvalidRequest> {
    let mut fields = Fields::from_value(block, path)?;
    let kind = match fields.require_name("type")?.as_str() {
        "text" => read_text(&mut fields)?,
        "image" => read_image(&mut fields, path)?,
        "document" => read_document(&mut fields, path)?,
        "tool_use" => read_tool_use(&mut fields)?,
        "tool_result" => read_tool_result(&mut fields, path)?,
        "thinking" => read_thinking(&mut fields)?,
        "redacted_thinking" => {
            let data = fields.require_text("data")?;
            match data.strip_prefix(SIGNATURE_PREFIX) {
                Some(signature) => {
                    attach_signature(parts.last_mut(), signature);
                    return Ok(());
                }
                None => Some(PartKind::RedactedReasoning(Opaque::from_portable(
                    &data, VENDOR,
                ))),
            }
        }
        other => {
            fields.insert("type", json!(other));
            None
        }
    };
    let Some(kind) = kind else {
        parts.push(Part::new(format_specific_part(fields)));
        return Ok(());
    };
    if matches!(&kind, PartKind::Text { text, .. } if text.is_empty()) {
        return Ok(());
    }
    let cache_ttl = take_cache_ttl(&mut fields)?;
    parts.push(Part {
        kind,
        cache_ttl,
        extra: fields.into_extra(),
    });
    Ok(())
}

/// Reads `content`, a string or a list of blocks. The flag is whether it was a string.
pub(super) fn read_content(
    value: Value,
    path: &JsonPath<'_>,
) -> Result<(Vec<Part>, bool), InvalidRequest> {
    match value {
        Value::String(text) if text.is_empty() => Ok((Vec::new(), true)),
        Value::String(text) => Ok((vec![Part::text(text)], true)),
        Value::Array(blocks) => {
            let mut parts = Vec::with_capacity(blocks.len());
            for (index, block) in blocks.into_iter().enumerate() {
                read_block(block, &JsonPath::Item(path, index), &mut parts)?;
            }
            Ok((parts, false))
        }
        _ => Err(path.invalid("must be a string or a list of content blocks")),
    }
}

/// Takes `cache_control`: its `ttl`, or an empty string if it has none. `None` if there is no `cache_control`.
pub(super) fn take_cache_ttl(fields: &mut Fields<'_>) -> Result<Option<String>, InvalidRequest> {
    match fields.take("cache_control") {
        None => Ok(None),
        Some(Value::Object(marker)) => {
            let ttl = marker.get("ttl").and_then(Value::as_str);
            Ok(Some(ttl.unwrap_or_default().to_owned()))
        }
        Some(_) => Err(fields.invalid("cache_control", "must be an object")),
    }
}

/// The block unchanged, as a part that only this format has.
fn format_specific_part(fields: Fields<'_>) -> PartKind {
    PartKind::FormatSpecific {
        format: NAME,
        value: fields.into_value(),
    }
}

/// Sets the signature of a tool call or text from the block that [`super::block_write::signature_block`] wrote after it.
fn attach_signature(part: Option<&mut Part>, portable: &str) {
    if let Some(PartKind::ToolCall { signature, .. } | PartKind::Text { signature, .. }) =
        part.map(|part| &mut part.kind)
    {
        *signature = Some(Opaque::from_portable(portable, VENDOR));
    }
}

fn read_text(fields: &mut Fields<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let text = fields.require_text("text")?;
    let citations = fields.take_list("citations")?.unwrap_or_default();
    Ok(Some(PartKind::Text {
        text,
        citations: citations.into_iter().filter_map(read_citation).collect(),
        signature: None,
    }))
}

fn read_image(
    fields: &mut Fields<'_>,
    path: &JsonPath<'_>,
) -> Result<Option<PartKind>, InvalidRequest> {
    let source = fields
        .take("source")
        .ok_or_else(|| fields.invalid("source", "is required"))?;
    let path = JsonPath::Member(path, "source");
    let mut inner = Fields::from_value(source, &path)?;
    let source = match inner.require_text("type")?.as_str() {
        "base64" => read_base64_source(&mut inner)?,
        "url" => read_url_source(&mut inner)?,
        "file" => Source::FileId(inner.require_name("file_id")?),
        _ => return Err(inner.invalid("type", "must be `base64`, `url` or `file`")),
    };
    Ok(Some(PartKind::Image {
        source,
        detail: None,
    }))
}

fn read_document(
    fields: &mut Fields<'_>,
    path: &JsonPath<'_>,
) -> Result<Option<PartKind>, InvalidRequest> {
    let source = fields
        .take("source")
        .ok_or_else(|| fields.invalid("source", "is required"))?;
    if source.get("type").and_then(Value::as_str) == Some("content") {
        // A list of blocks: no other format has such documents.
        fields.insert("type", json!("document"));
        fields.insert("source", source);
        return Ok(None);
    }
    let path = JsonPath::Member(path, "source");
    let mut inner = Fields::from_value(source, &path)?;
    let source = match inner.require_text("type")?.as_str() {
        "base64" => read_base64_source(&mut inner)?,
        "url" => read_url_source(&mut inner)?,
        "file" => Source::FileId(inner.require_name("file_id")?),
        "text" => Source::Text(inner.require_text("data")?),
        _ => {
            let why = "must be `base64`, `url`, `text`, `content` or `file`";
            return Err(inner.invalid("type", why));
        }
    };
    let name = fields.take_text("title")?;
    Ok(Some(PartKind::File { source, name }))
}

fn read_base64_source(source: &mut Fields<'_>) -> Result<Source, InvalidRequest> {
    let declared = source.take_text("media_type")?.unwrap_or_default();
    let data = source.require_text("data")?;
    media::parse_inline_source(&data, &declared).map_err(|why| source.invalid("data", why))
}

fn read_url_source(source: &mut Fields<'_>) -> Result<Source, InvalidRequest> {
    let url = source.require_name("url")?;
    if media::is_data_uri(&url) {
        return media::parse_inline_source(&url, "").map_err(|why| source.invalid("url", why));
    }
    Ok(Source::Url {
        url,
        media_type: None,
    })
}

fn read_tool_use(fields: &mut Fields<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let id = fields.require_name("id")?;
    let name = fields.require_name("name")?;
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

fn read_tool_result(
    fields: &mut Fields<'_>,
    path: &JsonPath<'_>,
) -> Result<Option<PartKind>, InvalidRequest> {
    let id = fields.require_name("tool_use_id")?;
    let path = JsonPath::Member(path, "content");
    let (content, plain) = match fields.take("content") {
        None => (Vec::new(), false),
        Some(value) => read_content(value, &path)?,
    };
    Ok(Some(PartKind::ToolResult {
        id,
        name: None,
        content,
        plain,
        is_error: fields.take_flag("is_error")?.unwrap_or(false),
        custom: false,
    }))
}

fn read_thinking(fields: &mut Fields<'_>) -> Result<Option<PartKind>, InvalidRequest> {
    let text = fields.require_text("thinking")?;
    let signature = fields.take_text("signature")?.filter(|s| !s.is_empty());
    Ok(Some(PartKind::Reasoning {
        text,
        signature: signature.map(|s| Opaque::from_portable(&s, VENDOR)),
        id: None,
        summary: false,
    }))
}
