//! The request fields that a response object repeats: `instructions`, `tools`, `temperature` …

use serde_json::{Map, Value, json};

use crate::format::Target;
use crate::hub::{ModelCapabilities, Request, ToolNames};
use crate::responses::constants::NAME;
use crate::responses::request_write::{RequestWriter, is_instruction_turn, turn_texts};

/// Members for the response object: the request's values, otherwise the format's defaults.
pub(crate) fn request_echo(request: Option<&Request>) -> Map<String, Value> {
    let mut request_echo = echo_defaults();
    let Some(request) = request else {
        return request_echo;
    };
    // A model without restrictions, so that every value is written as requested.
    let capabilities = ModelCapabilities::default();
    let target = Target {
        model: &request.model,
        stream: false,
        capabilities: &capabilities,
        default_max_tokens: 0,
    };
    let names = ToolNames::default();
    let mut writer = RequestWriter::new(request, &target, &names);
    let is_own = request.client_format.name == NAME;
    let first = request
        .turns
        .iter()
        .take_while(|turn| is_instruction_turn(turn, is_own));
    let instructions: Vec<&str> = first.flat_map(turn_texts).collect();
    if !instructions.is_empty() {
        writer.set("instructions", instructions.join("\n\n").into());
    }
    // An error means that the client uses another format, which has no such field.
    let _ = (writer.write_limits(), writer.write_tools());
    writer.write_sampling();
    writer.write_reasoning();
    writer.write_text();
    writer.write_client_info();
    writer.write_extra();
    for (name, value) in writer.body {
        match (request_echo.get_mut(&name), value) {
            (Some(Value::Object(existing)), Value::Object(more)) => existing.extend(more),
            (Some(existing), value) => *existing = value,
            // Only members that a response object has.
            (None, _) => {}
        }
    }
    request_echo
}

fn echo_defaults() -> Map<String, Value> {
    let value = json!({
        "background": false,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "prompt_cache_key": null,
        "reasoning": {"effort": null, "summary": null},
        "safety_identifier": null,
        "service_tier": "default",
        "store": false,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "user": null,
    });
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
