//! Adds a limit of output tokens to a request without one.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::format::RequestSummary;
use crate::output_cap::{append_member, mentions};

/// See [`crate::Format::add_output_cap`].
pub(crate) fn add_output_cap(
    body: &Bytes,
    summary: &mut RequestSummary,
    cap: u64,
) -> Option<Bytes> {
    let capped = set_cap(body, cap)?;
    summary.max_tokens = Some(cap);
    Some(capped)
}

fn set_cap(body: &Bytes, cap: u64) -> Option<Bytes> {
    const NAMES: [&str; 2] = ["generationConfig", "generation_config"];
    if !NAMES.iter().any(|name| mentions(body, name)) {
        return append_member(
            body,
            &format!("\"generationConfig\":{{\"maxOutputTokens\":{cap}}}"),
        );
    }
    let mut members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let name = NAMES.into_iter().find(|name| members.contains_key(*name));
    let config = members
        .entry(name.unwrap_or(NAMES[0]))
        .or_insert(Value::Null);
    if !config.is_object() {
        *config = json!({});
    }
    let config = config.as_object_mut()?;
    config.remove("max_output_tokens");
    config.insert("maxOutputTokens".to_owned(), cap.into());
    serde_json::to_vec(&members).ok().map(Bytes::from)
}
