//! Classifies xAI's error responses. A status can stand for several errors; the message tells them apart.

use serde_json::Value;

use crate::adapter::{ErrorBody, HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

const MODERATED_WORDS: &[&str] = &[
    "moderation",
    "moderated",
    "content policy",
    "content-policy",
    "safety",
    "usage guidelines",
];
const KEY_WORDS: &[&str] = &["api key"];
const QUOTA_WORDS: &[&str] = &[
    "credits",
    "spending limit",
    "out of funds",
    "billing",
    "purchase",
];
/// How a field is refused that the upstream does not have: ours is the mistake of sending it, not the client's.
const UNSUPPORTED_WORDS: &[&str] = &["argument not supported"];
/// Codes of a task's end that may go better.
const SERVER_CODES: &[&str] = &["internal_error", "server_error", "unavailable", "timeout"];

/// Reads a refusal.
pub(super) fn read(client: &ProviderClient, answer: &HttpResponse) -> ProviderError {
    let said = ErrorBody::parse(&answer.json());
    let mut error =
        client.response_error(kind(answer.status.as_u16(), &said), answer, &said.message);
    if answer.status.is_success() && said.is_empty() {
        error.message = "the upstream's answer is not what was asked for".into();
    }
    error
}

/// Why a video failed: `error` as `{code, message}`, or a text.
pub(super) fn of_task(client: &ProviderClient, error: &Value) -> ProviderError {
    let said = ErrorBody::parse_error(error);
    client.task_error(task_kind(&said), &said.message)
}

/// What a result is that the vendor made and holds back.
pub(super) fn withheld(what: &str) -> ProviderError {
    let message = format!("the upstream's safety system refused the {what}");
    ProviderError::new(UpstreamErrorKind::Moderated, message)
}

/// Whether a refusal speaks of the request's `n`, which differs from model to model.
pub(super) fn is_of_n(error: &ProviderError) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    error.kind == UpstreamErrorKind::Rejected
        && error
            .message
            .split(|c| !is_letter(c))
            .any(|word| word == "n")
}

fn kind(status: u16, said: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{
        KeyRejected, Moderated, QuotaExhausted, Rejected, Unavailable, UnsupportedByChannel,
    };
    let words = said.message.to_lowercase();
    let says = |list: &[&str]| list.iter().any(|phrase| words.contains(phrase));
    match status {
        400 | 403 | 422 if says(MODERATED_WORDS) => Moderated,
        400 | 401 | 403 if says(KEY_WORDS) => KeyRejected,
        400 | 402 | 403 | 429 if says(QUOTA_WORDS) => QuotaExhausted,
        400 | 422 if says(UNSUPPORTED_WORDS) => UnsupportedByChannel,
        404 if words.starts_with("voice") => Rejected,
        200..300 => Unavailable,
        _ => classify_error(status, &said.code, &said.message),
    }
}

fn task_kind(said: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{Failed, Moderated, Rejected, Unavailable};
    let words = said.message.to_lowercase();
    let code = said.code.to_ascii_lowercase();
    let says = |phrase: &&str| words.contains(*phrase) || code.contains(*phrase);
    if MODERATED_WORDS.iter().any(says) {
        return Moderated;
    }
    match code.as_str() {
        code if SERVER_CODES.contains(&code) => Unavailable,
        "invalid_argument" | "invalid_request_error" => Rejected,
        _ => Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UpstreamErrorKind::{
        Failed, KeyRejected, ModelNotFound, Moderated, QuotaExhausted, RateLimited, Rejected,
        Unavailable, UnsupportedByChannel,
    };

    fn said(code: &str, message: &str) -> ErrorBody {
        ErrorBody {
            code: code.into(),
            message: message.into(),
            param: String::new(),
        }
    }

    #[test]
    fn words_tell_apart_what_statuses_do_not() {
        for (status, message, expected) in [
            (400, "Invalid value for aspect_ratio", Rejected),
            (400, "Incorrect API key provided: xa***1.", KeyRejected),
            (
                400,
                "The prompt was rejected by content moderation.",
                Moderated,
            ),
            (401, "Unauthorized", KeyRejected),
            (
                403,
                "Generated content violates our usage guidelines",
                Moderated,
            ),
            (
                403,
                "Your team has used all available credits",
                QuotaExhausted,
            ),
            (403, "Forbidden", KeyRejected),
            (404, "The model grok-9 does not exist", ModelNotFound),
            (400, "Argument not supported: size", UnsupportedByChannel),
            (404, "Voice not found", Rejected),
            (422, "Failed to deserialize the JSON body", Rejected),
            (429, "Too many requests", RateLimited),
            (
                429,
                "Your team reached its monthly spending limit",
                QuotaExhausted,
            ),
            (503, "overloaded", Unavailable),
            (200, "", Unavailable),
        ] {
            assert_eq!(
                kind(status, &said("", message)),
                expected,
                "{status} {message}"
            );
        }
        for (code, message, expected) in [
            ("content_moderated", "", Moderated),
            ("", "blocked by moderation", Moderated),
            ("INTERNAL_ERROR", "", Unavailable),
            ("invalid_argument", "", Rejected),
            ("", "", Failed),
        ] {
            assert_eq!(
                task_kind(&said(code, message)),
                expected,
                "{code} {message}"
            );
        }
    }

    #[test]
    fn refusals_of_n_are_known() {
        for (message, expected) in [
            ("n must be at most 3", true),
            ("invalid value for `n`: 10", true),
            ("\"n\": too large", true),
            ("an invalid prompt", false),
            ("n_frames is unknown", false),
        ] {
            let error = ProviderError::new(Rejected, message);
            assert_eq!(is_of_n(&error), expected, "{message}");
        }
        assert!(!is_of_n(&ProviderError::new(RateLimited, "n")));
    }
}
