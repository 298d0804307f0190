//! Tools and the choice among them, to and from the hub. Functions may be flat, as OpenAI spells them, or nested, as SPEC.md does.

use serde_json::{Map, Value, json};

use super::read::{taken, wrong};
use crate::error::Bad;
use crate::hub::{Field, Own, Request, Tool, ToolChoice, ToolKind, ToolNames};
use crate::responses::wire::{NAME, note, put_back};

/// A member of web search that chat-completions has too.
pub(super) const SEARCH_SIZE: &str = "search_context_size";

/// Reads the list.
pub(super) fn read_tools(value: Value) -> Result<Vec<Tool>, Bad> {
    let Value::Array(list) = value else {
        return Ok(Vec::new());
    };
    let read = |(i, tool)| read_tool(tool, &format!("tools[{i}]"));
    list.into_iter().enumerate().map(read).collect()
}

fn read_tool(value: Value, path: &str) -> Result<Tool, Bad> {
    let Value::Object(mut members) = value else {
        return Err(wrong(path, "an object", &value));
    };
    let word = members
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let kind = match word.as_str() {
        "function" => read_function(&mut members, path)?,
        "custom" => ToolKind::Custom {
            name: text(&mut members, "name", path)?.unwrap_or_default(),
            description: text(&mut members, "description", path)?,
            format: taken(&mut members, "format"),
        },
        "remote_mcp" => remote_mcp(taken(&mut members, "remote_mcp"))?,
        _ if word.starts_with("web_search") => {
            let mut location = taken(&mut members, "user_location");
            if let Some(Value::Object(place)) = &mut location {
                place.shift_remove("type");
            }
            ToolKind::WebSearch { location }
        }
        _ => {
            let value = Value::Object(std::mem::take(&mut members));
            ToolKind::Foreign {
                format: NAME,
                value,
            }
        }
    };
    members.shift_remove("type");
    members.retain(|_, value| !value.is_null());
    if matches!(kind, ToolKind::WebSearch { .. }) && word != "web_search" {
        members.insert(note("type"), Value::String(word));
    }
    Ok(Tool {
        kind,
        cache: None,
        own: Own::of(NAME, members),
    })
}

fn read_function(members: &mut Map<String, Value>, path: &str) -> Result<ToolKind, Bad> {
    // Nested is how chat-completions has it, where strictness is off unless asked for.
    let nested = match taken(members, "function") {
        Some(Value::Object(function)) => {
            members.extend(function);
            true
        }
        _ => false,
    };
    let strict = match taken(members, "strict") {
        None => nested.then_some(false),
        Some(Value::Bool(strict)) => Some(strict),
        Some(odd) => return Err(wrong(&format!("{path}.strict"), "true or false", &odd)),
    };
    let parameters = taken(members, "parameters");
    if let Some(odd) = parameters.as_ref().filter(|schema| !schema.is_object()) {
        return Err(wrong(&format!("{path}.parameters"), "a JSON schema", odd));
    }
    Ok(ToolKind::Function {
        name: text(members, "name", path)?.unwrap_or_default(),
        description: text(members, "description", path)?,
        parameters,
        strict,
    })
}

fn text(members: &mut Map<String, Value>, name: &str, path: &str) -> Result<Option<String>, Bad> {
    match taken(members, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(odd) => Err(wrong(&format!("{path}.{name}"), "a string", &odd)),
    }
}

/// SPEC.md's `remote_mcp` in OpenAI's words. Its timeout has no counterpart: the upstream that calls the server has its own.
fn remote_mcp(value: Option<Value>) -> Result<ToolKind, Bad> {
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
    Ok(ToolKind::Foreign {
        format: NAME,
        value,
    })
}

/// A label for the server at `url`: its host in letters, digits and `_`.
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

