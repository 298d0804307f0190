//! Events as text. Every one has its name on a line of its own: clients skip events without.

use serde_json::{Value, json};

use crate::error::ErrorBody;
use crate::messages::error;

/// One event.
pub(in crate::messages) fn put(out: &mut Vec<u8>, name: &str, data: &str) {
    for piece in ["event: ", name, "\ndata: ", data, "\n\n"] {
        out.extend_from_slice(piece.as_bytes());
    }
}

/// The beginning of a block.
pub(super) fn put_start(out: &mut Vec<u8>, index: u64, block: &Value) {
    let data =
        format!(r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#);
    put(out, "content_block_start", &data);
}

/// A piece of a block; `delta` is JSON.
pub(super) fn put_delta(out: &mut Vec<u8>, index: u64, delta: &str) {
    let data = format!(r#"{{"type":"content_block_delta","index":{index},"delta":{delta}}}"#);
    put(out, "content_block_delta", &data);
}

/// The end of a block.
pub(in crate::messages) fn put_stop(out: &mut Vec<u8>, index: u64) {
    let data = format!(r#"{{"type":"content_block_stop","index":{index}}}"#);
    put(out, "content_block_stop", &data);
}

/// The end of the message.
pub(in crate::messages) fn put_message_stop(out: &mut Vec<u8>) {
    put(out, "message_stop", r#"{"type":"message_stop"}"#);
}

/// What keeps clients waiting: comments do not count here.
pub(in crate::messages) fn put_ping(out: &mut Vec<u8>) {
    put(out, "ping", r#"{"type":"ping"}"#);
}

/// The format's error event.
pub(in crate::messages) fn put_error(out: &mut Vec<u8>, error: &ErrorBody) {
    put(out, "error", &error::write(error).to_string());
}

/// A delta of that type whose member `name` is the piece.
pub(super) fn delta(kind: &str, name: &str, piece: &str) -> String {
    format!(r#"{{"type":"{kind}","{name}":{}}}"#, Value::from(piece))
}

/// A source of the text.
pub(super) fn citation_delta(citation: &Value) -> String {
    json!({"type": "citations_delta", "citation": citation}).to_string()
}

/// `text` as it stands inside the quotes of a JSON string.
pub(super) fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}
