//! Passes a complete response on: the same bytes with the model's name replaced.

use std::ops::Range;

use bytes::Bytes;
use serde_json::Value;

use super::response_scan::{ResponseScan, scan_response};
use crate::error::MalformedResponse;
use crate::format::ForwardedResponse;

/// Passes a response on; see [`crate::Format::forward_response`].
pub(in crate::chat_completions) fn forward_response(
    body: &Bytes,
    model: &str,
) -> Result<ForwardedResponse, MalformedResponse> {
    let scan = scan_response(body)?;
    if scan.choices.is_none_or(|choices| choices == 0) {
        return Err(MalformedResponse::Invalid(
            "the response has no `choices`".to_owned(),
        ));
    }
    let ResponseScan {
        usage, text_bytes, ..
    } = scan;
    let quoted = Value::from(model).to_string();
    let body = match scan.model.filter(|current| *current != quoted) {
        Some(current) => {
            let span = span_of(body, current);
            [&body[..span.start], quoted.as_bytes(), &body[span.end..]]
                .concat()
                .into()
        }
        None => body.clone(),
    };
    Ok(ForwardedResponse {
        body,
        id: None,
        usage,
        text_bytes,
    })
}

/// The byte range of `piece`, which must be a slice of `text`.
pub(in crate::chat_completions) fn span_of(text: &[u8], piece: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let start = start.min(text.len());
    start..(start + piece.len()).min(text.len())
}
