//! Writes the parts of content blocks that requests, responses and streams share.

use serde_json::{Value, json};

use super::constants::{SIGNATURE_PREFIX, VENDOR};
use crate::hub::Opaque;

/// The `input` of a call: its arguments as an object. Arguments that are not an object are wrapped, so that no call is lost.
pub(super) fn arguments_to_input(arguments: &str, custom: bool) -> Value {
    if custom {
        return json!({"input": arguments});
    }
    if arguments.trim().is_empty() {
        return json!({});
    }
    match serde_json::from_str(arguments) {
        Ok(input @ Value::Object(_)) => input,
        Ok(Value::Null) => json!({}),
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            // The JSON was encoded twice.
            Ok(input @ Value::Object(_)) => input,
            _ => json!({"_raw": inner}),
        },
        _ => json!({"_raw": arguments}),
    }
}

/// The `cache_control` of a block.
pub(super) fn write_cache_control(ttl: &str) -> Value {
    // The format has two ttls. Any other value becomes the longer one.
    match ttl {
        "" => json!({"type": "ephemeral"}),
        "5m" => json!({"type": "ephemeral", "ttl": "5m"}),
        _ => json!({"type": "ephemeral", "ttl": "1h"}),
    }
}

/// The signature of thinking for a client. Another vendor's signature is wrapped, so that it is recognised when the client sends it back.
pub(super) fn signature_for_client(signature: Option<&Opaque>) -> String {
    match signature {
        None => String::new(),
        Some(extra) if extra.vendor == VENDOR => extra.data.clone(),
        Some(other) => other.to_portable(),
    }
}

/// A block that contains the signature of the block before it, see [`SIGNATURE_PREFIX`].
pub(super) fn signature_block(signature: &Opaque) -> Value {
    json!({"type": "redacted_thinking", "data": format!("{SIGNATURE_PREFIX}{}", signature.to_portable())})
}
