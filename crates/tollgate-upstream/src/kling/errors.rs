//! Classifies Kling's errors: the codes of its response envelope and the messages of failed tasks
//! (<https://kling.ai/document-api/api/get-started/error-codes>).

use serde_json::Value;

use crate::adapter::{HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Phrases in the message of a task whose content was rejected. A task has no code, and the only reason in the documentation is "the content risk
/// control of the platform".
const MODERATED_PHRASES: &[&str] = &[
    "risk control",
    "sensitive",
    "content security",
    "content policy",
    "safety",
    "violat",
    "moderation",
    "风控",
    "审核",
    "违规",
    "敏感",
];
/// Beginnings of messages about the client's images, as users report them: the first in new-api's pull
/// request 2532 of 2025, the second in gateways of others.
const IMAGE_PHRASES: &[&str] = &[
    "image pixel is invalid",
    "the resolution or aspect ratio of the input image is invalid",
];
/// Phrases about the provider's own faults: those of its codes 5000 to 5002, 1302 and 1303 (users report the last also as the end of a task), and
/// phrases that suggest another attempt.
const PROVIDER_FAULT_PHRASES: &[&str] = &[
    "internal error",
    "internal timeout",
    "timed out",
    "temporarily unavailable",
    "busy",
    "too fast",
    "resource pack limit",
    "try again",
];

/// The code of the envelope; `None` if the response has no envelope.
pub(super) fn code(response: &HttpResponse) -> Option<i64> {
    response.json()["code"].as_i64()
}

/// The `data` of a successful response.
pub(super) fn data(
    client: &ProviderClient,
    response: &HttpResponse,
) -> Result<Value, ProviderError> {
    let mut json = response.json();
    let code = json["code"].as_i64();
    if response.status.is_success() && code == Some(0) {
        return Ok(json["data"].take());
    }
    let message = json["message"].as_str().unwrap_or_default();
    let kind = code.and_then(classify_code);
    let kind = kind.unwrap_or_else(|| classify_error(response.status.as_u16(), "", message));
    Err(client.response_error(kind, response, message))
}

fn classify_code(code: i64) -> Option<UpstreamErrorKind> {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, RateLimited, Rejected, Unavailable,
        UnsupportedByChannel,
    };
    Some(match code {
        // 1304: the IP address of this machine is not on the account's list.
        1000..=1004 | 1304 => KeyRejected,
        // Has HTTP status 429, but waiting does not help.
        1100..=1102 => QuotaExhausted,
        1103 | 1203 => ModelNotFound,
        1200 | 1201 => Rejected,
        1202 => UnsupportedByChannel,
        1300 | 1301 => Moderated,
        1302 | 1303 => RateLimited,
        5000..=5002 => Unavailable,
        _ => return None,
    })
}

/// The error of a failed task. If the message is ambiguous, the error is final, because another attempt would be charged again.
pub(super) fn task_error(client: &ProviderClient, message: &str) -> ProviderError {
    client.task_error(classify_message(message), message)
}

fn classify_message(message: &str) -> UpstreamErrorKind {
    let message = message.to_lowercase();
    let has_phrase = |list: &[&str]| list.iter().any(|phrase| message.contains(phrase));
    // A message about the content may suggest another attempt with another prompt, so this is checked first.
    if has_phrase(MODERATED_PHRASES) {
        UpstreamErrorKind::Moderated
    } else if has_phrase(IMAGE_PHRASES) {
        UpstreamErrorKind::Rejected
    } else if has_phrase(PROVIDER_FAULT_PHRASES) {
        UpstreamErrorKind::Unavailable
    } else {
        UpstreamErrorKind::Failed
    }
}
