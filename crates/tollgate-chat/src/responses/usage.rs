//! Converts token counts between the `usage` object of a response and the hub's [`Usage`].

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::hub::Usage;

/// The `usage` object of a response. Missing counts are 0.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    image_tokens: Option<u64>,
    audio_tokens: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
    image_tokens: Option<u64>,
    audio_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    fn from(wire: WireUsage) -> Self {
        let input = wire.input_tokens_details.unwrap_or_default();
        let output = wire.output_tokens_details.unwrap_or_default();
        Self {
            input: wire.input_tokens.unwrap_or(0),
            cache_read: input.cached_tokens.unwrap_or(0),
            cache_write: input.cache_write_tokens.unwrap_or(0),
            input_image: input.image_tokens.unwrap_or(0),
            input_audio: input.audio_tokens.unwrap_or(0),
            output: wire.output_tokens.unwrap_or(0),
            reasoning: output.reasoning_tokens.unwrap_or(0),
            output_image: output.image_tokens.unwrap_or(0),
            output_audio: output.audio_tokens.unwrap_or(0),
            ..Self::default()
        }
    }
}

/// The number of web searches that the provider ran for a response. Each is an item of the output; no string of a text can look like one.
pub(super) fn count_web_searches(response: &[u8]) -> u64 {
    memchr::memmem::find_iter(response, "\"web_search_call\"").count() as u64
}

/// Reads `usage`. `None` if it is missing or not an object.
pub(super) fn read_usage(usage: &Value) -> Option<WireUsage> {
    usage
        .is_object()
        .then(|| serde_json::from_value(usage.clone()).unwrap_or_default())
}

/// Reads raw `usage`. `None` if it is not an object.
pub(super) fn parse_usage(raw: &RawValue) -> Option<Usage> {
    let wire: Option<WireUsage> = serde_json::from_str(raw.get()).ok()?;
    wire.map(Usage::from)
}

/// Members of `usage` in which servers report the operator's costs; they are not sent to the client.
const COST_MEMBERS: [&str; 4] = ["cost", "cost_details", "cost_in_usd_ticks", "is_byok"];

/// The `usage` of a forwarded response with the members that the vendor's schema requires, and without costs. `None` if nothing
/// has to change.
pub(super) fn complete_usage(raw: &RawValue) -> Option<String> {
    let usage = parse_usage(raw)?;
    let mut value: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
    let before = value.len();
    value.retain(|name, _| !COST_MEMBERS.contains(&name.as_str()));
    let mut is_changed = value.len() < before;
    let Value::Object(required) = write_usage(&usage) else {
        return None;
    };
    for (name, default) in required {
        match (value.get_mut(&name), default) {
            (Some(Value::Object(details)), Value::Object(more)) => {
                // OpenAI itself omits `cache_write_tokens` if nothing was written to the cache.
                for (name, count) in more.into_iter().filter(|m| m.0 != "cache_write_tokens") {
                    is_changed |= !details.contains_key(&name);
                    details.entry(name).or_insert(count);
                }
            }
            (Some(Value::Number(_)), _) => {}
            (_, default) => {
                is_changed = true;
                value.insert(name, default);
            }
        }
    }
    is_changed.then(|| Value::Object(value).to_string())
}

/// Writes `usage`. Clients need both details objects, so they are always written.
pub(super) fn write_usage(usage: &Usage) -> Value {
    let mut input =
        json!({"cached_tokens": usage.cache_read, "cache_write_tokens": usage.cache_write});
    for (name, count) in [
        ("image_tokens", usage.input_image),
        ("audio_tokens", usage.input_audio),
    ] {
        if count > 0 {
            input[name] = count.into();
        }
    }
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": input,
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}
