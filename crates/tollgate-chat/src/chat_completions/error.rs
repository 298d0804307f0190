//! Errors inside streams and in responses with HTTP status 200.

use serde_json::Value;

use crate::error::MalformedResponse;
use crate::openai_error::parse_error;

/// Reads an error object inside a stream or in a response with HTTP status 200.
pub(super) fn read_inline_error(error: &Value) -> MalformedResponse {
    let mut parsed = parse_error(error);
    if parsed.message.is_empty() {
        "the upstream reported an error".clone_into(&mut parsed.message);
    }
    MalformedResponse::Upstream(parsed)
}

/// Whether an `error` field is set: some upstreams send `null`, `false`, `""` or `{}` in every response.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}
