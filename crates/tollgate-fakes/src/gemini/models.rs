//! Which models there are, and what their names say about them.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

const MODELS: &[&str] = &[
    "gemini-2.5-flash",
    "gemini-2.5-pro",
    "gemini-2.5-flash-lite",
    "gemini-3-pro-preview",
    "gemini-3-flash",
];

pub(super) fn list() -> Value {
    let models: Vec<Value> = MODELS.iter().filter_map(|id| entry(id)).collect();
    json!({"models": models})
}

pub(super) fn entry(id: &str) -> Option<Value> {
    let methods = ["generateContent", "countTokens"];
    let entry = json!({
        "name": format!("models/{id}"), "displayName": id, "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536, "supportedGenerationMethods": methods,
    });
    MODELS.contains(&id).then_some(entry)
}

/// Requests may name any model but those that begin so.
pub(super) fn is_missing(model: &str) -> bool {
    model.starts_with("missing") || model.is_empty()
}

/// Generation 3 and later: signatures are needed, levels of thinking exist.
pub(super) fn is_third(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    name.strip_prefix("gemini-")
        .and_then(|rest| rest.chars().next())
        .is_some_and(|first| ('3'..='9').contains(&first))
}

/// Whether the model thinks at all.
pub(super) fn thinks(model: &str) -> bool {
    is_third(model) || model.contains("gemini-2.5")
}

/// The budgets for thinking, beside 0 where that is allowed, and -1.
pub(super) fn budgets(model: &str) -> (RangeInclusive<i64>, bool) {
    if model.contains("pro") {
        (128..=32_768, false)
    } else if model.contains("lite") {
        (512..=24_576, true)
    } else {
        (0..=24_576, true)
    }
}