/// Reads the choice; none where it names a tool that only this format has.
pub(super) fn read_choice(value: &Value) -> Result<Option<ToolChoice>, Bad> {
    const WORDS: &str = "one of none, auto, required, or an object with `type`";
    let kind = match value {
        Value::String(word) => {
            return match word.as_str() {
                "none" => Ok(Some(ToolChoice::None)),
                "auto" => Ok(Some(ToolChoice::Auto)),
                "required" => Ok(Some(ToolChoice::Required)),
                _ => Err(wrong("tool_choice", WORDS, value)),
            };
        }
        Value::Object(members) => members.get("type").and_then(Value::as_str),
        _ => return Err(wrong("tool_choice", WORDS, value)),
    };
    match kind {
        Some(word @ ("function" | "custom")) => {
            // Flat, or nested as in chat-completions.
            let name = value["name"]
                .as_str()
                .or_else(|| value[word]["name"].as_str());
            match name.filter(|name| !name.is_empty()) {
                Some(name) => Ok(Some(ToolChoice::One(name.to_owned()))),
                None => Err(Bad::new("tool_choice.name", "is required: a string")),
            }
        }
        Some("allowed_tools") => read_allowed(value),
        Some(_) => Ok(None),
        None => Err(Bad::new("tool_choice.type", "is required: a string")),
    }
}

fn read_allowed(value: &Value) -> Result<Option<ToolChoice>, Bad> {
    let Some(tools) = value["tools"].as_array() else {
        return Err(wrong(
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
    Ok(Some(ToolChoice::Among {
        names: names.map(str::to_owned).collect(),
        required: value["mode"] == "required",
    }))
}

/// Writes one tool, flat.
pub(super) fn write_tool(tool: &Tool, request: &Request, names: &ToolNames) -> Result<Value, Bad> {
    let is_own = request.client == NAME;
    let mut members = Map::new();
    match &tool.kind {
        ToolKind::Function {
            name,
            description,
            parameters,
            strict,
        } => {
            members.insert("type".to_owned(), "function".into());
            members.insert("name".to_owned(), names.sent(name).into());
            if let Some(description) = description {
                members.insert("description".to_owned(), description.as_str().into());
            }
            let none = match is_own {
                true => Value::Null,
                false => json!({"type": "object", "properties": {}}),
            };
            members.insert("parameters".to_owned(), parameters.clone().unwrap_or(none));
            // Here strictness is on unless it is turned off, elsewhere off unless it is turned on (langchain#35885).
            let strict = strict.or((!is_own).then_some(false));
            if let Some(strict) = strict {
                members.insert("strict".to_owned(), strict.into());
            }
        }
        ToolKind::Custom {
            name,
            description,
            format,
        } => {
            members.insert("type".to_owned(), "custom".into());
            members.insert("name".to_owned(), names.sent(name).into());
            if let Some(description) = description {
                members.insert("description".to_owned(), description.as_str().into());
            }
            if let Some(format) = format {
                members.insert("format".to_owned(), format.clone());
            }
        }
        ToolKind::WebSearch { location } => {
            members.insert("type".to_owned(), "web_search".into());
            if let Some(Value::Object(place)) = location {
                let mut place = place.clone();
                place.insert("type".to_owned(), "approximate".into());
                members.insert("user_location".to_owned(), Value::Object(place));
            }
            if let Some(size) = tool.own.get(SEARCH_SIZE) {
                members.insert(SEARCH_SIZE.to_owned(), size.clone());
            }
        }
        ToolKind::Foreign { format, value } if *format == NAME => return Ok(value.clone()),
        ToolKind::Foreign { value, .. } => {
            let name = foreign_name(value);
            let why =
                format!("holds the tool `{name}`, which the upstream of this model does not have");
            return Err(Bad::new(request.name_of(Field::Tools), why));
        }
    }
    put_back(&tool.own, &mut members);
    Ok(Value::Object(members))
}

/// What to call a tool or part that only another format has.
pub(super) fn foreign_name(value: &Value) -> &str {
    let first = || value.as_object()?.keys().next().map(String::as_str);
    let kind = value["type"].as_str().or_else(first);
    kind.unwrap_or("part of another format")
}

/// Writes the choice.
pub(super) fn write_choice(choice: &ToolChoice, request: &Request, names: &ToolNames) -> Value {
    let named = |name: &String| json!({"type": tool_type(request, name), "name": names.sent(name)});
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::One(name) => named(name),
        ToolChoice::Among { names, required } => json!({
            "type": "allowed_tools",
            "mode": if *required { "required" } else { "auto" },
            "tools": names.iter().map(named).collect::<Vec<_>>(),
        }),
    }
}

fn tool_type(request: &Request, called: &str) -> &'static str {
    let is_custom =
        |tool: &Tool| matches!(&tool.kind, ToolKind::Custom { name, .. } if name == called);
    match request.tools.iter().any(is_custom) {
        true => "custom",
        false => "function",
    }
}
