//! Errors inside response objects and events.

use serde_json::{Value, json};

use crate::error::{ErrorBody, MalformedResponse};
use crate::openai_error::parse_error;

/// The error that an upstream reports inside a response or event. `value` is the error object, or contains it as `error` or `response.error`.
pub(super) fn upstream_failure(mut value: Value) -> MalformedResponse {
    if value["response"].is_object() {
        value = value["response"].take();
    }
    // The `type` of an error event is the event's, not the error's.
    if value["type"] == "error" {
        value["type"] = Value::Null;
    }
    let mut error = match &value["error"] {
        // The response object does not describe its failure.
        Value::Null if value["object"] == "response" => Default::default(),
        _ => parse_error(&value),
    };
    if error.message.is_empty() {
        "the upstream's response failed".clone_into(&mut error.message);
    }
    MalformedResponse::Upstream(error)
}

/// Names the position in the JSON, not its content: content does not belong in logs.
pub(super) fn malformed(error: &serde_json::Error) -> MalformedResponse {
    let (line, column) = (error.line(), error.column());
    MalformedResponse::Invalid(format!(
        "JSON, line {line} column {column}: {:?}",
        error.classify()
    ))
}

/// The `error` member of a failed response.
pub(super) fn failure_object(error: &ErrorBody) -> Value {
    let code = error.code.as_deref();
    let code = code.unwrap_or_else(|| code_of_status(error.status));
    json!({"code": code, "message": error.message})
}

/// The error code of OpenAI's list for an HTTP status.
fn code_of_status(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_prompt",
        _ => "server_error",
    }
}
