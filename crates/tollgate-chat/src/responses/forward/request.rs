//! Forwards a request: sets the model and replaces settings that the target model does not support.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::json_edits::{JsonEdits, json_string};
use crate::error::InvalidRequest;
use crate::format::Target;
use crate::hub::{ModelCapabilities, ReasoningControl, SamplingSupport};

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
}

/// See [`crate::Format::forward_request`].
pub(crate) fn forward_request(body: &Bytes, target: &Target<'_>) -> Result<Bytes, InvalidRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| InvalidRequest::body("the body is not UTF-8"))?;
    let wire: RequestBody<'_> = serde_json::from_str(text)
        .map_err(|error| InvalidRequest::body(format!("the body is not valid JSON: {error}")))?;
    let mut edits = JsonEdits::new(text);
    if let Some(model) = wire.model {
        edits.replace(model, json_string(target.model));
    }
    replace_unsupported_settings(&wire, target.capabilities, &mut edits);
    Ok(edits.apply().map_or_else(|| body.clone(), Bytes::from))
}

/// Sets unsupported fields to `null`, which counts as absent, and lowers values that are out of
/// range.
fn replace_unsupported_settings(
    wire: &RequestBody<'_>,
    capabilities: &ModelCapabilities,
    edits: &mut JsonEdits<'_>,
) {
    let mut remove = |value: Option<&RawValue>| {
        if let Some(value) = value {
            edits.replace(value, "null");
        }
    };
    match capabilities.sampling {
        SamplingSupport::All => {}
        SamplingSupport::TemperatureOrTopP if wire.temperature.is_some() => remove(wire.top_p),
        SamplingSupport::TemperatureOrTopP => {}
        SamplingSupport::None => {
            remove(wire.temperature);
            remove(wire.top_p);
        }
    }
    if capabilities.thinking == ReasoningControl::Unsupported {
        remove(wire.reasoning);
    }
    let cannot_disable = matches!(
        capabilities.thinking,
        ReasoningControl::Effort { can_disable: false }
            | ReasoningControl::Budget {
                can_disable: false,
                ..
            }
    );
    let reasoning = wire.reasoning.filter(|_| cannot_disable);
    let effort =
        reasoning.and_then(|raw| serde_json::from_str::<ReasoningBody<'_>>(raw.get()).ok());
    if let Some(effort) = effort
        .and_then(|body| body.effort)
        .filter(|e| e.get() == "\"none\"")
    {
        edits.replace(effort, "\"low\"");
    }
    if let (Some(cap), Some(max)) = (wire.max_output_tokens, capabilities.max_output_tokens)
        && cap
            .get()
            .parse::<u64>()
            .is_ok_and(|requested| requested > max)
    {
        edits.replace(cap, max.to_string());
    }
    if let Some(choice) = wire
        .tool_choice
        .filter(|raw| !capabilities.supports_forced_tools && forces_tool_use(raw))
    {
        edits.replace(choice, "\"auto\"");
    }
}

fn forces_tool_use(choice: &RawValue) -> bool {
    match serde_json::from_str::<Value>(choice.get()) {
        Ok(Value::String(word)) => word == "required",
        Ok(value) if value["type"] == "allowed_tools" => value["mode"] == "required",
        Ok(value) => value.is_object(),
        Err(_) => false,
    }
}
