//! Errors: OpenAI's envelope, which chat-completions has too, and those inside of responses.

use serde_json::{Value, json};

use crate::chat_completions::error::words_of;
pub(super) use crate::chat_completions::error::{read as read_error, write as write_error};
use crate::error::{Garbled, WireError};

/// What an error object of a reply or an event says: `value` is the object, holds it as `error`, or as `response.error`.
pub(super) fn failure(mut value: Value) -> Garbled {
    if value["response"].is_object() {
        value = value["response"].take();
    }
    // The type of an event names the event, not the fault.
    if value["type"] == "error" {
        value["type"] = Value::Null;
    }
    let mut words = match &value["error"] {
        // A response says nothing else of its failure.
        Value::Null if value["object"] == "response" => Default::default(),
        _ => words_of(&value),
    };
    if words.message.is_empty() {
        "the upstream's reply failed".clone_into(&mut words.message);
    }
    Garbled::Upstream(words)
}

/// `error` of a failed response.
pub(super) fn write_failure(error: &WireError) -> Value {
    let code = error.code.as_deref();
    let code = code.unwrap_or_else(|| code_of_status(error.status));
    json!({"code": code, "message": error.message})
}

/// A code of OpenAI's list.
fn code_of_status(status: u16) -> &'static str {
    match status {
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_prompt",
        _ => "server_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_read_wherever_it_stands() {
        for text in [
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null,"sequence_number":3}"#,
            r#"{"type":"error","error":{"type":"requests","code":"rate_limit_exceeded","message":"slow"}}"#,
            r#"{"error":{"code":"rate_limit_exceeded","message":"slow"}}"#,
            r#"{"type":"response.failed","response":{"object":"response","error":{"code":"rate_limit_exceeded","message":"slow"}}}"#,
        ] {
            let Garbled::Upstream(words) = failure(serde_json::from_str(text).unwrap()) else {
                panic!("{text}")
            };
            let seen = (words.status, words.code.as_str(), words.message.as_str());
            assert_eq!(seen, (Some(429), "rate_limit_exceeded", "slow"), "{text}");
        }
        let bare =
            json!({"type": "response.failed", "response": {"object": "response", "error": null}});
        assert!(
            matches!(failure(bare), Garbled::Upstream(words) if words.message == "the upstream's reply failed")
        );
    }
}
