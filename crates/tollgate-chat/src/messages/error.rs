//! Reads upstream error responses and writes error responses for clients.

use serde_json::{Value, json};

use crate::error::{ErrorBody, UpstreamError};

/// The longest error message that is passed on, in characters; longer ones are cut.
const MAX_MESSAGE_LENGTH: usize = 500;

/// Each HTTP status with Anthropic's error type.
const TYPES: &[(u16, &str)] = &[
    (400, "invalid_request_error"),
    (401, "authentication_error"),
    (402, "billing_error"),
    (403, "permission_error"),
    (404, "not_found_error"),
    (409, "conflict_error"),
    (413, "request_too_large"),
    (429, "rate_limit_error"),
    (500, "api_error"),
    (504, "timeout_error"),
    (529, "overloaded_error"),
    (503, "overloaded_error"),
    (408, "timeout_error"),
];

/// The `error.type` of a status. The enveloped paths have four types only (docs/chat/messages.md).
fn type_of(status: u16, bare: bool) -> &'static str {
    let row = TYPES.iter().find(|row| row.0 == status && bare);
    match (row, status) {
        (Some(row), _) => row.1,
        (None, 401 | 403) => "authentication_error",
        (None, 429) => "rate_limit_error",
        (None, 500..) => "api_error",
        (None, _) => "invalid_request_error",
    }
}

/// See [`crate::Format::write_error`].
pub(super) fn write_error(error: &ErrorBody) -> Vec<u8> {
    error_object(error).to_string().into_bytes()
}

/// The error object: an error response's body, or the data of an error event.
pub(super) fn error_object(error: &ErrorBody) -> Value {
    let kind = type_of(error.status, error.bare);
    let mut object = json!({"type": "error", "error": {"type": kind, "message": error.message}});
    if let Some(details) = &error.details {
        object["error"]["details"] = details.clone();
    }
    object
}

/// See [`crate::Format::read_error`].
pub(super) fn read_error(status: u16, body: &[u8]) -> UpstreamError {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => {
            let error = parse_error(&value);
            if error.message.is_empty() {
                return error_from_text(status, "");
            }
            error
        }
        Err(_) => error_from_text(status, &text),
    }
}

/// The error of a response without a message or without JSON. HTML pages are not quoted.
fn error_from_text(status: u16, text: &str) -> UpstreamError {
    let text = text.trim();
    let is_page = text.starts_with('<');
    let message = match (text.is_empty(), is_page) {
        (true, _) => format!("the upstream responded with status {status} and no error message"),
        (_, true) => format!("the upstream responded with status {status} and a web page"),
        _ => truncate(text),
    };
    UpstreamError {
        message,
        ..UpstreamError::default()
    }
}

/// Reads an error object of Anthropic or of a proxy in front of it.
pub(super) fn parse_error(value: &Value) -> UpstreamError {
    let value = match value {
        Value::Array(list) => list.first().unwrap_or(&Value::Null),
        other => other,
    };
    let error = value.get("error").unwrap_or(value);
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let message = error
        .as_str()
        .map(str::to_owned)
        .or_else(|| text(error, "message"))
        .or_else(|| text(error, "detail"))
        .unwrap_or_default();
    let kind = text(error, "type").unwrap_or_default();
    let details = error
        .get("details")
        .and_then(|details| text(details, "error_code"));
    let code = details
        .or_else(|| text(error, "code"))
        .unwrap_or_else(|| kind.clone());
    let row = TYPES.iter().find(|row| row.1 == kind);
    let message = truncate(&message);
    let known = find_known_message(&message);
    UpstreamError {
        status: known.map(|known| known.1).or(row.map(|row| row.0)),
        code: known.map_or(code, |known| known.2.to_owned()),
        message,
        details: error
            .get("details")
            .filter(|v| v.is_object())
            .cloned()
            .map(Box::new),
        ..UpstreamError::default()
    }
}

/// Messages that are more precise than the error's type: a part of the text, the HTTP status and OpenAI's error code.
const KNOWN_MESSAGES: &[(&str, u16, &str)] = &[
    ("prompt is too long", 400, "context_length_exceeded"),
    ("exceed context limit", 400, "context_length_exceeded"),
    ("credit balance is too low", 402, "insufficient_quota"),
];

fn find_known_message(message: &str) -> Option<&'static (&'static str, u16, &'static str)> {
    KNOWN_MESSAGES
        .iter()
        .find(|known| message.contains(known.0))
}

fn truncate(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_MESSAGE_LENGTH) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}
