//! Errors: `{error: {code, message, status, details}}`, as of google.rpc.Status.

use serde_json::{Value, json};

use crate::error::{ErrorBody, MalformedResponse, UpstreamError};

/// HTTP statuses and their names. Google has none for 402 and 502. If a name occurs twice, it is mapped to the status of its first row.
const STATUSES: &[(u16, &str)] = &[
    (400, "INVALID_ARGUMENT"),
    (400, "FAILED_PRECONDITION"),
    (400, "OUT_OF_RANGE"),
    (401, "UNAUTHENTICATED"),
    (402, "PAYMENT_REQUIRED"),
    (403, "PERMISSION_DENIED"),
    (404, "NOT_FOUND"),
    (405, "INVALID_ARGUMENT"),
    (408, "DEADLINE_EXCEEDED"),
    (409, "ABORTED"),
    (409, "ALREADY_EXISTS"),
    (410, "NOT_FOUND"),
    (413, "INVALID_ARGUMENT"),
    (429, "RESOURCE_EXHAUSTED"),
    (499, "CANCELLED"),
    (500, "INTERNAL"),
    (500, "UNKNOWN"),
    (500, "DATA_LOSS"),
    (501, "UNIMPLEMENTED"),
    (502, "BAD_GATEWAY"),
    (503, "UNAVAILABLE"),
    (504, "DEADLINE_EXCEEDED"),
];

/// The longest error message that is passed on, in characters; longer ones are cut.
const MAX_MESSAGE_CHARS: usize = 500;

fn status_name(status: u16) -> &'static str {
    let row = STATUSES.iter().find(|(known, _)| *known == status);
    row.map_or(
        if status < 500 {
            "INVALID_ARGUMENT"
        } else {
            "INTERNAL"
        },
        |(_, word)| word,
    )
}

/// The HTTP status that a status name is mapped to. `DEADLINE_EXCEEDED` is 504, not 408.
fn http_status(word: &str) -> Option<u16> {
    match word {
        "DEADLINE_EXCEEDED" => Some(504),
        word => STATUSES
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(status, _)| *status),
    }
}

/// The body of an error response.
pub(crate) fn write_error(error: &ErrorBody) -> Vec<u8> {
    error_object(error).to_string().into_bytes()
}

/// The error body as JSON. SDKs require `code`, `message` and `status`.
pub(crate) fn error_object(error: &ErrorBody) -> Value {
    // 529 is Anthropic's status for an overload.
    let code = if error.status == 529 {
        503
    } else {
        error.status
    };
    let mut inner = json!({
        "code": code,
        "message": error.message,
        "status": status_name(code),
    });
    if let Some(details) = &error.details {
        inner["details"] = details.clone();
    } else if let Some(field) = error.param.as_ref().filter(|_| error.bare) {
        inner["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": error.message}],
        }]);
    }
    json!({"error": inner})
}

/// Reads an upstream's error response: JSON, plain text or HTML.
pub(crate) fn read_error(status: u16, body: &[u8]) -> UpstreamError {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => {
            let mut error = parse_error(unwrap_envelope(&value));
            if error.message.is_empty() {
                error.message = format!("the upstream responded with status {status}");
            }
            error
        }
        Err(_) => UpstreamError {
            message: message_from_text(status, body),
            ..UpstreamError::default()
        },
    }
}

/// The error object inside an array of one or `{error: …}`.
fn unwrap_envelope(value: &Value) -> &Value {
    let value = value
        .as_array()
        .and_then(|list| list.first())
        .unwrap_or(value);
    value.get("error").unwrap_or(value)
}

/// Reads an error object, or a string in its place.
pub(crate) fn parse_error(error: &Value) -> UpstreamError {
    if let Some(text) = error.as_str() {
        return UpstreamError {
            message: truncate(text),
            ..UpstreamError::default()
        };
    }
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let reason = find_detail(error, "ErrorInfo").and_then(|info| info.get("reason")?.as_str());
    let is_invalid_key = reason == Some("API_KEY_INVALID")
        || text("message").is_some_and(|message| message.contains("API key not valid"));
    let word = text("status")
        .or_else(|| text("code"))
        .or_else(|| text("type"));
    let code = error.get("code").and_then(Value::as_u64);
    let code = code.and_then(|code| u16::try_from(code).ok());
    let status = code.filter(|code| (400..600).contains(code));
    UpstreamError {
        // Google returns 400 for an invalid key.
        status: match is_invalid_key {
            true => Some(401),
            false => status.or_else(|| http_status(word?)),
        },
        code: match is_invalid_key {
            true => "API_KEY_INVALID".to_owned(),
            false => truncate(word.unwrap_or_default()),
        },
        message: truncate(text("message").unwrap_or_default()),
        retry_after: find_detail(error, "RetryInfo")
            .and_then(|info| parse_delay_seconds(info.get("retryDelay")?)),
        param: None,
        details: error
            .get("details")
            .filter(|v| v.is_array())
            .cloned()
            .map(Box::new),
    }
}

/// The entry of `details` with that type, without its package name.
fn find_detail<'a>(error: &'a Value, name: &str) -> Option<&'a Value> {
    let details = error.get("details")?.as_array()?;
    details.iter().find(|detail| {
        let kind = detail.get("@type").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.rsplit('.').next() == Some(name))
    })
}

/// A duration such as `17s` or `0.5s` in whole seconds, rounded up, at least 1.
fn parse_delay_seconds(delay: &Value) -> Option<u32> {
    let seconds: f64 = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    // A cast from a float saturates.
    (seconds >= 0.0).then_some((seconds.ceil() as u32).max(1))
}

/// The message of a body that is not JSON. HTML pages are not quoted.
fn message_from_text(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_MESSAGE_CHARS)]);
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        return format!("the upstream responded with status {status}");
    }
    truncate(text)
}

fn truncate(text: &str) -> String {
    text.trim().chars().take(MAX_MESSAGE_CHARS).collect()
}

/// Names the position in the JSON, not its content: content does not belong in logs.
pub(crate) fn malformed(error: &serde_json::Error) -> MalformedResponse {
    let what = match error.classify() {
        serde_json::error::Category::Data => "JSON of another shape",
        _ => "not JSON",
    };
    MalformedResponse::Invalid(format!(
        "{what} at line {} column {}",
        error.line(),
        error.column()
    ))
}
