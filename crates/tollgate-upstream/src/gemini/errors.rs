//! Classifies Google's errors, `{error: {code, message, status, details}}`, of requests and of failed operations.

use std::time::Duration;

use serde_json::Value;
use tollgate_chat::Format as _;
use tollgate_chat::generate_content::GenerateContent;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// How Imagen and Veo say that a prompt or image was refused: with a status of the client's, in words.
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

/// What an answer says that is no success.
pub(super) fn response_error(client: &ProviderClient, answer: &HttpResponse) -> ProviderError {
    let status = answer.status.as_u16();
    let words = GenerateContent.read_error(status, &answer.body);
    let error = &answer.json()["error"];
    let kind = kind(status, &words.code, &words.message, error);
    let mut told = client.response_error(kind, answer, &words.message);
    let asked = words.retry_after.map(|s| Duration::from_secs(s.into()));
    told.retry_after = told.retry_after.or(asked);
    told
}

/// What the error of an operation says that has ended: a status of gRPC and a sentence.
pub(super) fn of_operation(client: &ProviderClient, error: &Value) -> ProviderError {
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
    let silent = "the upstream's task failed without a reason";
    ProviderError::new(kind, if message.is_empty() { silent } else { &message })
}

fn kind(status: u16, code: &str, message: &str, error: &Value) -> UpstreamErrorKind {
    let kind = classify_error(status, code, message);
    match status {
        400 if kind == UpstreamErrorKind::Rejected && is_unsafe(message) => {
            UpstreamErrorKind::Moderated
        }
        // Something about the project that the client cannot mend.
        400 if kind == UpstreamErrorKind::Rejected && code == "FAILED_PRECONDITION" => {
            UpstreamErrorKind::UnsupportedByChannel
        }
        403 if has_detail(error, "reason", "BILLING") => UpstreamErrorKind::QuotaExhausted,
        // A minute's rate goes by, a day's does not.
        429 if has_detail(error, "quotaId", "PerDay") => UpstreamErrorKind::QuotaExhausted,
        499 => UpstreamErrorKind::Unavailable,
        _ => kind,
    }
}

fn is_unsafe(message: &str) -> bool {
    let message = message.to_lowercase();
    UNSAFE.iter().any(|words| message.contains(words))
}

/// Whether anywhere in the error's details a member `name` holds `part`.
fn has_detail(error: &Value, name: &str, part: &str) -> bool {
    match error {
        Value::Object(members) => members.iter().any(|(key, value)| {
            let is_it = key == name && value.as_str().is_some_and(|text| text.contains(part));
            is_it || has_detail(value, name, part)
        }),
        Value::Array(items) => items.iter().any(|item| has_detail(item, name, part)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, RateLimited, Rejected, Unavailable,
        UnsupportedByChannel,
    };
    use serde_json::json;

    #[test]
    fn statuses_words_and_details_decide() {
        let none = json!({});
        let day = json!({ "details": [{
            "@type": "type.googleapis.com/google.rpc.QuotaFailure",
            "violations": [{ "quotaId": "GenerateRequestsPerDayPerProjectPerModel" }],
        }] });
        let minute = json!({ "details": [{ "violations": [{ "quotaId": "PerMinute" }] }] });
        let billing = json!({ "details": [{ "reason": "BILLING_DISABLED" }] });
        for (status, code, message, error, expected) in [
            (400, "INVALID_ARGUMENT", "bad ratio", &none, Rejected),
            (
                400,
                "INVALID_ARGUMENT",
                "The prompt contains sensitive words that violate Google's Responsible AI practices.",
                &none,
                Moderated,
            ),
            (
                400,
                "API_KEY_INVALID",
                "API key not valid.",
                &none,
                KeyRejected,
            ),
            (
                400,
                "FAILED_PRECONDITION",
                "User location is not supported for the API use.",
                &none,
                KeyRejected,
            ),
            (
                400,
                "FAILED_PRECONDITION",
                "Please enable billing on project x.",
                &none,
                QuotaExhausted,
            ),
            (
                400,
                "FAILED_PRECONDITION",
                "no bucket",
                &none,
                UnsupportedByChannel,
            ),
            (401, "UNAUTHENTICATED", "", &none, KeyRejected),
            (403, "PERMISSION_DENIED", "", &none, KeyRejected),
            (403, "PERMISSION_DENIED", "", &billing, QuotaExhausted),
            (
                404,
                "NOT_FOUND",
                "models/x is not found",
                &none,
                ModelNotFound,
            ),
            (429, "RESOURCE_EXHAUSTED", "slow down", &minute, RateLimited),
            (429, "RESOURCE_EXHAUSTED", "slow down", &day, QuotaExhausted),
            (499, "CANCELLED", "", &none, Unavailable),
            (500, "INTERNAL", "", &none, Unavailable),
            (503, "UNAVAILABLE", "", &none, Unavailable),
            (504, "DEADLINE_EXCEEDED", "", &none, Unavailable),
        ] {
            assert_eq!(
                kind(status, code, message, error),
                expected,
                "{status} {message}"
            );
        }
    }
}
