//! Which JSON schemas OpenAI accepts as strict: <https://developers.openai.com/api/docs/guides/structured-outputs>.

use serde_json::Value;

use crate::hub::{Request, Tool, ToolKind};

/// Whether OpenAI accepts the schema as strict: every object closed and all its properties required.
pub(crate) fn may_be_strict(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => {
            let properties = map.get("properties").and_then(Value::as_object);
            let required = map.get("required").and_then(Value::as_array);
            let is_object =
                map.get("type").is_some_and(|kind| kind == "object") || properties.is_some();
            let all_required = properties.is_none_or(|all| {
                all.keys()
                    .all(|name| required.is_some_and(|list| list.iter().any(|r| r == name)))
            });
            const NOT_STRICT: [&str; 5] = ["oneOf", "allOf", "not", "if", "patternProperties"];
            (!is_object
                || map.get("additionalProperties") == Some(&Value::Bool(false)) && all_required)
                && !NOT_STRICT.iter().any(|word| map.contains_key(*word))
                && map.values().all(may_be_strict)
        }
        Value::Array(list) => list.iter().all(may_be_strict),
        _ => true,
    }
}

/// Whether a function that is strict may stay so: clients of OpenAI's formats know its rules, and the schemas of others may break them.
pub(crate) fn keeps_strict(tool: &Tool, request: &Request) -> bool {
    let is_openai = ["chat-completions", "responses"].contains(&request.client_format.name);
    match &tool.kind {
        ToolKind::Function {
            strict: Some(true),
            parameters: Some(schema),
            ..
        } => is_openai || may_be_strict(schema),
        _ => true,
    }
}
