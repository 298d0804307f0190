//! Errors: `{error: {code, message, status, details}}`.

use serde_json::{Value, json};

use crate::error::{ErrorWords, WireError};

/// HTTP statuses and the wire's words; 402 and 502 are SPEC.md's, the vendor has none. The first row of a word is its status.
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

/// Longer messages are cut, in characters.
const LONGEST: usize = 500;

fn word_of(status: u16) -> &'static str {
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

/// The status that a word stands for. DEADLINE_EXCEEDED is the server's.
fn status_of(word: &str) -> Option<u16> {
    match word {
        "DEADLINE_EXCEEDED" => Some(504),
        word => STATUSES
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(status, _)| *status),
    }
}

/// The body of an error answer.
pub(super) fn write(error: &WireError) -> Vec<u8> {
    body(error).to_string().into_bytes()
}

/// The body as JSON. SDKs need all three of code, message and status.
pub(super) fn body(error: &WireError) -> Value {
    // Another vendor's word for an overload.
    let code = if error.status == 529 {
        503
    } else {
        error.status
    };
    let mut inner = json!({
        "code": code,
        "message": error.message,
        "status": word_of(code),
    });
    if let Some(field) = error.param.as_ref().filter(|_| error.bare) {
        inner["details"] = json!([{
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [{"field": field, "description": error.message}],
        }]);
    }
    json!({"error": inner})
}

/// What an upstream's error answer says.
pub(super) fn read(status: u16, body: &[u8]) -> ErrorWords {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => {
            let mut words = words_of(unwrapped(&value));
            if words.message.is_empty() {
                words.message = format!("the upstream answered with status {status}");
            }
            words
        }
        Err(_) => ErrorWords {
            message: plain_message(status, body),
            ..ErrorWords::default()
        },
    }
}

/// The error inside: lists of one and `{error: …}` taken off.
fn unwrapped(value: &Value) -> &Value {
    let value = value
        .as_array()
        .and_then(|list| list.first())
        .unwrap_or(value);
    value.get("error").unwrap_or(value)
}

/// What an error object, or a text in its place, says.
pub(super) fn words_of(error: &Value) -> ErrorWords {
    if let Some(text) = error.as_str() {
        return ErrorWords {
            message: cut(text),
            ..ErrorWords::default()
        };
    }
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let reason = detail(error, "ErrorInfo").and_then(|info| info.get("reason")?.as_str());
    let bad_key = reason == Some("API_KEY_INVALID")
        || text("message").is_some_and(|message| message.contains("API key not valid"));
    let word = text("status")
        .or_else(|| text("code"))
        .or_else(|| text("type"));
    let said = error.get("code").and_then(Value::as_u64);
    let said = said.and_then(|code| u16::try_from(code).ok());
    let status = said.filter(|code| (400..600).contains(code));
    ErrorWords {
        // A bad key is a 400 there.
        status: match bad_key {
            true => Some(401),
            false => status.or_else(|| status_of(word?)),
        },
        code: match bad_key {
            true => "API_KEY_INVALID".to_owned(),
            false => cut(word.unwrap_or_default()),
        },
        message: cut(text("message").unwrap_or_default()),
        retry_after: detail(error, "RetryInfo").and_then(|info| seconds(info.get("retryDelay")?)),
    }
}

/// The detail of that type.
fn detail<'a>(error: &'a Value, name: &str) -> Option<&'a Value> {
    let details = error.get("details")?.as_array()?;
    details.iter().find(|detail| {
        let kind = detail.get("@type").and_then(Value::as_str);
        kind.is_some_and(|kind| kind.rsplit('.').next() == Some(name))
    })
}

/// A duration, `17s` or `0.5s`, in whole seconds, at least 1.
fn seconds(delay: &Value) -> Option<u32> {
    let seconds: f64 = delay.as_str()?.strip_suffix('s')?.parse().ok()?;
    // A cast from floats saturates.
    (seconds >= 0.0).then_some((seconds.ceil() as u32).max(1))
}

/// For bodies that are no JSON: pages are not quoted.
fn plain_message(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * LONGEST)]);
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        return format!("the upstream answered with status {status}");
    }
    cut(text)
}

fn cut(text: &str) -> String {
    text.trim().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(status: u16) -> WireError {
        WireError {
            status,
            message: "no".to_owned(),
            param: Some("contents".to_owned()),
            code: None,
            bare: false,
        }
    }

    #[test]
    fn errors_have_the_words_of_the_spec() {
        for (status, word) in [
            (400, "INVALID_ARGUMENT"),
            (401, "UNAUTHENTICATED"),
            (402, "PAYMENT_REQUIRED"),
            (403, "PERMISSION_DENIED"),
            (404, "NOT_FOUND"),
            (413, "INVALID_ARGUMENT"),
            (429, "RESOURCE_EXHAUSTED"),
            (500, "INTERNAL"),
            (502, "BAD_GATEWAY"),
            (503, "UNAVAILABLE"),
            (504, "DEADLINE_EXCEEDED"),
            (418, "INVALID_ARGUMENT"),
        ] {
            let expected = json!({"error": {"code": status, "message": "no", "status": word}});
            assert_eq!(body(&wire(status)), expected);
        }
        assert_eq!(body(&wire(529)), body(&wire(503)));
        let bare = WireError {
            bare: true,
            ..wire(400)
        };
        assert_eq!(
            body(&bare)["error"]["details"][0]["fieldViolations"][0]["field"],
            "contents"
        );
    }

    #[test]
    fn upstream_errors_are_understood() {
        let quota = json!({"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED", "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure"},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "16.4s"},
        ]}});
        let expected = ErrorWords {
            status: Some(429),
            code: "RESOURCE_EXHAUSTED".to_owned(),
            message: "Quota exceeded.".to_owned(),
            retry_after: Some(17),
        };
        assert_eq!(read(429, quota.to_string().as_bytes()), expected);
        // The vendor's chat-completions layer wraps it in a list.
        let list = json!([quota]);
        assert_eq!(read(429, list.to_string().as_bytes()), expected, "trap_55");
    }

    #[test]
    fn a_bad_key_is_401_whatever_its_status() {
        let body = json!({"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT",
            "details": [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]}});
        let words = read(400, body.to_string().as_bytes());
        assert_eq!(
            (words.status, words.code.as_str()),
            (Some(401), "API_KEY_INVALID")
        );
    }

    #[test]
    fn anything_is_taken() {
        for (body, message) in [
            (&b""[..], "the upstream answered with status 502"),
            (
                b"<html><body>secret</body></html>",
                "the upstream answered with status 502",
            ),
            (b"null", "the upstream answered with status 502"),
            (b"[]", "the upstream answered with status 502"),
            (b"\"broken\"", "broken"),
            (b"{\"error\":\"broken\"}", "broken"),
            (b"{\"error\":{\"code\":\"x\",\"message\":\"m\"}}", "m"),
            (b"{\"message\":\"m\"}", "m"),
            (b"busy\n", "busy"),
            (b"\xff\xfe", "\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(read(502, body).message, message);
        }
        let long = "ä".repeat(2000);
        assert_eq!(read(502, long.as_bytes()).message.chars().count(), 500);
    }
}
