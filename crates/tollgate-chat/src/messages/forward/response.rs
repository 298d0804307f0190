//! Forwards a complete (non-streaming) response.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json_edits::{Members, apply_edits, span};
use crate::error::MalformedResponse;
use crate::format::ForwardedResponse;
use crate::messages::stream_read::parse_stream_error;
use crate::messages::usage::UsageCounts;
use crate::operator_costs::without_costs;

/// See [`crate::Format::forward_response`].
pub(crate) fn forward_response(
    body: &Bytes,
    model: &str,
) -> Result<ForwardedResponse, MalformedResponse> {
    let malformed = |why: String| MalformedResponse::Invalid(why);
    let members: Members<'_> = serde_json::from_slice(body)
        .map_err(|error| malformed(format!("the response is not a JSON object: {error}")))?;
    if let Some(error) = members.get("error") {
        return Err(parse_stream_error(error));
    }
    let content = members
        .get("content")
        .ok_or_else(|| malformed("the response has no content".to_owned()))?;
    let text_bytes = count_text_bytes(content)
        .map_err(|error| malformed(format!("the response's content: {error}")))?;
    let usage = members
        .get("usage")
        .map(UsageCounts::parse)
        .unwrap_or_default();
    let reason = members.get("stop_reason").map(|raw| raw.get());
    let is_end = reason.is_none_or(|reason| matches!(reason, "null" | "\"end_turn\""));
    let is_empty = content.get().bytes().all(|b| b"[] \r\n\t".contains(&b));
    if is_empty && is_end && usage.to_usage().is_none_or(|usage| usage.output == 0) {
        return Err(malformed(
            "the response's content is empty, and nothing was generated".to_owned(),
        ));
    }
    let quoted_model = Value::from(model).to_string();
    let mut edits = Vec::new();
    if let Some(raw) = members.get("model").filter(|raw| raw.get() != quoted_model) {
        edits.push((span(body, raw.get()), quoted_model));
    }
    if let Some(raw) = members.get("usage")
        && let Some(new) = without_costs(raw.get())
    {
        edits.push((span(body, raw.get()), new));
    }
    edits.sort_by_key(|(range, _)| range.start);
    let body = match edits.is_empty() {
        true => body.clone(),
        false => Bytes::from(apply_edits(body, &edits)),
    };
    let id = members.get("id");
    let id = id.and_then(|raw| serde_json::from_str(raw.get()).ok());
    Ok(ForwardedResponse {
        body,
        id,
        usage: usage.to_usage(),
        text_bytes,
    })
}

/// The number of bytes of text, thinking (also redacted) and tool arguments.
fn count_text_bytes(content: &RawValue) -> Result<u64, serde_json::Error> {
    #[derive(Deserialize)]
    struct Block<'a> {
        #[serde(borrow)]
        text: Option<&'a RawValue>,
        #[serde(borrow)]
        thinking: Option<&'a RawValue>,
        #[serde(borrow)]
        input: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(content.get())?;
    let length = |raw: &RawValue| match raw.get().strip_prefix('"') {
        // Escapes count with their length in the JSON text: the count is an estimate.
        Some(text) => text.len() as u64 - 1,
        None => raw.get().len() as u64,
    };
    let lengths = blocks
        .iter()
        .flat_map(|block| [block.text, block.thinking, block.input, block.data])
        .flatten();
    Ok(lengths.map(length).sum())
}
