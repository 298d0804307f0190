//! Passes a complete response on: the same bytes with the model's name replaced, and without the operator's costs.

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::response_summary::{ResponseSummary, find_usage_text, summarize_response};
use crate::error::MalformedResponse;
use crate::format::ForwardedResponse;
use crate::operator_costs::{may_have_costs, without_costs};

/// Passes a response on; see [`crate::Format::forward_response`].
pub(in crate::chat_completions) fn forward_response(
    body: &Bytes,
    model: &str,
) -> Result<ForwardedResponse, MalformedResponse> {
    let summary = summarize_response(body)?;
    if summary.choices.is_none_or(|choices| choices == 0) {
        return Err(MalformedResponse::Invalid(
            "the response has no `choices`".to_owned(),
        ));
    }
    let ResponseSummary {
        usage, text_bytes, ..
    } = summary;
    let quoted = Value::from(model).to_string();
    let mut edits: Vec<(Range<usize>, String)> = Vec::new();
    if let Some(current) = summary.model.filter(|current| *current != quoted) {
        edits.push((span_of(body, current), quoted));
    }
    if may_have_costs(body)
        && let Some(usage) = find_usage_text(body)
        && let Some(new) = without_costs(usage)
    {
        edits.push((span_of(body, usage), new));
    }
    Ok(ForwardedResponse {
        body: apply_edits(body, edits),
        id: None,
        usage,
        text_bytes,
    })
}

/// The text with these ranges replaced, which do not overlap.
fn apply_edits(text: &Bytes, mut edits: Vec<(Range<usize>, String)>) -> Bytes {
    if edits.is_empty() {
        return text.clone();
    }
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (Vec::with_capacity(text.len() + 64), 0);
    for (range, new) in edits {
        out.extend_from_slice(&text[at..range.start]);
        out.extend_from_slice(new.as_bytes());
        at = range.end;
    }
    out.extend_from_slice(&text[at..]);
    out.into()
}

/// The byte range of `piece`, which must be a slice of `text`.
pub(in crate::chat_completions) fn span_of(text: &[u8], piece: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let start = start.min(text.len());
    start..(start + piece.len()).min(text.len())
}
