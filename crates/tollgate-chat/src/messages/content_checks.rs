//! Checks content blocks, image sources and tools without parsing the rest of a conversation (docs/chat/messages.md).
//!
//! Content beyond the types on that page is not checked, so that a request can be forwarded unchanged.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::constants::{IMAGE_TYPES, list_alternatives};
use crate::error::InvalidRequest;
use crate::media;

/// The types of content blocks.
const BLOCK_TYPES: &[&str] = &[
    "text",
    "image",
    "document",
    "search_result",
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "container_upload",
    "compaction",
    "fallback",
    "tool_reference",
    "browser_state",
];
/// The beginning and the ends of the names of further block types: calls of hosted tools, and their results.
const BLOCK_PREFIX: &str = "advisor";
const BLOCK_SUFFIXES: &[&str] = &["_tool_use", "_tool_result", "_tool_result_error"];
/// The types of `source` of an image.
const SOURCE_TYPES: &[&str] = &["base64", "url", "file"];
/// The type of a tool of the vendor that does not end with a date.
const MCP_TOOLSET: &str = "mcp_toolset";
/// The number of characters of JSON text that is enough for every magic number in base64.
const HEAD: usize = 128;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    source: Option<&'a RawValue>,
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Source<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    media_type: Option<&'a RawValue>,
    data: Option<&'a RawValue>,
    url: Option<&'a RawValue>,
    file_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tool<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    input_schema: Option<&'a RawValue>,
}

/// Checks the blocks of `messages`, which must be a list.
pub(super) fn check_messages(messages: &RawValue) -> Result<(), InvalidRequest> {
    let messages: Vec<&RawValue> = parse(messages, "messages", "a list of messages")?;
    for (index, message) in messages.into_iter().enumerate() {
        let path = format!("messages[{index}]");
        let message: Message<'_> = parse(message, &path, "an object")?;
        if let Some(content) = message.content {
            check_content(content, &format!("{path}.content"))?;
        }
    }
    Ok(())
}

/// Checks `system`, a string or a list of text blocks.
pub(super) fn check_system(system: &RawValue) -> Result<(), InvalidRequest> {
    if system.get().starts_with('"') {
        return Ok(());
    }
    let blocks: Vec<&RawValue> = parse(system, "system", "a string or a list of text blocks")?;
    for (index, block) in blocks.into_iter().enumerate() {
        let path = format!("system[{index}]");
        let block: Block<'_> = parse(block, &path, "an object")?;
        let kind = require_string(block.kind, &path, "type")?;
        if kind != "text" {
            let why = format!("must be `text`, got {kind:?}");
            return Err(InvalidRequest::new(format!("{path}.type"), why));
        }
        string_head(block.text, &path, "text")?;
    }
    Ok(())
}

/// Checks `tools`, which must be a list.
pub(super) fn check_tools(tools: &RawValue) -> Result<(), InvalidRequest> {
    let tools: Vec<&RawValue> = parse(tools, "tools", "a list of tools")?;
    for (index, tool) in tools.into_iter().enumerate() {
        let path = format!("tools[{index}]");
        let tool: Tool<'_> = parse(tool, &path, "an object")?;
        let kind = tool
            .kind
            .map(|kind| require_string(Some(kind), &path, "type"));
        match kind.transpose()?.as_deref() {
            None | Some("custom") => {
                require_string(tool.name, &path, "name")?;
                let schema = tool.input_schema.map(RawValue::get);
                if !schema.is_some_and(|schema| schema.starts_with('{')) {
                    let field = format!("{path}.input_schema");
                    return Err(InvalidRequest::new(field, "is required: a JSON schema"));
                }
            }
            Some(kind) if kind == MCP_TOOLSET || has_date(kind) => {}
            Some(kind) => {
                let why = format!(
                    "must be `custom` or a tool of the vendor with its date such as `bash_20241022`, got {kind:?}"
                );
                return Err(InvalidRequest::new(format!("{path}.type"), why));
            }
        }
    }
    Ok(())
}

/// Whether a type ends with a date, as the types of the vendor's tools do: `bash_20241022`.
fn has_date(kind: &str) -> bool {
    let date = kind.rsplit_once('_').map(|(_, date)| date);
    date.is_some_and(|date| date.len() == 8 && date.bytes().all(|b| b.is_ascii_digit()))
}

/// Checks a string, or a list of blocks.
fn check_content(content: &RawValue, path: &str) -> Result<(), InvalidRequest> {
    if content.get().starts_with('"') {
        return Ok(());
    }
    let blocks: Vec<&RawValue> = parse(content, path, "a string or a list of content blocks")?;
    for (index, block) in blocks.into_iter().enumerate() {
        check_block(block, &format!("{path}[{index}]"))?;
    }
    Ok(())
}

