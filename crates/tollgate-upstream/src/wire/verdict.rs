//! What an upstream's refusal means for the tries that follow.

use crate::chat::ChatErrorKind;

/// Codes that say that money is the matter, whatever the status.
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "insufficient_user_quota",
    "insufficient_balance",
    "billing_error",
    "billing_hard_limit_reached",
    "billing_not_active",
    "payment_required",
];
/// Words that say so. Google says "exceeded your current quota" of a minute's rate too, so that is not among them.
const QUOTA_WORDS: &[&str] = &[
    "credit balance is too low",
    "insufficient balance",
    "insufficient_quota",
    "reached your specified api usage limits",
    "enable billing",
    "billing hard limit",
    "prepayment credits are depleted",
];
/// Codes that say that this key, or this operator's account, may not ask.
const KEY_CODES: &[&str] = &[
    "API_KEY_INVALID",
    "invalid_api_key",
    "invalid_authentication",
];
const KEY_WORDS: &[&str] = &[
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
/// What follows the word "model" within a sentence that says that there is none.
const MODEL_WORDS: &[&str] = &[
    "not found",
    "not exist",
    "no such",
    "unknown",
    "not a valid",
];

/// The kind of a refusal with `status`, an upstream's `code` and `message`.
pub(super) fn kind(status: u16, code: &str, message: &str) -> ChatErrorKind {
    use ChatErrorKind::{
        KeyRefused, ModelMissing, QuotaExhausted, RateLimited, Rejected, Unavailable,
    };
    let words = message.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|phrase| words.contains(phrase));
    let is_client_status = (400..500).contains(&status);
    let is_coded = |list: &[&str]| list.iter().any(|known| code.eq_ignore_ascii_case(known));
    if matches!(status, 400 | 402 | 403 | 429) && (is_coded(QUOTA_CODES) || says(QUOTA_WORDS)) {
        return QuotaExhausted;
    }
    if status == 400 && (is_coded(KEY_CODES) || says(KEY_WORDS)) {
        return KeyRefused;
    }
    if is_client_status && is_coded(MODEL_CODES) {
        return ModelMissing;
    }
    match status {
        402 => QuotaExhausted,
        401 | 403 => KeyRefused,
        // Something that the client named is missing (a stored response, a file): nobody else has it either.
        404 if words.contains(" with id ") => Rejected,
        404 => ModelMissing,
        400 if lacks_model(&words) => ModelMissing,
        429 => RateLimited,
        408 | 409 => Unavailable,
        400..=499 => Rejected,
        _ => Unavailable,
    }
}

/// Whether a sentence begins with the model and says that there is none. Not everywhere in it: a client's own words are
/// often quoted further on.
fn lacks_model(words: &str) -> bool {
    let head = words
        .char_indices()
        .nth(160)
        .map_or(words, |(at, _)| &words[..at]);
    let Some(at) = head.find("model") else {
        return head.starts_with("unknown model");
    };
    at < 24 && MODEL_WORDS.iter().any(|phrase| head[at..].contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::ChatErrorKind::{
        KeyRefused, ModelMissing, QuotaExhausted, RateLimited, Rejected, Unavailable,
    };

    #[test]
    fn statuses_codes_and_words_decide() {
        for (status, code, message, expected) in [
            (400, "", "messages: at least one is required", Rejected),
            (
                400,
                "context_length_exceeded",
                "too long for this model",
                Rejected,
            ),
            (
                400,
                "",
                "Your credit balance is too low to access the API",
                QuotaExhausted,
            ),
            (400, "API_KEY_INVALID", "API key not valid.", KeyRefused),
            (
                400,
                "INVALID_ARGUMENT",
                "API key not valid. Please pass a valid one.",
                KeyRefused,
            ),
            (
                400,
                "FAILED_PRECONDITION",
                "User location is not supported for the API use.",
                KeyRefused,
            ),
            (
                400,
                "invalid_request_error",
                "Model Not Exist",
                ModelMissing,
            ),
            (400, "", "The model `gpt-9` does not exist", ModelMissing),
            (
                400,
                "",
                "tools[0]: the function `model` was not found",
                Rejected,
            ),
            (400, "model_not_found", "x", ModelMissing),
            (401, "", "", KeyRefused),
            (402, "", "Insufficient Balance", QuotaExhausted),
            (403, "", "forbidden", KeyRefused),
            (403, "insufficient_quota", "", QuotaExhausted),
            (
                403,
                "model_not_found",
                "the project has no access",
                ModelMissing,
            ),
            (404, "", "not found", ModelMissing),
            (
                404,
                "",
                "Previous response with id 'resp_1' not found.",
                Rejected,
            ),
            (408, "", "", Unavailable),
            (409, "", "", Unavailable),
            (413, "", "", Rejected),
            (415, "", "", Rejected),
            (422, "", "", Rejected),
            (429, "rate_limit_exceeded", "slow down", RateLimited),
            (
                429,
                "RESOURCE_EXHAUSTED",
                "You exceeded your current quota",
                RateLimited,
            ),
            (
                429,
                "insufficient_quota",
                "You exceeded your current quota",
                QuotaExhausted,
            ),
            (500, "", "", Unavailable),
            (503, "", "", Unavailable),
            (529, "overloaded_error", "Overloaded", Unavailable),
            (302, "", "", Unavailable),
            (200, "", "", Unavailable),
        ] {
            assert_eq!(
                kind(status, code, message),
                expected,
                "{status} {code} {message}"
            );
        }
    }
}
