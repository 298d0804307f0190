//! What OpenAI, and servers like it, mean by an answer that is not the one asked for (openai-images.md › Errors).

use http::HeaderMap;
use serde_json::Value;

use crate::provider::{ProviderError, ProviderErrorKind};
use crate::wire::{Answer, Said, Wire, judged};

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
const UNFIT_CODES: &[&str] = &["unknown_parameter", "unsupported_parameter"];
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
pub(super) fn read(wire: &Wire, answer: &Answer) -> ProviderError {
    let said = Said::of(&answer.json());
    let mut error = wire.told(kind(answer.status.as_u16(), &said), answer, &said.message);
    if answer.status.is_success() && said.is_empty() {
        error.message = "the upstream's answer is not what was asked for".into();
    }
    if let Some(id) = request_id(&answer.headers) {
        error.message += &format!(" (the upstream's request {id})");
    }
    error
}

/// Why a task or an item failed: `error` as `{code, message, type}`, or a text.
pub(super) fn of_task(wire: &Wire, error: &Value) -> ProviderError {
    let said = Said::of_error(error);
    wire.failed(task_kind(&said), &said.message)
}

fn kind(status: u16, said: &Said) -> ProviderErrorKind {
    use ProviderErrorKind::{
        ChannelUnfit, KeyRefused, ModelMissing, Moderated, QuotaExhausted, Retryable,
    };
    if is_moderated(said) {
        return Moderated;
    }
    if status < 300 {
        // An error behind a good status: only the words tell.
        let told = judged(400, &said.code, &said.message);
        let number = said.code.parse().ok();
        return match told {
            QuotaExhausted | KeyRefused | ModelMissing => told,
            _ => number
                .filter(|number| (400..600).contains(number))
                .map_or(Retryable, |number| judged(number, "", &said.message)),
        };
    }
    if UNFIT_CODES.contains(&said.code.as_str()) {
        return ChannelUnfit;
    }
    // An organisation that has not shown its papers may use all models but the newest.
    if status == 403 && said.message.contains("verified to use the model") {
        return ModelMissing;
    }
    judged(status, &said.code, &said.message)
}

fn task_kind(said: &Said) -> ProviderErrorKind {
    use ProviderErrorKind::{Failed, Moderated, Rejected, Retryable};
    if is_moderated(said) {
        return Moderated;
    }
    match said.code.as_str() {
        code if SERVER_CODES.contains(&code) => Retryable,
        "rate_limit_exceeded" => ProviderErrorKind::RateLimited,
        "insufficient_quota" => ProviderErrorKind::QuotaExhausted,
        "invalid_request_error" | "invalid_value" => Rejected,
        _ => Failed,
    }
}

fn is_moderated(said: &Said) -> bool {
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
    use ProviderErrorKind::{
        ChannelUnfit, Failed, KeyRefused, ModelMissing, Moderated, QuotaExhausted, RateLimited,
        Rejected, Retryable,
    };

    fn said(code: &str, message: &str) -> Said {
        Said {
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
                ChannelUnfit,
            ),
            (400, "moderation_blocked", "", Moderated),
            (
                400,
                "image_generation_user_error",
                "Your request was rejected by the safety system. safety_violations=[sexual].",
                Moderated,
            ),
            (401, "invalid_api_key", "", KeyRefused),
            (
                403,
                "",
                "Your organization must be verified to use the model `gpt-image-2`.",
                ModelMissing,
            ),
            (403, "", "forbidden", KeyRefused),
            (404, "model_not_found", "", ModelMissing),
            (408, "", "", Retryable),
            (429, "rate_limit_exceeded", "", RateLimited),
            (429, "insufficient_quota", "", QuotaExhausted),
            (500, "server_error", "", Retryable),
            (503, "slow_down", "", Retryable),
            (200, "", "", Retryable),
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
            ("server_error", Retryable),
            ("moderation_blocked", Moderated),
            ("invalid_request_error", Rejected),
            ("video_generation_failed", Failed),
            ("", Failed),
        ] {
            assert_eq!(task_kind(&said(code, "")), expected, "{code}");
        }
    }
}
