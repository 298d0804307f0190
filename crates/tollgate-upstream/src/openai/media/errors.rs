//! Classifies error responses of OpenAI and compatible servers. <https://platform.openai.com/docs/guides/error-codes>

use http::HeaderMap;
use serde_json::Value;

use crate::adapter::{ErrorBody, HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// Where the server says how it names the request.
const REQUEST_ID: &str = "x-request-id";
/// Longest such name that is passed on.
const REQUEST_ID_MAX: usize = 100;

/// Codes of a safety system.
const MODERATED_CODES: &[&str] = &[
    "moderation_blocked",
    "content_policy_violation",
    "content_filter",
];
/// Words of one.
const MODERATED_WORDS: &[&str] = &["safety system", "safety_violations", "content policy"];
/// Codes that say that the server does not know a field: ours is the mistake of asking it, not the client's.
const UNSUPPORTED_CODES: &[&str] = &["unknown_parameter", "unsupported_parameter"];
/// Codes of a task's end that may go better.
const SERVER_CODES: &[&str] = &[
    "server_error",
    "internal_error",
    "internal_server_error",
    "server_is_overloaded",
    "slow_down",
    "timeout",
];

/// Reads a refusal.
pub(super) fn read(client: &ProviderClient, answer: &HttpResponse) -> ProviderError {
    let said = ErrorBody::parse(&answer.json());
    let mut error =
        client.response_error(kind(answer.status.as_u16(), &said), answer, &said.message);
    if answer.status.is_success() && said.is_empty() {
        error.message = "the upstream's answer is not what was asked for".into();
    }
    if let Some(id) = request_id(&answer.headers) {
        error.message += &format!(" (the upstream's request {id})");
    }
    error
}

/// Why a task or an item failed: `error` as `{code, message, type}`, or a text.
pub(super) fn of_task(client: &ProviderClient, error: &Value) -> ProviderError {
    let said = ErrorBody::parse_error(error);
    client.task_error(task_kind(&said), &said.message)
}

fn kind(status: u16, said: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, Unavailable, UnsupportedByChannel,
    };
    if is_moderated(said) {
        return Moderated;
    }
    if status < 300 {
        // An error behind a good status: only the words tell.
        let told = classify_error(400, &said.code, &said.message);
        let number = said.code.parse().ok();
        return match told {
            QuotaExhausted | KeyRejected | ModelNotFound => told,
            _ => number
                .filter(|number| (400..600).contains(number))
                .map_or(Unavailable, |number| {
                    classify_error(number, "", &said.message)
                }),
        };
    }
    if UNSUPPORTED_CODES.contains(&said.code.as_str()) {
        return UnsupportedByChannel;
    }
    // An organisation that has not shown its papers may use all models but the newest.
    if status == 403 && said.message.contains("verified to use the model") {
        return ModelNotFound;
    }
    classify_error(status, &said.code, &said.message)
}

fn task_kind(said: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{Failed, Moderated, Rejected, Unavailable};
    if is_moderated(said) {
        return Moderated;
    }
    match said.code.as_str() {
        code if SERVER_CODES.contains(&code) => Unavailable,
        "rate_limit_exceeded" => UpstreamErrorKind::RateLimited,
        "insufficient_quota" => UpstreamErrorKind::QuotaExhausted,
        "invalid_request_error" | "invalid_value" => Rejected,
        _ => Failed,
    }
}

fn is_moderated(said: &ErrorBody) -> bool {
    let words = said.message.to_lowercase();
    MODERATED_CODES.contains(&said.code.as_str())
        || MODERATED_WORDS.iter().any(|phrase| words.contains(phrase))
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && (1..=REQUEST_ID_MAX).contains(&id.len())).then_some(id)
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
    fn refusals_are_told_apart() {
        for (status, code, message, expected) in [
            (400, "invalid_value", "Invalid size", Rejected),
            (
                400,
                "unknown_parameter",
                "Unknown parameter: 'x'.",
                UnsupportedByChannel,
            ),
            (400, "moderation_blocked", "", Moderated),
            (
                400,
                "image_generation_user_error",
                "Your request was rejected by the safety system. safety_violations=[sexual].",
                Moderated,
            ),
            (401, "invalid_api_key", "", KeyRejected),
            (
                403,
                "",
                "Your organization must be verified to use the model `gpt-image-2`.",
                ModelNotFound,
            ),
            (403, "", "forbidden", KeyRejected),
            (404, "model_not_found", "", ModelNotFound),
            (408, "", "", Unavailable),
            (429, "rate_limit_exceeded", "", RateLimited),
            (429, "insufficient_quota", "", QuotaExhausted),
            (500, "server_error", "", Unavailable),
            (503, "slow_down", "", Unavailable),
            (200, "", "", Unavailable),
            (200, "insufficient_quota", "no money", QuotaExhausted),
            (200, "429", "busy", RateLimited),
            (200, "content_policy_violation", "", Moderated),
        ] {
            assert_eq!(
                kind(status, &said(code, message)),
                expected,
                "{status} {code}"
            );
        }
        for (code, expected) in [
            ("server_error", Unavailable),
            ("moderation_blocked", Moderated),
            ("invalid_request_error", Rejected),
            ("video_generation_failed", Failed),
            ("", Failed),
        ] {
            assert_eq!(task_kind(&said(code, "")), expected, "{code}");
        }
    }
}
