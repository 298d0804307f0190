//! Summarizes and validates a request without parsing its contents (see docs/chat.md).

mod attachments;
mod json_checks;
mod settings;

use memchr::memmem;
use serde::Deserialize;

use attachments::count_attachments;
use json_checks::{RawMember, check_array, check_object, parse_string};
use settings::{check_generation_config, check_safety_settings, parse_generation_config};

use super::constants::NAME;
use super::file_uri::{is_google_upload, is_youtube};
use crate::attachments::count_media_data;
use crate::error::InvalidRequest;
use crate::format::RequestSummary;

pub(super) use settings::{GenerationConfig, parse_thinking_config};

/// The top-level members, as JSON text that is not parsed yet.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TopLevel<'a> {
    #[serde(borrow)]
    contents: RawMember<'a>,
    #[serde(borrow, alias = "system_instruction")]
    system_instruction: RawMember<'a>,
    #[serde(borrow, alias = "generation_config")]
    generation_config: RawMember<'a>,
    #[serde(borrow, alias = "safety_settings")]
    safety_settings: RawMember<'a>,
    #[serde(borrow)]
    tools: RawMember<'a>,
    #[serde(borrow, alias = "tool_config")]
    tool_config: RawMember<'a>,
    #[serde(borrow, alias = "cached_content")]
    cached_content: RawMember<'a>,
    #[serde(borrow)]
    model: RawMember<'a>,
}

/// See [`crate::Format::summarize_request`].
pub(super) fn summarize_request(body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
    let top = parse_top_level(body)?;
    let contents = top
        .contents
        .ok_or_else(|| InvalidRequest::new("contents", "is required"))?;
    if !check_array(contents, "contents")? {
        return Err(InvalidRequest::new(
            "contents",
            "must hold at least one item",
        ));
    }
    for (raw, field) in [
        (top.system_instruction, "systemInstruction"),
        (top.tool_config, "toolConfig"),
    ] {
        raw.map_or(Ok(()), |raw| check_object(raw, field))?;
    }
    if let Some(tools) = top.tools {
        check_array(tools, "tools")?;
    }
    parse_string(top.cached_content, "cachedContent")?;
    check_safety_settings(top.safety_settings)?;
    let mut summary = RequestSummary {
        n: 1,
        // A model in the body could contradict the path. The gateway may have to download external links.
        is_native: top.model.is_none() && !has_external_links(body),
        ..RequestSummary::default()
    };
    if let Some(raw) = top.generation_config {
        check_generation_config(&parse_generation_config(raw)?, &mut summary)?;
    }
    summary.attachments = count_attachments(body);
    if summary.attachments > 0 {
        summary.payload_bytes = count_media_data(body);
    }
    Ok(summary)
}

fn parse_top_level(body: &[u8]) -> Result<TopLevel<'_>, InvalidRequest> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(InvalidRequest::body("the body must be a JSON object"));
    }
    serde_json::from_slice(body).map_err(|error| {
        InvalidRequest::body(format!("the body is not a valid {NAME} request: {error}"))
    })
}

/// The settings of a request. `None` if it has none or they are malformed.
pub(super) fn generation_config(body: &[u8]) -> Option<GenerationConfig<'_>> {
    parse_generation_config(parse_top_level(body).ok()?.generation_config?).ok()
}

/// Whether a part links to a file that most models cannot fetch: neither a Google upload nor a
/// YouTube video.
fn has_external_links(body: &[u8]) -> bool {
    ["\"fileUri\"", "\"file_uri\""].iter().any(|name| {
        memmem::find_iter(body, name).any(|at| {
            let rest = body[at + name.len()..].trim_ascii_start();
            let value = rest.strip_prefix(b":").unwrap_or_default();
            let value = value.trim_ascii_start().strip_prefix(b"\"");
            let value = value.unwrap_or_default().split(|b| *b == b'"').next();
            let url = std::str::from_utf8(value.unwrap_or_default()).unwrap_or_default();
            url.starts_with("http") && !is_google_upload(url) && !is_youtube(url)
        })
    })
}
