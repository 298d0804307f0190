//! Writes events as text. Every event has an `event:` line: clients ignore events without it.

use serde_json::{Value, json};

use crate::error::ErrorBody;
use crate::messages::error;

/// Writes an event.
pub(crate) fn write_event(out: &mut Vec<u8>, name: &str, data: &str) {
    for piece in ["event: ", name, "\ndata: ", data, "\n\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// Writes `content_block_start`.
pub(crate) fn write_block_start(out: &mut Vec<u8>, index: u64, block: &Value) {
    let data =
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    write_event(out, "content_block_start", &data);
}

/// Writes `content_block_delta`; `delta` is JSON.
pub(crate) fn write_block_delta(out: &mut Vec<u8>, index: u64, delta: &str) {
    let data = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
    write_event(out, "content_block_delta", &data);
}

/// Writes `content_block_stop`.
pub(crate) fn write_block_stop(out: &mut Vec<u8>, index: u64) {
    let data = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    write_event(out, "content_block_stop", &data);
}

/// Writes `message_stop`.
pub(crate) fn write_message_stop(out: &mut Vec<u8>) {
    write_event(out, "message_stop", r#"{"type":"message_stop"}"#);
}

/// Writes a `ping`, the format's keep-alive: SDKs do not count comments.
pub(crate) fn write_ping(out: &mut Vec<u8>) {
    write_event(out, "ping", r#"{"type":"ping"}"#);
}

/// Writes an `error` event.
pub(crate) fn write_error_event(out: &mut Vec<u8>, error: &ErrorBody) {
    write_event(out, "error", &error::error_object(error).to_string());
}

/// A delta of type `kind` with the text `piece` in its member `name`.
pub(crate) fn delta_object(kind: &str, name: &str, piece: &str) -> String {
    format!(r#"{{"type":"{kind}","{name}":{}}}"#, Value::from(piece))
}

/// A delta with a citation.
pub(crate) fn citation_delta_object(citation: &Value) -> String {
    json!({"type": "citations_delta", "citation": citation}).to_string()
}

/// `text` as the contents of a JSON string, without quotes.
pub(crate) fn escape_json(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
