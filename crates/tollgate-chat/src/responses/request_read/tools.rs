//! Reads `tools` and `tool_choice`. Functions may be flat, as OpenAI documents them, or nested as
//! in chat-completions; `remote_mcp` becomes OpenAI's `mcp` tool.

use serde_json::{Map, Value, json};

use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Tool, ToolChoice, ToolKind};
use crate::responses::constants::NAME;
use crate::responses::extra_fields::spelling_note;
use crate::responses::json::{invalid_value, optional_string, take_member};

/// Reads `tools`.
pub(crate) fn read_tools(value: Value) -> Result<Vec<Tool>, InvalidRequest> {
    let Value::Array(list) = value else {
        return Ok(Vec::new());
    };
    let read = |(i, tool)| read_tool(tool, &format!("tools[{i}]"));
    list.into_iter().enumerate().map(read).collect()
}

/// Reads one tool. `path` is for errors.
pub(crate) fn read_tool(value: Value, path: &str) -> Result<Tool, InvalidRequest> {
    let Value::Object(mut members) = value else {
        return Err(invalid_value(path, "an object", &value));
    };
    let word = members
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let kind = match word.as_str() {
        "function" => read_function(&mut members, path)?,
        "custom" => ToolKind::Custom {
            name: optional_string(&mut members, "name", path)?.unwrap_or_default(),
            description: optional_string(&mut members, "description", path)?,
            format: take_member(&mut members, "format"),
        },
        "remote_mcp" => remote_mcp(take_member(&mut members, "remote_mcp"))?,
        _ if word.starts_with("web_search") => {
            let mut location = take_member(&mut members, "user_location");
            if let Some(Value::Object(fields)) = &mut location {
                fields.shift_remove("type");
            }
            ToolKind::WebSearch { location }
        }
        _ => {
            let value = Value::Object(std::mem::take(&mut members));
            ToolKind::FormatSpecific {
                format: NAME,
                value,
            }
        }
    };
    members.shift_remove("type");
    members.retain(|_, value| !value.is_null());
    if matches!(kind, ToolKind::WebSearch { .. }) && word != "web_search" {
        members.insert(spelling_note("type"), Value::String(word));
    }
    Ok(Tool {
        kind,
        cache_ttl: None,
        extra: ExtraFields::new(NAME, members),
    })
}

fn read_function(members: &mut Map<String, Value>, path: &str) -> Result<ToolKind, InvalidRequest> {
    // Nested functions follow chat-completions, where `strict` is off by default.
    let nested = match take_member(members, "function") {
        Some(Value::Object(function)) => {
            members.extend(function);
            true
        }
        _ => false,
    };
    let strict = match take_member(members, "strict") {
        None => nested.then_some(false),
        Some(Value::Bool(strict)) => Some(strict),
        Some(odd) => {
            return Err(invalid_value(
                &format!("{path}.strict"),
                "true or false",
                &odd,
            ));
        }
    };
    let parameters = take_member(members, "parameters");
    if let Some(odd) = parameters.as_ref().filter(|schema| !schema.is_object()) {
        return Err(invalid_value(
            &format!("{path}.parameters"),
            "a JSON schema",
            odd,
        ));
    }
    Ok(ToolKind::Function {
        name: optional_string(members, "name", path)?.unwrap_or_default(),
        description: optional_string(members, "description", path)?,
        parameters,
        strict,
    })
}

/// Converts `remote_mcp` into OpenAI's `mcp` tool. Its timeout is dropped: the upstream that calls the server uses its own.
fn remote_mcp(value: Option<Value>) -> Result<ToolKind, InvalidRequest> {
    let mcp = value.unwrap_or(Value::Null);
    let url = mcp["url"].as_str().unwrap_or_default();
    let mut value = json!({
        "type": "mcp",
        "server_label": server_label(url),
        "server_url": url,
        "require_approval": "never",
    });
    if let Some(token) = mcp["auth_token"].as_str() {
        value["authorization"] = Value::from(token);
    }
    Ok(ToolKind::FormatSpecific {
        format: NAME,
        value,
    })
}

/// A `server_label` from the URL's host: letters, digits and `_`.
fn server_label(url: &str) -> String {
    let host = url.split("://").nth(1).unwrap_or(url);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.rsplit('@').next().unwrap_or_default();
    let label = host.chars().take(40).map(|c| match c {
        c if c.is_ascii_alphanumeric() => c,
        _ => '_',
    });
    format!("mcp_{}", label.collect::<String>())
}

/// Reads `tool_choice`. `None` if it names a tool that only this format has.
pub(crate) fn read_choice(value: &Value) -> Result<Option<ToolChoice>, InvalidRequest> {
    const ALLOWED: &str = "one of none, auto, required, or an object with `type`";
    let kind = match value {
        Value::String(word) => {
            return match word.as_str() {
                "none" => Ok(Some(ToolChoice::None)),
                "auto" => Ok(Some(ToolChoice::Auto)),
                "required" => Ok(Some(ToolChoice::Required)),
                _ => Err(invalid_value("tool_choice", ALLOWED, value)),
            };
        }
        Value::Object(members) => members.get("type").and_then(Value::as_str),
        _ => return Err(invalid_value("tool_choice", ALLOWED, value)),
    };
    match kind {
        Some(word @ ("function" | "custom")) => {
            // Flat, or nested as in chat-completions.
            let name = value["name"]
                .as_str()
                .or_else(|| value[word]["name"].as_str());
            match name.filter(|name| !name.is_empty()) {
                Some(name) => Ok(Some(ToolChoice::Tool(name.to_owned()))),
                None => Err(InvalidRequest::new(
                    "tool_choice.name",
                    "is required: a string",
                )),
            }
        }
        Some("allowed_tools") => read_allowed(value),
        Some(_) => Ok(None),
        None => Err(InvalidRequest::new(
            "tool_choice.type",
            "is required: a string",
        )),
    }
}

fn read_allowed(value: &Value) -> Result<Option<ToolChoice>, InvalidRequest> {
    let Some(tools) = value["tools"].as_array() else {
        return Err(invalid_value(
            "tool_choice.tools",
            "an array of tools",
            &value["tools"],
        ));
    };
    let is_ours = |tool: &Value| tool["type"] == "function" || tool["type"] == "custom";
    if !tools.iter().all(is_ours) {
        return Ok(None);
    }
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    Ok(Some(ToolChoice::AllowedTools {
        names: names.map(str::to_owned).collect(),
        required: value["mode"] == "required",
    }))
}
