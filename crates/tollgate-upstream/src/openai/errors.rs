//! Classifies error responses of OpenAI and compatible servers. <https://platform.openai.com/docs/guides/error-codes>

use http::HeaderMap;
use serde_json::Value;

use crate::adapter::{ErrorBody, HttpResponse, ProviderClient, classify_error};
use crate::error::{ProviderError, UpstreamErrorKind};

/// The response header with the server's id of the request.
const REQUEST_ID: &str = "x-request-id";
/// Maximum length of an id that is passed on.
const REQUEST_ID_MAX: usize = 100;

/// Error codes of a safety system.
const MODERATED_CODES: &[&str] = &[
    "moderation_blocked",
    "content_policy_violation",
    "content_filter",
];
/// Phrases of a safety system.
const MODERATED_PHRASES: &[&str] = &["safety system", "safety_violations", "content policy"];
/// Codes for a field that the server does not support: the gateway should not have sent it, so the client is not at fault.
const UNSUPPORTED_CODES: &[&str] = &["unknown_parameter", "unsupported_parameter"];
/// Codes of failed tasks that may succeed at another attempt.
const SERVER_CODES: &[&str] = &[
    "server_error",
    "internal_error",
    "internal_server_error",
    "server_is_overloaded",
    "slow_down",
    "timeout",
];

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
    if let Some(id) = request_id(&response.headers) {
        error.message += &format!(" (the upstream's request {id})");
    }
    error
}

/// Why a task or an item failed: `error` as `{code, message, type}`, or a text.
pub(super) fn task_error(client: &ProviderClient, error: &Value) -> ProviderError {
    let body = ErrorBody::parse_error(error);
    client.task_error(classify_task(&body), &body.message)
}

fn classify(status: u16, body: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{
        KeyRejected, ModelNotFound, Moderated, QuotaExhausted, Unavailable, UnsupportedByChannel,
    };
    if is_moderated(body) {
        return Moderated;
    }
    if status < 300 {
        // An error with a success status: it is classified by code and message alone.
        let kind = classify_error(400, &body.code, &body.message);
        let number = body.code.parse().ok();
        return match kind {
            QuotaExhausted | KeyRejected | ModelNotFound => kind,
            _ => number
                .filter(|number| (400..600).contains(number))
                .map_or(Unavailable, |number| {
                    classify_error(number, "", &body.message)
                }),
        };
    }
    if UNSUPPORTED_CODES.contains(&body.code.as_str()) {
        return UnsupportedByChannel;
    }
    // An organisation that is not verified may use all models except the newest.
    if status == 403 && body.message.contains("verified to use the model") {
        return ModelNotFound;
    }
    classify_error(status, &body.code, &body.message)
}

fn classify_task(body: &ErrorBody) -> UpstreamErrorKind {
    use UpstreamErrorKind::{Failed, Moderated, Rejected, Unavailable};
    if is_moderated(body) {
        return Moderated;
    }
    match body.code.as_str() {
        code if SERVER_CODES.contains(&code) => Unavailable,
        "rate_limit_exceeded" => UpstreamErrorKind::RateLimited,
        "insufficient_quota" => UpstreamErrorKind::QuotaExhausted,
        "invalid_request_error" | "invalid_value" => Rejected,
        _ => Failed,
    }
}

fn is_moderated(body: &ErrorBody) -> bool {
    let message = body.message.to_lowercase();
    MODERATED_CODES.contains(&body.code.as_str())
        || MODERATED_PHRASES
            .iter()
            .any(|phrase| message.contains(phrase))
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let is_plain = id.bytes().all(|byte| byte.is_ascii_graphic());
    (is_plain && (1..=REQUEST_ID_MAX).contains(&id.len())).then_some(id)
}
