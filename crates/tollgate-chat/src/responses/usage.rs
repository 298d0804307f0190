//! Token counts: the `usage` object of a response, to and from the hub's [`Usage`].

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

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
            ..Self::default()
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_survives_a_round_trip() {
        let usage = Usage {
            input: 100,
            cache_read: 60,
            cache_write: 10,
            output: 30,
            reasoning: 20,
            ..Usage::default()
        };
        let wire = write_usage(&usage);
        assert_eq!(wire["total_tokens"], 130);
        let back: WireUsage = serde_json::from_value(wire).unwrap();
        assert_eq!(Usage::from(back), usage);
        let bare: WireUsage =
            serde_json::from_str(r#"{"input_tokens":3,"output_tokens_details":null}"#).unwrap();
        assert_eq!(Usage::from(bare).input, 3);
    }
}
