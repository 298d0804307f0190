//! Classifies Google's errors, `{error: {code, message, status, details}}`, of requests and of failed operations.

use std::time::Duration;

use serde_json::Value;
use tollgate_chat::Format as _;
use tollgate_chat::generate_content::GenerateContent;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Phrases in the messages of Imagen and Veo about a prompt or image that was moderated; the status is 400.
const UNSAFE: &[&str] = &[
    "responsible ai practices",
    "usage guidelines",
    "sensitive words",
    "safety filter",
    "safety settings",
    "violates our policies",
    "prohibited content",
    "blocked by our content",
];

/// The error of a response that is not a success.
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let status = response.status.as_u16();
    let body = GenerateContent.read_error(status, &response.body);
    let error = &response.json()["error"];
    let kind = classify(status, &body.code, &body.message, error);
    let mut provider_error = client.response_error(kind, response, &body.message);
    let delay = body.retry_after.map(|s| Duration::from_secs(s.into()));
    provider_error.retry_after = provider_error.retry_after.or(delay);
    provider_error
}

/// The error of a failed operation, which contains a gRPC status and a message.
pub(super) fn operation_error(client: &ProviderClient, error: &Value) -> ProviderError {
    use UpstreamErrorKind::{
        Failed, KeyRejected, ModelNotFound, Moderated, RateLimited, Rejected, Unavailable,
        UnsupportedByChannel,
    };
    let message = error["message"].as_str().unwrap_or_default();
    let kind = match error["code"].as_i64() {
        _ if is_unsafe(message) => Moderated,
        Some(3 | 11) => Rejected,
        Some(5) => ModelNotFound,
        Some(7 | 16) => KeyRejected,
        Some(8) => RateLimited,
        Some(9 | 12) => UnsupportedByChannel,
        Some(4 | 10 | 13 | 14) => Unavailable,
        _ => Failed,
    };
    let message = client.redact(message);
    let without_reason = "the upstream's task failed without an error message";
    ProviderError::new(
        kind,
        if message.is_empty() {
            without_reason
        } else {
            &message
        },
    )
}

fn classify(status: u16, code: &str, message: &str, error: &Value) -> UpstreamErrorKind {
    let kind = classify_error(status, code, message);
    match status {
        400 if kind == UpstreamErrorKind::Rejected && is_unsafe(message) => {
            UpstreamErrorKind::Moderated
        }
        // A problem of the project that the client cannot change.
        400 if kind == UpstreamErrorKind::Rejected && code == "FAILED_PRECONDITION" => {
            UpstreamErrorKind::UnsupportedByChannel
        }
        403 if has_detail(error, "reason", "BILLING") => UpstreamErrorKind::QuotaExhausted,
        // A quota per minute is soon available again, a quota per day is not.
        429 if has_detail(error, "quotaId", "PerDay") => UpstreamErrorKind::QuotaExhausted,
        499 => UpstreamErrorKind::Unavailable,
        _ => kind,
    }
}

fn is_unsafe(message: &str) -> bool {
    let message = message.to_lowercase();
    UNSAFE.iter().any(|phrase| message.contains(phrase))
}

/// Whether the error's details contain, at any depth, a member `name` whose value contains `part`.
fn has_detail(error: &Value, name: &str, part: &str) -> bool {
    match error {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let is_match = key == name && value.as_str().is_some_and(|text| text.contains(part));
            is_match || has_detail(value, name, part)
        }),
        Value::Array(items) => items.iter().any(|item| has_detail(item, name, part)),
        _ => false,
    }
}
