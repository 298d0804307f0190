//! Which models there are, and what their names say about them.

use serde_json::{Value, json};

const MODELS: &[&str] = &["gpt-4o", "gpt-4.1", "gpt-5", "gpt-5-mini", "o3", "o4-mini"];

pub(super) fn list() -> Value {
    let data: Vec<Value> = MODELS.iter().filter_map(|id| entry(id)).collect();
    json!({"object": "list", "data": data})
}

pub(super) fn entry(id: &str) -> Option<Value> {
    let entry =
        json!({"id": id, "object": "model", "created": 1_700_000_000, "owned_by": "openai"});
    MODELS.contains(&id).then_some(entry)
}

/// Requests may name any model but those that begin so.
pub(super) fn is_missing(model: &str) -> bool {
    model.starts_with("missing") || model.is_empty()
}

/// The o-series and gpt-5: no sampling parameters, no `max_tokens`.
pub(super) fn reasons(model: &str) -> bool {
    let mut letters = model.chars();
    let o_series =
        letters.next() == Some('o') && letters.next().is_some_and(|c| c.is_ascii_digit());
    o_series || (model.starts_with("gpt-5") && !model.contains("chat"))
}

/// Models that also refuse stop sequences.
pub(super) fn never_stops(model: &str) -> bool {
    model.starts_with("o3") || model.starts_with("o4")
}

/// Models of other vendors that speak the format: they ignore what they do not know, and show
/// their reasoning.
pub(super) fn is_foreign(model: &str) -> bool {
    ["deepseek", "kimi", "qwen", "glm"]
        .iter()
        .any(|vendor| model.contains(vendor))
}

/// Foreign models that want their reasoning back with every tool call.
pub(super) fn wants_reasoning_back(model: &str) -> bool {
    is_foreign(model) && (model.contains("reasoner") || model.contains("thinking"))
}
