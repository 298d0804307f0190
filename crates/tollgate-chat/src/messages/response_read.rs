//! Reads an upstream's complete (non-streaming) response into the hub's form.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::block_read::read_block;
use super::error::parse_error;
use super::fields::{Fields, JsonPath};
use super::finish::finish_from_reason;
use super::ids::generate_call_id;
use super::usage::{KNOWN_FIELDS, UsageCounts};
use crate::error::{InvalidRequest, MalformedResponse};
use crate::hub::{Choice, PartKind, Response};
use crate::operator_costs::remove_costs;

/// See [`crate::Format::read_response`].
pub(super) fn read_response(body: &[u8]) -> Result<Response, MalformedResponse> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        MalformedResponse::Invalid(format!("the response is not JSON: {error}"))
    })?;
    if value.get("type").is_some_and(|kind| kind == "error") {
        return Err(MalformedResponse::Upstream(parse_error(&value)));
    }
    convert_response(value).map_err(|error| MalformedResponse::Invalid(error.message))
}

fn convert_response(value: Value) -> Result<Response, InvalidRequest> {
    let mut fields = Fields::from_value(value, &JsonPath::Root)?;
    let path = JsonPath::Member(&JsonPath::Root, "content");
    let blocks = fields
        .take_list("content")?
        .ok_or_else(|| path.invalid("is required"))?;
    let mut parts = Vec::with_capacity(blocks.len());
    let id = fields.take_text("id")?.unwrap_or_default();
    for (index, mut block) in blocks.into_iter().enumerate() {
        if block["type"] == "tool_use" && block["id"].as_str().is_none_or(str::is_empty) {
            block["id"] = json!(generate_call_id(&id, index as u64));
        }
        read_block(block, &JsonPath::Item(&path, index), &mut parts)?;
    }
    let (counts, service_tier) = take_usage(&mut fields);
    let has_calls = parts
        .iter()
        .any(|part| matches!(part.kind, PartKind::ToolCall { .. }));
    let reason = fields.take_text("stop_reason")?;
    let is_empty = parts.is_empty() && reason.as_deref().is_none_or(|why| why == "end_turn");
    if is_empty && counts.to_usage().is_none_or(|usage| usage.output == 0) {
        return Err(path.invalid("is empty, and nothing was generated"));
    }
    let finish =
        finish_from_reason(reason.as_deref().unwrap_or("end_turn")).with_tool_calls(has_calls);
    let choice = Choice {
        parts,
        finish,
        stop_sequence: fields.take_text("stop_sequence")?,
        ..Choice::empty(0)
    };
    for known in ["type", "role"] {
        fields.take(known);
    }
    Ok(Response {
        id,
        model: fields.take_text("model")?.unwrap_or_default(),
        created: None,
        choices: vec![choice],
        usage: counts.to_usage(),
        service_tier,
        extra: fields.into_extra(),
    })
}

/// Takes `usage`: the counts and the service tier. Its other members stay in the fields.
fn take_usage(fields: &mut Fields<'_>) -> (UsageCounts, Option<String>) {
    let Some(Value::Object(mut members)) = fields.take("usage") else {
        return (UsageCounts::default(), None);
    };
    let text = Value::Object(members.clone()).to_string();
    let counts = RawValue::from_string(text)
        .map_or_else(|_| UsageCounts::default(), |raw| UsageCounts::parse(&raw));
    let tier = match members.shift_remove("service_tier") {
        Some(Value::String(tier)) => Some(tier),
        _ => None,
    };
    for known in KNOWN_FIELDS {
        members.shift_remove(*known);
    }
    members.retain(|_, value| !value.is_null());
    remove_costs(&mut members);
    if !members.is_empty() {
        fields.insert("usage", Value::Object(members));
    }
    (counts, tier)
}
