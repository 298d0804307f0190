//! Forwards a request: sets the model and replaces settings that the target model does not support.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json_edits::{JsonEdits, json_string};
use crate::error::InvalidRequest;
use crate::format::{ForwardedRequest, Target};
use crate::hub::{ModelCapabilities, ReasoningControl, SamplingSupport, is_default_sampling};

#[derive(Deserialize)]
struct RequestBody<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    max_output_tokens: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ReasoningBody<'a> {
    #[serde(borrow)]
    effort: Option<&'a RawValue>,
    summary: Option<&'a RawValue>,
}

/// See [`crate::Format::forward_request`].
pub(crate) fn forward_request(
    body: &Bytes,
    target: &Target<'_>,
) -> Result<ForwardedRequest, InvalidRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| InvalidRequest::body("the body is not UTF-8"))?;
    let wire: RequestBody<'_> = serde_json::from_str(text)
        .map_err(|error| InvalidRequest::body(format!("the body is not valid JSON: {error}")))?;
    let mut edits = JsonEdits::new(text);
    if let Some(model) = wire.model {
        edits.replace(model, json_string(target.model));
    }
    let dropped = replace_unsupported_settings(&wire, target.capabilities, &mut edits);
    Ok(ForwardedRequest {
        body: edits.apply().map_or_else(|| body.clone(), Bytes::from),
        dropped: dropped.into_iter().map(str::to_owned).collect(),
    })
}

/// Sets unsupported fields to `null`, which counts as absent, and lowers values that are out of range. Returns the names of the fields that are
/// left out or weakened.
fn replace_unsupported_settings(
    wire: &RequestBody<'_>,
    capabilities: &ModelCapabilities,
    edits: &mut JsonEdits<'_>,
) -> Vec<&'static str> {
    let unsupported: &[(&'static str, Option<&RawValue>)] = match capabilities.sampling {
        SamplingSupport::All => &[],
        SamplingSupport::TemperatureOrTopP if wire.temperature.is_some() => {
            &[("top_p", wire.top_p)]
        }
        SamplingSupport::TemperatureOrTopP => &[],
        SamplingSupport::None => &[("temperature", wire.temperature), ("top_p", wire.top_p)],
    };
    let mut dropped = Vec::new();
    for (name, value) in unsupported {
        if let Some(value) = value {
            edits.replace(value, "null");
            let is_default = is_default_sampling(value.get().parse().ok());
            dropped.extend((!is_default).then_some(*name));
        }
    }
    let settings = wire
        .reasoning
        .and_then(|raw| serde_json::from_str::<ReasoningBody<'_>>(raw.get()).ok());
    let effort = settings.as_ref().and_then(|settings| settings.effort);
    let is_off = effort.is_some_and(|effort| effort.get() == "\"none\"");
    let is_empty = settings.is_some_and(|it| it.effort.is_none() && it.summary.is_none());
    if capabilities.thinking == ReasoningControl::Unsupported
        && let Some(reasoning) = wire.reasoning
    {
        edits.replace(reasoning, "null");
        // A model that does not reason needs no field to switch it off.
        dropped.extend((!is_off && !is_empty).then_some("reasoning"));
    }
    let cannot_disable = matches!(
        capabilities.thinking,
        ReasoningControl::Effort { can_disable: false }
            | ReasoningControl::Budget {
                can_disable: false,
                ..
            }
    );
    if let Some(effort) = effort.filter(|_| is_off && cannot_disable) {
        edits.replace(effort, "\"low\"");
        dropped.push("reasoning");
    }
    if let (Some(cap), Some(max)) = (wire.max_output_tokens, capabilities.max_output_tokens)
        && cap
            .get()
            .parse::<u64>()
            .is_ok_and(|requested| requested > max)
    {
        edits.replace(cap, max.to_string());
        dropped.push("max_output_tokens");
    }
    if let Some(choice) = wire
        .tool_choice
        .filter(|raw| !capabilities.supports_forced_tools && forces_tool_use(raw))
    {
        edits.replace(choice, "\"auto\"");
        dropped.push("tool_choice");
    }
    dropped
}

fn forces_tool_use(choice: &RawValue) -> bool {
    match serde_json::from_str::<Value>(choice.get()) {
        Ok(Value::String(word)) => word == "required",
        Ok(value) if value["type"] == "allowed_tools" => value["mode"] == "required",
        Ok(value) => value.is_object(),
        Err(_) => false,
    }
}
