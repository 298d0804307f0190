//! Sampling, the cap and tool choice as a model takes them; and the same repairs on a request that is passed on as bytes.

use std::borrow::Cow;

use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::thinking;
use crate::format::Target;
use crate::hub::{ModelCapabilities, ReasoningControl, SamplingSupport};

/// The sampling parameters that are left, of those asked for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Sampled {
    pub(super) temperature: Option<f64>,
    pub(super) top_p: Option<f64>,
    pub(super) top_k: Option<u64>,
}

impl Sampled {
    /// Without what `traits` says the model refuses.
    pub(super) fn fitted(self, capabilities: &ModelCapabilities) -> Self {
        match capabilities.sampling {
            SamplingSupport::All => self,
            SamplingSupport::TemperatureOrTopP => Self {
                top_p: self.top_p.filter(|_| self.temperature.is_none()),
                ..self
            },
            SamplingSupport::None => Self::default(),
        }
    }

    /// Without what the format refuses while the model thinks.
    pub(super) fn beside_thinking(self) -> Self {
        Self {
            temperature: self.temperature.filter(|t| *t == 1.0),
            top_p: self.top_p.filter(|p| *p >= 0.95),
            top_k: None,
        }
    }
}

/// The cap to send: what the client gave, else the target's own; never more than the model can.
pub(super) fn cap(asked: Option<u64>, target: &Target<'_>) -> u64 {
    let cap = asked.unwrap_or(target.default_max_tokens).max(1);
    cap.min(target.capabilities.max_output_tokens.unwrap_or(u64::MAX))
}

/// What must be changed in the members of a request that is passed on: each name with its new value, or none to take it out.
pub(in crate::messages) fn repairs(
    members: &[(Cow<'_, str>, &RawValue)],
    target: &Target<'_>,
) -> Vec<(&'static str, Option<Value>)> {
    let get = |name: &str| {
        let raw = members.iter().find(|member| member.0 == name)?.1;
        let value = Value::deserialize(&mut serde_json::Deserializer::from_str(raw.get())).ok();
        value.filter(|value| !value.is_null())
    };
    let has = |name: &str| members.iter().any(|member| member.0 == name);
    let mut out = Vec::new();
    let max_tokens = get("max_tokens").and_then(|n| n.as_u64());
    let fitting_cap = cap(max_tokens, target);
    if max_tokens != Some(fitting_cap) {
        out.push(("max_tokens", Some(json!(fitting_cap))));
    }
    if target.capabilities.sampling != SamplingSupport::All {
        let asked = Sampled {
            temperature: get("temperature").and_then(|n| n.as_f64()),
            top_p: get("top_p").and_then(|n| n.as_f64()),
            top_k: get("top_k").and_then(|n| n.as_u64()),
        };
        let left = asked.fitted(target.capabilities);
        let gone = [
            (
                "temperature",
                asked.temperature.is_some() && left.temperature.is_none(),
            ),
            ("top_p", asked.top_p.is_some() && left.top_p.is_none()),
            ("top_k", asked.top_k.is_some() && left.top_k.is_none()),
        ];
        out.extend(
            gone.iter()
                .filter(|(_, gone)| *gone)
                .map(|(name, _)| (*name, None)),
        );
    }
    if has("thinking") || has("output_config") {
        think(
            get("thinking"),
            get("output_config"),
            fitting_cap,
            target,
            &mut out,
        );
    }
    if !target.capabilities.supports_forced_tools
        && let Some(choice) = get("tool_choice")
        && (choice["type"] == "any" || choice["type"] == "tool")
    {
        out.push(("tool_choice", Some(unforced(&choice))));
    }
    out
}

/// A forced choice as a free one.
fn unforced(choice: &Value) -> Value {
    let mut free = json!({"type": "auto"});
    if let Some(off) = choice.get("disable_parallel_tool_use") {
        free["disable_parallel_tool_use"] = off.clone();
    }
    free
}

fn think(
    thinking: Option<Value>,
    config: Option<Value>,
    max_tokens: u64,
    target: &Target<'_>,
    out: &mut Vec<(&'static str, Option<Value>)>,
) {
    let object = |value: &Option<Value>| match value {
        Some(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    };
    let mut left = object(&config);
    let Some(reasoning) = thinking::read(object(&thinking), &mut left) else {
        return;
    };
    let sent = thinking::write(&reasoning, target.capabilities, max_tokens, true);
    if let Some(effort) = sent.effort {
        left.insert("effort".to_owned(), json!(effort));
    }
    let fitting = (!left.is_empty()).then_some(Value::Object(left));
    if sent.thinking != thinking {
        out.push(("thinking", sent.thinking));
    }
    if fitting != config && (fitting.is_some() || config.as_ref() != Some(&json!({}))) {
        out.push(("output_config", fitting));
    }
}

/// Whether the model thinks only when it is told how much.
pub(super) fn thinks_by_budget(capabilities: &ModelCapabilities) -> bool {
    matches!(capabilities.thinking, ReasoningControl::Budget { .. })
}
