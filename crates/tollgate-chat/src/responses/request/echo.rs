//! The fields of a request that its reply repeats.

use serde_json::{Map, Value, json};

use super::write::{Writing, is_instruction, texts};
use crate::format::Target;
use crate::hub::{ModelTraits, Request, ToolNames};
use crate::responses::wire::NAME;

/// Members for the reply object: what was asked, or the format's defaults.
pub(in crate::responses) fn echo(request: Option<&Request>) -> Map<String, Value> {
    let mut echo = defaults();
    let Some(request) = request else { return echo };
    // What goes up to a model that takes everything is what was asked.
    let traits = ModelTraits::default();
    let target = Target {
        model: &request.model,
        stream: false,
        traits: &traits,
        default_max_tokens: 0,
    };
    let names = ToolNames::default();
    let mut writing = Writing::new(request, &target, &names);
    let is_own = request.client == NAME;
    let first = request
        .turns
        .iter()
        .take_while(|turn| is_instruction(turn, is_own));
    let said: Vec<&str> = first.flat_map(texts).collect();
    if !said.is_empty() {
        writing.set("instructions", said.join("\n\n").into());
    }
    // What cannot be said here did not come from a client of this format.
    let _ = (writing.limits(), writing.tools());
    writing.sampling();
    writing.reasoning();
    writing.text();
    writing.about_the_client();
    writing.own();
    for (name, value) in writing.body {
        match (echo.get_mut(&name), value) {
            (Some(Value::Object(there)), Value::Object(more)) => there.extend(more),
            (Some(there), value) => *there = value,
            // Only what replies have.
            (None, _) => {}
        }
    }
    echo
}

fn defaults() -> Map<String, Value> {
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
