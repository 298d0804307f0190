//! Forwards a complete (non-streaming) response: sets the model's name and reads usage.

use bytes::Bytes;

use super::chunk_summary::{ChunkSummary, as_utf8, split_around_model};
use crate::error::MalformedResponse;
use crate::format::ForwardedResponse;

/// See [`crate::Format::forward_response`].
pub(crate) fn forward_response(
    body: &Bytes,
    model: &str,
) -> Result<ForwardedResponse, MalformedResponse> {
    let summary = ChunkSummary::parse(as_utf8(body)?)?;
    if !summary.has_candidates_or_block() {
        return Err(MalformedResponse::Invalid(
            "a response without candidates".to_owned(),
        ));
    }
    let renamed = split_around_model(body, &summary, model)
        .map(|(before, name, after)| Bytes::from([before, &name, after].concat()));
    Ok(ForwardedResponse {
        id: None,
        usage: summary
            .usage_metadata
            .as_ref()
            .map(|usage| usage.to_usage()),
        text_bytes: summary.text_bytes(),
        body: renamed.unwrap_or_else(|| body.clone()),
    })
}