fn check_block(block: &RawValue, path: &str) -> Result<(), InvalidRequest> {
    let block: Block<'_> = parse(block, path, "an object")?;
    let kind = require_string(block.kind, path, "type")?;
    match (kind.as_str(), block.content) {
        ("text", _) => string_head(block.text, path, "text").map(drop),
        ("image", _) => check_image_source(block.source, &format!("{path}.source")),
        ("tool_result", Some(content)) => check_content(content, &format!("{path}.content")),
        (kind, _) if is_block_type(kind) => Ok(()),
        (kind, _) => {
            let known = list_alternatives(BLOCK_TYPES);
            let why = format!("must be {known}, got {kind:?}");
            Err(InvalidRequest::new(format!("{path}.type"), why))
        }
    }
}

fn is_block_type(kind: &str) -> bool {
    let is_hosted = BLOCK_SUFFIXES.iter().any(|suffix| kind.ends_with(suffix));
    BLOCK_TYPES.contains(&kind) || kind.starts_with(BLOCK_PREFIX) || is_hosted
}

fn check_image_source(source: Option<&RawValue>, path: &str) -> Result<(), InvalidRequest> {
    let source = source.ok_or_else(|| InvalidRequest::new(path, "is required: an object"))?;
    let source: Source<'_> = parse(source, path, "an object")?;
    match require_string(source.kind, path, "type")?.as_str() {
        "base64" => check_base64_image(&source, path),
        "url" => {
            let url = string_head(source.url, path, "url")?.replace("\\/", "/");
            let is_url = ["http://", "https://"].iter().any(|s| url.starts_with(s));
            match is_url || media::is_data_uri(&url) {
                true => Ok(()),
                false => Err(InvalidRequest::new(
                    format!("{path}.url"),
                    "must be an http or https URL",
                )),
            }
        }
        "file" => require_string(source.file_id, path, "file_id").map(drop),
        other => Err(InvalidRequest::new(
            format!("{path}.type"),
            format!("must be {}, got {other:?}", list_alternatives(SOURCE_TYPES)),
        )),
    }
}

/// Checks `media_type` and `data`, which must be an image of that type.
fn check_base64_image(source: &Source<'_>, path: &str) -> Result<(), InvalidRequest> {
    let declared = require_string(source.media_type, path, "media_type")?;
    let declared = media::normalize_media_type(&declared).into_owned();
    if !IMAGE_TYPES.contains(&declared.as_str()) {
        let known = list_alternatives(IMAGE_TYPES);
        let why = format!("must be {known}, got {declared:?}");
        return Err(InvalidRequest::new(format!("{path}.media_type"), why));
    }
    let data = string_head(source.data, path, "data")?;
    match media::sniff_base64_media_type(&image_head(data)) {
        Some(seen) if seen == declared => Ok(()),
        Some(seen) => {
            let why = format!("must be an image of type {declared}, but its bytes are {seen}");
            Err(InvalidRequest::new(format!("{path}.data"), why))
        }
        None => {
            let why = format!(
                "must be base64 of an image of type {declared}, but its bytes are not those of one"
            );
            Err(InvalidRequest::new(format!("{path}.data"), why))
        }
    }
}

/// The first characters of base64 text, or of the base64 text of a data URI, in JSON text.
fn image_head(text: &str) -> String {
    let data = media::parse_data_uri(text).map_or(text, |uri| uri.data);
    let data = data
        .replace("\\/", "/")
        .replace("\\n", "")
        .replace("\\r", "");
    data.replace('-', "+").replace('_', "/")
}

fn parse<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    path: &str,
    what: &str,
) -> Result<T, InvalidRequest> {
    serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new(path, format!("must be {what}")))
}

/// The string `member` of the object at `path`.
fn require_string(
    raw: Option<&RawValue>,
    path: &str,
    member: &str,
) -> Result<String, InvalidRequest> {
    let missing = || InvalidRequest::new(format!("{path}.{member}"), "is required: a string");
    let text = raw.and_then(|raw| serde_json::from_str(raw.get()).ok());
    text.ok_or_else(missing)
}

/// The first characters of the string `member` of the object at `path`, as JSON text; only these, because the string may be an image.
fn string_head<'a>(
    raw: Option<&'a RawValue>,
    path: &str,
    member: &str,
) -> Result<&'a str, InvalidRequest> {
    let text = raw.and_then(|raw| raw.get().strip_prefix('"')?.strip_suffix('"'));
    let text = text
        .ok_or_else(|| InvalidRequest::new(format!("{path}.{member}"), "is required: a string"))?;
    Ok(&text[..text.floor_char_boundary(HEAD)])
}
