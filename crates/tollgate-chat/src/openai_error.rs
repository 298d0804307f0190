//! Errors of both formats of OpenAI: its error object for clients, and the error bodies of every shape that upstreams send.

use serde_json::{Value, json};

use crate::error::{ErrorBody, UpstreamError};

/// Longer messages of upstreams are truncated.
const MAX_MESSAGE_CHARS: usize = 500;

/// HTTP status, type on paths with the gateway's envelope, OpenAI's own type and code.
const TYPES: &[(u16, &str, &str, Option<&str>)] = &[
    (400, "invalid_request_error", "invalid_request_error", None),
    (
        401,
        "authentication_error",
        "authentication_error",
        Some("invalid_api_key"),
    ),
    (
        402,
        "payment_required",
        "insufficient_quota",
        Some("insufficient_quota"),
    ),
    (403, "permission_error", "permission_error", None),
    (404, "not_found_error", "invalid_request_error", None),
    (410, "not_found_error", "invalid_request_error", None),
    (
        429,
        "rate_limit_error",
        "rate_limit_error",
        Some("rate_limit_exceeded"),
    ),
    (500, "server_error", "server_error", None),
    (502, "bad_gateway", "bad_gateway", None),
    (503, "unavailable", "server_error", None),
    (504, "bad_gateway", "server_error", None),
];

/// See [`crate::Format::write_error`].
pub(crate) fn write_error(error: &ErrorBody) -> Vec<u8> {
    let row = TYPES.iter().find(|row| row.0 == error.status);
    let default_type = if error.status < 500 {
        "invalid_request_error"
    } else {
        "server_error"
    };
    let (envelope_type, openai_type, default_code) = row
        .map_or((default_type, default_type, None), |row| {
            (row.1, row.2, row.3)
        });
    let body = if error.bare {
        let code = error.code.as_deref().or(default_code);
        json!({"error": {"message": error.message, "type": openai_type, "param": error.param, "code": code}})
    } else {
        json!({"error": {"code": error.status, "message": error.message, "type": envelope_type}})
    };
    body.to_string().into_bytes()
}

/// See [`crate::Format::read_error`].
pub(crate) fn read_error(status: u16, body: &[u8]) -> UpstreamError {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => {
            let mut parsed = parse_error(&value);
            if parsed.message.is_empty() {
                parsed.message = format!("the upstream responded with status {status}");
            }
            parsed
        }
        Err(_) => UpstreamError {
            message: message_from_text(status, &text),
            ..UpstreamError::default()
        },
    }
}

fn message_from_text(status: u16, text: &str) -> String {
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        return format!("the upstream responded with status {status} and no error message");
    }
    truncate(text)
}

fn truncate(text: &str) -> String {
    let text = text.trim();
    let end = text
        .char_indices()
        .nth(MAX_MESSAGE_CHARS)
        .map_or(text.len(), |(at, _)| at);
    text[..end].to_owned()
}

/// Reads an error object. Google's compatible endpoint wraps it in a list; some vendors have no `error` object, or only a string.
pub(crate) fn parse_error(value: &Value) -> UpstreamError {
    let value = match value {
        Value::Array(list) => list.first().unwrap_or(value),
        _ => value,
    };
    let error = value
        .get("error")
        .filter(|error| !error.is_null())
        .unwrap_or(value);
    let field = |name: &str| match &error[name] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let message = match error {
        Value::String(text) => text.clone(),
        _ => ["message", "detail", "msg", "error_msg"]
            .into_iter()
            .find_map(field)
            .unwrap_or_default(),
    };
    let names: Vec<String> = ["code", "type", "status"]
        .into_iter()
        .filter_map(field)
        .collect();
    let number = names
        .iter()
        .find_map(|name| name.parse().ok().filter(|n| (400..600).contains(n)));
    let name = names
        .iter()
        .find(|name| !name.is_empty() && name.parse().map_or(true, |n: u64| n >= 600));
    UpstreamError {
        status: number.or_else(|| names.iter().find_map(|name| status_of(name))),
        code: truncate(name.map_or("", String::as_str)),
        message: truncate(&message),
        retry_after: retry_after(error),
        param: field("param").map(|param| truncate(&param)),
        details: None,
    }
}

/// HTTP statuses, each with the error codes and types that are mapped to it.
const STATUSES: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "invalid_request_error",
            "context_length_exceeded",
            "content_filter",
            "invalid_prompt",
            "INVALID_ARGUMENT",
            "FAILED_PRECONDITION",
        ],
    ),
    (
        401,
        &[
            "authentication_error",
            "invalid_api_key",
            "invalid_authentication_error",
            "UNAUTHENTICATED",
        ],
    ),
    (
        402,
        &[
            "insufficient_quota",
            "payment_required",
            "billing_error",
            "insufficient_balance",
        ],
    ),
    (
        403,
        &[
            "permission_error",
            "permission_denied_error",
            "access_terminated",
            "PERMISSION_DENIED",
        ],
    ),
    (404, &["not_found_error", "model_not_found", "NOT_FOUND"]),
    (
        429,
        &[
            "rate_limit_error",
            "rate_limit_exceeded",
            "rate_limit_reached_error",
            "tokens",
            "requests",
            "RESOURCE_EXHAUSTED",
        ],
    ),
    (
        500,
        &[
            "server_error",
            "api_error",
            "internal_error",
            "internal_server_error",
            "INTERNAL",
        ],
    ),
    (502, &["bad_gateway"]),
    (
        503,
        &[
            "service_unavailable",
            "service_unavailable_error",
            "engine_overloaded_error",
            "UNAVAILABLE",
        ],
    ),
    (504, &["timeout", "timeout_error", "DEADLINE_EXCEEDED"]),
    (529, &["overloaded_error"]),
];

/// The HTTP status that an error code or type is mapped to.
fn status_of(name: &str) -> Option<u16> {
    STATUSES
        .iter()
        .find(|row| row.1.contains(&name))
        .map(|row| row.0)
}

/// Seconds from Google's `details: [{retryDelay: "17s"}]` or from `retry_after`.
fn retry_after(error: &Value) -> Option<u32> {
    let seconds = |text: &str| text.trim_end_matches('s').parse::<f64>().ok();
    let delays = error["details"].as_array().into_iter().flatten();
    let delay = delays
        .filter_map(|detail| detail["retryDelay"].as_str())
        .find_map(seconds);
    let delay = delay.or_else(|| error["retry_after"].as_f64());
    delay
        .filter(|s| (0.0..=86_400.0).contains(s))
        .map(|s| s.ceil() as u32)
}
