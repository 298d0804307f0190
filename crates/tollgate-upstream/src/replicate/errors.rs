//! Classifies Replicate's errors, of responses and of failed predictions.

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Phrases in the error of a failed prediction that mean moderation.
const MODERATION_PHRASES: &[&str] = &[
    "nsfw",
    "sensitive",
    "(e005)",
    "safety",
    "moderation",
    "content policy",
];
/// Phrases about failures after which a retry may succeed.
const RETRY_PHRASES: &[&str] = &[
    "please retry",
    "interrupted",
    "(code: pa)",
    "out of capacity",
];

/// The error of a failed prediction, which is free text.
pub(super) fn task_error(client: &ProviderClient, error: &Value) -> ProviderError {
    let text = error.as_str().unwrap_or_default();
    let lower = text.to_lowercase();
    let has_phrase = |list: &[&str]| list.iter().any(|phrase| lower.contains(phrase));
    let kind = if has_phrase(MODERATION_PHRASES) {
        UpstreamErrorKind::Moderated
    } else if has_phrase(RETRY_PHRASES) {
        UpstreamErrorKind::Unavailable
    } else {
        UpstreamErrorKind::Failed
    };
    match client.redact(text) {
        text if text.is_empty() => {
            ProviderError::new(kind, "the upstream's task failed without an error message")
        }
        text => ProviderError::new(kind, text),
    }
}

/// The error of a response that is not the expected one; its body is a problem document (RFC 7807).
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let json = response.json();
    let detail = json["detail"].as_str().or_else(|| json["title"].as_str());
    let detail = detail.unwrap_or_default();
    let kind = match response.status.as_u16() {
        // The channel has no access to the model; an invalid token is a 401.
        403 | 404 => UpstreamErrorKind::ModelNotFound,
        status => classify_error(status, "", detail),
    };
    client.response_error(kind, response, detail)
}
