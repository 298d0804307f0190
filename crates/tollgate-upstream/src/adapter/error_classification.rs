//! Classifies an upstream's error by HTTP status, machine-readable code and message: the rules that OpenAI's, Anthropic's and
//! Google's chats and most providers of tasks share.

use crate::error::UpstreamErrorKind;

/// Codes for used-up credit or quota, whatever the status.
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "insufficient_user_quota",
    "insufficient_balance",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "payment_required",
];
/// Phrases for the same. Not "exceeded your current quota": Google says that of a rate per minute too.
const QUOTA_PHRASES: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient_quota",
    "reached your specified api usage limits",
    "enable billing",
    "billing hard limit",
    "prepayment credits are depleted",
];
/// Codes and phrases for a key, or an operator's account, that is not accepted.
const KEY_CODES: &[&str] = &[
    "API_KEY_INVALID",
    "invalid_api_key",
    "invalid_authentication",
];
const KEY_PHRASES: &[&str] = &[
    "api key not valid",
    "api key expired",
    "api key not found",
    "location is not supported",
];
const MODEL_CODES: &[&str] = &[
    "model_not_found",
    "model_not_available",
    "invalid_model",
    "unknown_model",
    "unsupported_model",
];
/// Codes about a conversation that the vendor stores: the client sends its history again.
const THREAD_CODES: &[&str] = &[
    "thread_unsupported_request",
    "thread_not_found",
    "thread_already_continued",
    "thread_continue_in_flight",
];
/// Phrases that follow the word "model" in a message about a missing model.
const MODEL_PHRASES: &[&str] = &[
    "not found",
    "not exist",
    "no such",
    "unknown",
    "not a valid",
];

/// The kind of an error response.
pub(crate) fn classify_error(status: u16, code: &str, message: &str) -> UpstreamErrorKind {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, QuotaExhausted, RateLimited, Rejected, Unavailable,
    };
    let message = message.to_lowercase();
    let has_phrase = |list: &[&str]| list.iter().any(|phrase| message.contains(phrase));
    let is_client_status = (400..500).contains(&status);
    let has_code = |list: &[&str]| list.iter().any(|known| code.eq_ignore_ascii_case(known));
    if is_client_status && has_code(THREAD_CODES) {
        return Rejected;
    }
    if matches!(status, 400 | 402 | 403 | 429)
        && (has_code(QUOTA_CODES) || has_phrase(QUOTA_PHRASES))
    {
        return QuotaExhausted;
    }
    if status == 400 && (has_code(KEY_CODES) || has_phrase(KEY_PHRASES)) {
        return KeyRejected;
    }
    if is_client_status && has_code(MODEL_CODES) {
        return ModelNotFound;
    }
    match status {
        402 => QuotaExhausted,
        401 | 403 => KeyRejected,
        // Something that the client named is missing (a stored response, a file): no other channel has it either.
        404 if message.contains(" with id ") => Rejected,
        404 => ModelNotFound,
        400 if is_about_missing_model(&message) => ModelNotFound,
        429 => RateLimited,
        408 | 409 => Unavailable,
        400..=499 => Rejected,
        _ => Unavailable,
    }
}

/// Whether a lower-case message says near its beginning that the model is missing. Further on a client's own text may be
/// quoted.
fn is_about_missing_model(message: &str) -> bool {
    let head = message
        .char_indices()
        .nth(160)
        .map_or(message, |(at, _)| &message[..at]);
    let Some(at) = head.find("model") else {
        return head.starts_with("unknown model");
    };
    at < 24
        && MODEL_PHRASES
            .iter()
            .any(|phrase| head[at..].contains(phrase))
}
