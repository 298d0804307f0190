//! Reads tools and tool choice, including the deprecated functions.

use serde_json::{Map, Value};

use super::parts::take_cache_ttl;
use crate::chat_completions::constants::NAME;
use crate::chat_completions::json_fields::{
    expect_array, expect_object, expect_string, remaining_fields, require_object, require_string,
    take_field, take_string,
};
use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Tool, ToolChoice, ToolKind};

/// Reads `tools`.
pub(in crate::chat_completions) fn read_tools(
    tools: Vec<Value>,
) -> Result<Vec<Tool>, InvalidRequest> {
    let numbered = tools.into_iter().enumerate();
    numbered
        .map(|(at, tool)| read_tool(tool, &format!("tools[{at}]")))
        .collect()
}

/// Reads the deprecated `functions`.
pub(in crate::chat_completions) fn read_functions(
    functions: Vec<Value>,
) -> Result<Vec<Tool>, InvalidRequest> {
    let numbered = functions.into_iter().enumerate();
    numbered
        .map(|(at, function)| {
            let path = format!("functions[{at}]");
            read_function(expect_object(function, &path)?, &path, Map::new(), None)
        })
        .collect()
}

fn read_tool(value: Value, path: &str) -> Result<Tool, InvalidRequest> {
    let mut map = expect_object(value, path)?;
    let kind = map
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("function");
    match kind {
        "function" => {
            let function = require_object(&mut map, "function", path)?;
            map.shift_remove("type");
            let cache_ttl = take_cache_ttl(&mut map);
            read_function(
                function,
                &format!("{path}.function"),
                remaining_fields(map),
                cache_ttl,
            )
        }
        "custom" => {
            let mut custom = require_object(&mut map, "custom", path)?;
            let path = format!("{path}.custom");
            let kind = ToolKind::Custom {
                name: require_string(&mut custom, "name", &path)?,
                description: take_string(&mut custom, "description", &path)?,
                format: take_field(&mut custom, "format").map(flatten_grammar),
            };
            Ok(Tool {
                kind,
                cache_ttl: None,
                extra: ExtraFields::NONE,
            })
        }
        _ => Ok(Tool {
            kind: ToolKind::FormatSpecific {
                format: NAME,
                value: map.into(),
            },
            cache_ttl: None,
            extra: ExtraFields::NONE,
        }),
    }
}

fn read_function(
    mut function: Map<String, Value>,
    path: &str,
    mut extra: Map<String, Value>,
    cache_ttl: Option<String>,
) -> Result<Tool, InvalidRequest> {
    let name = require_string(&mut function, "name", path)?;
    if name.is_empty() {
        return Err(InvalidRequest::new(
            format!("{path}.name"),
            "must not be empty",
        ));
    }
    let parameters = take_field(&mut function, "parameters");
    if parameters
        .as_ref()
        .is_some_and(|schema| !schema.is_object())
    {
        return Err(InvalidRequest::new(
            format!("{path}.parameters"),
            "must be a JSON Schema object",
        ));
    }
    let kind = ToolKind::Function {
        name,
        description: take_string(&mut function, "description", path)?,
        parameters,
        strict: take_field(&mut function, "strict").and_then(|strict| strict.as_bool()),
    };
    let function = remaining_fields(function);
    if !function.is_empty() {
        extra.insert("function".to_owned(), function.into());
    }
    Ok(Tool {
        kind,
        cache_ttl,
        extra: ExtraFields::new(NAME, extra),
    })
}

/// Converts `{type: grammar, grammar: {definition, syntax}}` to the flat form that the hub uses.
fn flatten_grammar(format: Value) -> Value {
    match (format.get("type"), format.get("grammar")) {
        (Some(kind), Some(Value::Object(grammar))) => {
            let mut flat = Map::from_iter([("type".to_owned(), kind.clone())]);
            flat.extend(grammar.clone());
            flat.into()
        }
        _ => format,
    }
}

/// Reads `web_search_options` as a web-search tool.
pub(in crate::chat_completions) fn read_web_search(value: Value) -> Result<Tool, InvalidRequest> {
    let mut options = expect_object(value, "web_search_options")?;
    let mut location = take_field(&mut options, "user_location");
    let location = location
        .as_mut()
        .and_then(|l| l.get_mut("approximate"))
        .map(Value::take);
    Ok(Tool {
        kind: ToolKind::WebSearch { location },
        cache_ttl: None,
        extra: ExtraFields::new(NAME, remaining_fields(options)),
    })
}

/// Reads `tool_choice`.
pub(in crate::chat_completions) fn read_tool_choice(
    value: Value,
) -> Result<ToolChoice, InvalidRequest> {
    const FIELD: &str = "tool_choice";
    let invalid = || {
        InvalidRequest::new(
            FIELD,
            "must be \"none\", \"auto\", \"required\" or an object that names a tool",
        )
    };
    let mut map = match value {
        Value::String(name) => return parse_tool_choice(&name).ok_or_else(invalid),
        Value::Object(map) => map,
        _ => return Err(invalid()),
    };
    let kind = require_string(&mut map, "type", FIELD)?;
    match kind.as_str() {
        "function" | "custom" => {
            // Some clients put the name beside the type, as in the responses format.
            if let Some(name) = take_string(&mut map, "name", FIELD)? {
                return Ok(ToolChoice::Tool(name));
            }
            let mut tool = require_object(&mut map, &kind, FIELD)?;
            require_string(&mut tool, "name", &format!("{FIELD}.{kind}")).map(ToolChoice::Tool)
        }
        "allowed_tools" => {
            let mut allowed = require_object(&mut map, "allowed_tools", FIELD)?;
            let required = take_field(&mut allowed, "mode").is_some_and(|mode| mode == "required");
            let path = "tool_choice.allowed_tools.tools";
            let tools = expect_array(take_field(&mut allowed, "tools").unwrap_or_default(), path)?;
            let names = tools.iter().filter_map(|tool| {
                let inner = tool
                    .get("function")
                    .or_else(|| tool.get("custom"))
                    .unwrap_or(tool);
                inner.get("name").and_then(Value::as_str).map(str::to_owned)
            });
            Ok(ToolChoice::AllowedTools {
                names: names.collect(),
                required,
            })
        }
        name => parse_tool_choice(name).ok_or_else(invalid),
    }
}

fn parse_tool_choice(name: &str) -> Option<ToolChoice> {
    Some(match name {
        "none" => ToolChoice::None,
        "auto" => ToolChoice::Auto,
        // `any` is Anthropic's name for it.
        "required" | "any" => ToolChoice::Required,
        _ => return None,
    })
}

/// Reads the deprecated `function_call` of a request.
pub(in crate::chat_completions) fn read_function_call(
    value: Value,
) -> Result<ToolChoice, InvalidRequest> {
    const FIELD: &str = "function_call";
    match value {
        Value::Object(mut map) => require_string(&mut map, "name", FIELD).map(ToolChoice::Tool),
        value => parse_tool_choice(&expect_string(value, FIELD)?).ok_or_else(|| {
            InvalidRequest::new(FIELD, "must be \"none\", \"auto\" or an object with a name")
        }),
    }
}
