//! What Google's refusals mean: `{error: {code, message, status, details}}`, of a request or of an operation that failed.

use std::time::Duration;

use serde_json::Value;
use tollgate_chat::Format as _;
use tollgate_chat::generate_content::GenerateContent;

use crate::provider::{ProviderError, ProviderErrorKind};
use crate::wire::{Answer, Wire, judged};

/// How Imagen and Veo say that a prompt or picture was refused: with a status of the client's, in words.
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
pub(super) fn refusal(wire: &Wire, answer: &Answer) -> ProviderError {
    let status = answer.status.as_u16();
    let words = GenerateContent.read_error(status, &answer.body);
    let error = &answer.json()["error"];
    let kind = kind(status, &words.code, &words.message, error);
    let mut told = wire.told(kind, answer, &words.message);
    let asked = words.retry_after.map(|s| Duration::from_secs(s.into()));
    told.retry_after = told.retry_after.or(asked);
    told
}

/// What the error of an operation says that has ended: a status of gRPC and a sentence.
pub(super) fn of_operation(wire: &Wire, error: &Value) -> ProviderError {
    use ProviderErrorKind::{
        ChannelUnfit, Failed, KeyRefused, ModelMissing, Moderated, RateLimited, Rejected, Retryable,
    };
    let message = error["message"].as_str().unwrap_or_default();
    let kind = match error["code"].as_i64() {
        _ if is_unsafe(message) => Moderated,
        Some(3 | 11) => Rejected,
        Some(5) => ModelMissing,
        Some(7 | 16) => KeyRefused,
        Some(8) => RateLimited,
        Some(9 | 12) => ChannelUnfit,
        Some(4 | 10 | 13 | 14) => Retryable,
        _ => Failed,
    };
    let message = wire.clean(message);
    let silent = "the upstream's task failed without a reason";
    ProviderError::new(kind, if message.is_empty() { silent } else { &message })
}

fn kind(status: u16, code: &str, message: &str, error: &Value) -> ProviderErrorKind {
    let judged = judged(status, code, message);
    match status {
        400 if judged == ProviderErrorKind::Rejected && is_unsafe(message) => {
            ProviderErrorKind::Moderated
        }
        // Something about the project that the client cannot mend.
        400 if judged == ProviderErrorKind::Rejected && code == "FAILED_PRECONDITION" => {
            ProviderErrorKind::ChannelUnfit
        }
        403 if has_detail(error, "reason", "BILLING") => ProviderErrorKind::QuotaExhausted,
        // A minute's rate goes by, a day's does not.
        429 if has_detail(error, "quotaId", "PerDay") => ProviderErrorKind::QuotaExhausted,
        499 => ProviderErrorKind::Retryable,
        _ => judged,
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
    use ProviderErrorKind::{
        ChannelUnfit, KeyRefused, ModelMissing, Moderated, QuotaExhausted, RateLimited, Rejected,
        Retryable,
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
                KeyRefused,
            ),
            (
                400,
                "FAILED_PRECONDITION",
                "User location is not supported for the API use.",
                &none,
                KeyRefused,
            ),
            (
                400,
                "FAILED_PRECONDITION",
                "Please enable billing on project x.",
                &none,
                QuotaExhausted,
            ),
            (400, "FAILED_PRECONDITION", "no bucket", &none, ChannelUnfit),
            (401, "UNAUTHENTICATED", "", &none, KeyRefused),
            (403, "PERMISSION_DENIED", "", &none, KeyRefused),
            (403, "PERMISSION_DENIED", "", &billing, QuotaExhausted),
            (
                404,
                "NOT_FOUND",
                "models/x is not found",
                &none,
                ModelMissing,
            ),
            (429, "RESOURCE_EXHAUSTED", "slow down", &minute, RateLimited),
            (429, "RESOURCE_EXHAUSTED", "slow down", &day, QuotaExhausted),
            (499, "CANCELLED", "", &none, Retryable),
            (500, "INTERNAL", "", &none, Retryable),
            (503, "UNAVAILABLE", "", &none, Retryable),
            (504, "DEADLINE_EXCEEDED", "", &none, Retryable),
        ] {
            assert_eq!(
                kind(status, code, message, error),
                expected,
                "{status} {message}"
            );
        }
    }
}
