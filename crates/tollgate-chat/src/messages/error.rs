//! Errors: those of upstreams read, ours written.

use serde_json::{Value, json};

use crate::error::{ErrorBody, UpstreamError};

/// The longest text that is taken from an upstream's error, in characters.
const LONGEST: usize = 500;

/// Each status with the vendor's type.
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

/// The body of an error; also the data of an error event.
pub(super) fn write(error: &ErrorBody) -> Value {
    let kind = type_of(error.status, error.bare);
    json!({"type": "error", "error": {"type": kind, "message": error.message}})
}

/// Reads an upstream's error answer; see [`crate::Format::read_error`].
pub(super) fn read(status: u16, body: &[u8]) -> UpstreamError {
    let text = String::from_utf8_lossy(body);
    match serde_json::from_str::<Value>(&text) {
        Ok(value) => {
            let words = words_of(&value);
            if words.message.is_empty() {
                return plain(status, "");
            }
            words
        }
        Err(_) => plain(status, &text),
    }
}

/// An answer that is no JSON.
fn plain(status: u16, text: &str) -> UpstreamError {
    let text = text.trim();
    let is_page = text.starts_with('<');
    let message = match (text.is_empty(), is_page) {
        (true, _) => format!("the upstream answered {status} without words"),
        (_, true) => format!("the upstream answered {status} with a web page"),
        _ => shortened(text),
    };
    UpstreamError {
        message,
        ..UpstreamError::default()
    }
}

/// What an error object says: this vendor's, or one of those that proxies in front of it use.
pub(super) fn words_of(value: &Value) -> UpstreamError {
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
    let message = shortened(&message);
    let known = known_words(&message);
    UpstreamError {
        status: known.map(|known| known.1).or(row.map(|row| row.0)),
        code: known.map_or(code, |known| known.2.to_owned()),
        message,
        retry_after: None,
    }
}

/// Sentences that say more than their type: how they begin or what they hold, the status they stand for, and OpenAI's name for it.
const KNOWN_WORDS: &[(&str, u16, &str)] = &[
    ("prompt is too long", 400, "context_length_exceeded"),
    ("exceed context limit", 400, "context_length_exceeded"),
    ("credit balance is too low", 402, "insufficient_quota"),
];

fn known_words(message: &str) -> Option<&'static (&'static str, u16, &'static str)> {
    KNOWN_WORDS.iter().find(|known| message.contains(known.0))
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(status: u16, bare: bool) -> String {
        let error = ErrorBody {
            status,
            message: "no".to_owned(),
            param: None,
            code: None,
            bare,
        };
        let value = write(&error);
        assert_eq!(value["type"], "error");
        assert_eq!(value["error"]["message"], "no");
        value["error"]["type"].as_str().unwrap().to_owned()
    }

    #[test]
    fn types_follow_the_status() {
        for (status, bare, spec) in [
            (400, "invalid_request_error", "invalid_request_error"),
            (401, "authentication_error", "authentication_error"),
            (402, "billing_error", "invalid_request_error"),
            (403, "permission_error", "authentication_error"),
            (404, "not_found_error", "invalid_request_error"),
            (405, "invalid_request_error", "invalid_request_error"),
            (409, "conflict_error", "invalid_request_error"),
            (413, "request_too_large", "invalid_request_error"),
            (429, "rate_limit_error", "rate_limit_error"),
            (500, "api_error", "api_error"),
            (502, "api_error", "api_error"),
            (503, "overloaded_error", "api_error"),
            (504, "timeout_error", "api_error"),
            (529, "overloaded_error", "api_error"),
        ] {
            assert_eq!(written(status, true), bare);
            assert_eq!(written(status, false), spec);
        }
    }

    #[test]
    fn errors_of_every_shape_are_read() {
        for (body, status, code, message) in [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#,
                Some(529),
                "overloaded_error",
                "Overloaded",
            ),
            (
                r#"{"error":{"message":"bad key","type":"authentication_error","code":"invalid_api_key"}}"#,
                Some(401),
                "invalid_api_key",
                "bad key",
            ),
            (
                r#"[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]"#,
                None,
                "",
                "slow",
            ),
            (r#"{"error":"nope"}"#, None, "", "nope"),
            (r#"{"detail":"gone"}"#, None, "", "gone"),
            (
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
                Some(402),
                "insufficient_quota",
                "Your credit balance is too low to access the API.",
            ),
            ("", None, "", "the upstream answered 502 without words"),
            ("{}", None, "", "the upstream answered 502 without words"),
            (
                "<html>Bad gateway</html>",
                None,
                "",
                "the upstream answered 502 with a web page",
            ),
            ("upstream connect error", None, "", "upstream connect error"),
        ] {
            let expected = UpstreamError {
                status,
                code: code.to_owned(),
                message: message.to_owned(),
                retry_after: None,
            };
            assert_eq!(read(502, body.as_bytes()), expected, "{body}");
        }
        let long = read(500, "é".repeat(2000).as_bytes());
        assert_eq!(long.message.chars().count(), LONGEST + 1);
    }
}
