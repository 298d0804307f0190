//! Lists the members of a forwarded request that must change because the target does not support them.

use std::borrow::Cow;

use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::format::Target;
use crate::hub::{Reasoning, SamplingSupport, is_default_sampling};
use crate::messages::request_read::read_thinking;
use crate::messages::request_write::{Sampling, limit_max_tokens, write_thinking};

/// The name of a member with its new value, or with `None` to remove it.
type MemberChange = (&'static str, Option<Value>);

/// The changes that `target` requires, and the names of the members that they leave out or weaken.
pub(crate) fn list_member_changes(
    members: &[(Cow<'_, str>, &RawValue)],
    target: &Target<'_>,
) -> (Vec<MemberChange>, Vec<String>) {
    let get = |name: &str| {
        let raw = members.iter().find(|member| member.0 == name)?.1;
        let value = Value::deserialize(&mut serde_json::Deserializer::from_str(raw.get())).ok();
        value.filter(|value| !value.is_null())
    };
    let has = |name: &str| members.iter().any(|member| member.0 == name);
    let (mut out, mut dropped) = (Vec::new(), Vec::new());
    let max_tokens = get("max_tokens").and_then(|n| n.as_u64());
    let reasoning = read_reasoning(&get("thinking"), &get("output_config"));
    let supported_max = limit_max_tokens(max_tokens, reasoning.as_ref(), target);
    if max_tokens != Some(supported_max) {
        out.push(("max_tokens", Some(json!(supported_max))));
    }
    if max_tokens.is_some_and(|requested| requested > supported_max) {
        dropped.push("max_tokens".to_owned());
    }
    if target.capabilities.sampling != SamplingSupport::All {
        let requested = Sampling {
            temperature: get("temperature").and_then(|n| n.as_f64()),
            top_p: get("top_p").and_then(|n| n.as_f64()),
            top_k: get("top_k").and_then(|n| n.as_u64()),
        };
        let remaining = requested.supported_by(target.capabilities);
        let removed = [
            (
                "temperature",
                requested.temperature.is_some() && remaining.temperature.is_none(),
                is_default_sampling(requested.temperature),
            ),
            (
                "top_p",
                requested.top_p.is_some() && remaining.top_p.is_none(),
                is_default_sampling(requested.top_p),
            ),
            (
                "top_k",
                requested.top_k.is_some() && remaining.top_k.is_none(),
                false,
            ),
        ];
        for (name, _, is_default) in removed.iter().filter(|(_, is_removed, _)| *is_removed) {
            out.push((*name, None));
            dropped.extend((!is_default).then(|| (*name).to_owned()));
        }
    }
    if has("thinking") || has("output_config") {
        let is_weakened = change_thinking(
            get("thinking"),
            get("output_config"),
            supported_max,
            target,
            &mut out,
        );
        let name = match has("thinking") {
            true => "thinking",
            false => "output_config",
        };
        dropped.extend(is_weakened.then(|| name.to_owned()));
    }
    if !target.capabilities.supports_forced_tools
        && let Some(choice) = get("tool_choice")
        && (choice["type"] == "any" || choice["type"] == "tool")
    {
        out.push(("tool_choice", Some(unforce_choice(&choice))));
        dropped.push("tool_choice".to_owned());
    }
    (out, dropped)
}

/// Converts a `tool_choice` that forces a call to one that does not.
fn unforce_choice(choice: &Value) -> Value {
    let mut free = json!({"type": "auto"});
    if let Some(off) = choice.get("disable_parallel_tool_use") {
        free["disable_parallel_tool_use"] = off.clone();
    }
    free
}

fn members_of(value: &Option<Value>) -> Map<String, Value> {
    match value {
        Some(Value::Object(members)) => members.clone(),
        _ => Map::new(),
    }
}

fn read_reasoning(thinking: &Option<Value>, config: &Option<Value>) -> Option<Reasoning> {
    read_thinking(members_of(thinking), &mut members_of(config))
}

/// Adds the changes of thinking and its effort. Returns whether they weaken what the client requested.
fn change_thinking(
    thinking: Option<Value>,
    config: Option<Value>,
    max_tokens: u64,
    target: &Target<'_>,
    out: &mut Vec<MemberChange>,
) -> bool {
    let mut remaining = members_of(&config);
    let Some(reasoning) = read_thinking(members_of(&thinking), &mut remaining) else {
        return false;
    };
    let sent = write_thinking(&reasoning, target.capabilities, max_tokens, true);
    if let Some(effort) = sent.effort {
        remaining.insert("effort".to_owned(), json!(effort));
    }
    let supported = (!remaining.is_empty()).then_some(Value::Object(remaining));
    if sent.thinking != thinking {
        out.push(("thinking", sent.thinking));
    }
    if supported != config && (supported.is_some() || config.as_ref() != Some(&json!({}))) {
        out.push(("output_config", supported));
    }
    sent.is_weakened
}
