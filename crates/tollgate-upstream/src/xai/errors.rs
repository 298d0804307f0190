//! Classifies xAI's error responses. A status can mean several errors; the message distinguishes them.

use serde_json::Value;

use crate::adapter::{ErrorBody, HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

const MODERATED_PHRASES: &[&str] = &[
    "moderation",
    "moderated",
    "content policy",
    "content-policy",
    "safety",
    "usage guidelines",
];
const KEY_PHRASES: &[&str] = &["api key"];
const QUOTA_PHRASES: &[&str] = &[
    "credits",
    "spending limit",
    "out of funds",
    "billing",
    "purchase",
];
/// Messages about a field that the server does not support: the gateway should not have sent it, so the client is not at fault.
const UNSUPPORTED_PHRASES: &[&str] = &["argument not supported"];
/// Codes of failed tasks that may succeed at another attempt.
const SERVER_CODES: &[&str] = &["internal_error", "server_error", "unavailable", "timeout"];

/// The error of a response that is not the expected one.
pub(super) fn response_error(client: &ProviderClient, response: &HttpResponse) -> ProviderError {
    let body = ErrorBody::parse(&response.json());
    let mut error = client.response_error(
        classify(response.status.as_u16(), &body),
        response,
        &body.message,
    );
    if response.status.is_success() && body.is_empty() {
        error.message = "the upstream's response is not of the requested type".into();
    }
    error
}

/// Why a video failed: `error` as `{code, message}`, or a text.
pub(super) fn task_error(client: &ProviderClient, error: &Value) -> ProviderError {
    let body = ErrorBody::parse_error(error);
    client.task_error(classify_task(&body), &body.message)
}

/// The error of a result that was generated but withheld.
pub(super) fn withheld(what: &str) -> ProviderError {
    let message = format!("the upstream's safety system rejected the {what}");
    ProviderError::new(UpstreamErrorKind::Moderated, message)
}

/// Whether an error is about the request's `n`, whose maximum differs from model to model.
pub(super) fn is_about_n(error: &ProviderError) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    error.kind == UpstreamErrorKind::Rejected
        && error
            .message
            .split(|c| !is_letter(c))
            .any(|word| word == "n")
}

fn classify(status: u16, body: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{
        KeyRejected, Moderated, QuotaExhausted, Rejected, Unavailable, UnsupportedByChannel,
    };
    let message = body.message.to_lowercase();
    let has_phrase = |list: &[&str]| list.iter().any(|phrase| message.contains(phrase));
    match status {
        400 | 403 | 422 if has_phrase(MODERATED_PHRASES) => Moderated,
        400 | 401 | 403 if has_phrase(KEY_PHRASES) => KeyRejected,
        400 | 402 | 403 | 429 if has_phrase(QUOTA_PHRASES) => QuotaExhausted,
        400 | 422 if has_phrase(UNSUPPORTED_PHRASES) => UnsupportedByChannel,
        404 if message.starts_with("voice") => Rejected,
        200..300 => Unavailable,
        _ => classify_error(status, &body.code, &body.message),
    }
}

fn classify_task(body: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{Failed, Moderated, Rejected, Unavailable};
    let message = body.message.to_lowercase();
    let code = body.code.to_ascii_lowercase();
    let has_phrase = |phrase: &&str| message.contains(*phrase) || code.contains(*phrase);
    if MODERATED_PHRASES.iter().any(has_phrase) {
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
    use UpstreamErrorKind::{RateLimited, Rejected};

    #[test]
    fn rejections_of_n_are_recognised() {
        for (message, expected) in [
            ("n must be at most 3", true),
            ("invalid value for `n`: 10", true),
            ("\"n\": too large", true),
            ("an invalid prompt", false),
            ("n_frames is unknown", false),
        ] {
            let error = ProviderError::new(Rejected, message);
            assert_eq!(is_about_n(&error), expected, "{message}");
        }
        assert!(!is_about_n(&ProviderError::new(RateLimited, "n")));
    }
}
