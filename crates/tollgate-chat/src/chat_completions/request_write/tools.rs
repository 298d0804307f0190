//! Writes tools and tool choice.

use serde_json::{Map, Value, json};

use super::dropped::DroppedFields;
use super::parts::insert_cache_marker;
use crate::chat_completions::constants::NAME;
use crate::chat_completions::json_fields::insert_some;
use crate::error::InvalidRequest;
use crate::hub::{Request, RequestField, Tool, ToolChoice, ToolKind, ToolNames};
use crate::strict_schema::keeps_strict;

/// Writes `tools` and `web_search_options`.
pub(in crate::chat_completions) fn write_tools(
    request: &Request,
    names: &ToolNames,
    can_search: bool,
    body: &mut Map<String, Value>,
    dropped: &mut DroppedFields,
) -> Result<(), InvalidRequest> {
    let mut tools = Vec::new();
    for (at, tool) in request.tools.iter().enumerate() {
        match &tool.kind {
            ToolKind::Function { .. } | ToolKind::Custom { .. } => {
                tools.push(write_tool(tool, request, names, dropped));
            }
            ToolKind::WebSearch { .. } if !can_search => return Err(no_search(request)),
            ToolKind::WebSearch { location } => {
                let mut options = tool.extra.for_format(NAME).cloned().unwrap_or_default();
                if let Some(location) = location {
                    let location = json!({"type": "approximate", "approximate": location});
                    options.insert("user_location".to_owned(), location);
                }
                body.insert("web_search_options".to_owned(), options.into());
                if tool.cache_ttl.is_some() {
                    dropped.push(request.client_field_name(RequestField::Cache));
                }
            }
            ToolKind::FormatSpecific { format, value } if *format == NAME => {
                tools.push(value.clone())
            }
            ToolKind::FormatSpecific { value, .. } => {
                // For a tool without `type`, the name of its first member is its type.
                let first = || value.as_object()?.keys().next().map(String::as_str);
                let kind = value["type"].as_str().or_else(first).unwrap_or_default();
                return Err(InvalidRequest::new(
                    format!("{}[{at}]", request.client_field_name(RequestField::Tools)),
                    format!("is {kind:?}, which this model's provider does not run"),
                ));
            }
        }
        dropped.extend(tool.extra.names_unknown_to(NAME));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    Ok(())
}

/// The error for a search that the model supports under the Responses API only.
fn no_search(request: &Request) -> InvalidRequest {
    let field = match request.client_format.name {
        NAME => "web_search_options",
        _ => request.client_field_name(RequestField::Tools),
    };
    let why = "requests web search, which this model does not support on chat completions: its channel must offer the responses format";
    InvalidRequest::new(field, why)
}

fn write_tool(
    tool: &Tool,
    request: &Request,
    names: &ToolNames,
    dropped: &mut DroppedFields,
) -> Value {
    let mut extra = tool.extra.for_format(NAME).cloned().unwrap_or_default();
    let more = extra.shift_remove("function");
    let mut out = Map::new();
    let (kind, mut inner) = match &tool.kind {
        ToolKind::Custom {
            name,
            description,
            format,
        } => {
            let mut custom =
                Map::from_iter([("name".to_owned(), names.upstream_name(name).into())]);
            insert_some(&mut custom, "description", description.clone());
            insert_some(&mut custom, "format", format.as_ref().map(nest_grammar));
            ("custom", custom)
        }
        ToolKind::Function {
            name,
            description,
            parameters,
            strict,
        } => {
            let mut function =
                Map::from_iter([("name".to_owned(), names.upstream_name(name).into())]);
            insert_some(&mut function, "description", description.clone());
            insert_some(&mut function, "parameters", parameters.clone());
            let keeps_strict = keeps_strict(tool, request);
            if !keeps_strict {
                dropped.push("strict");
            }
            insert_some(
                &mut function,
                "strict",
                strict.map(|strict| strict && keeps_strict),
            );
            ("function", function)
        }
        _ => ("function", Map::new()),
    };
    if let Some(Value::Object(more)) = more {
        inner.extend(more);
    }
    out.insert("type".to_owned(), kind.into());
    out.insert(kind.to_owned(), inner.into());
    out.extend(extra);
    match &tool.cache_ttl {
        Some(ttl) if request.client_format.name == NAME => insert_cache_marker(&mut out, ttl),
        Some(_) => dropped.push(request.client_field_name(RequestField::Cache)),
        None => {}
    }
    out.into()
}

/// Converts the hub's flat grammar to `{type: grammar, grammar: {definition, syntax}}`.
fn nest_grammar(format: &Value) -> Value {
    match format.as_object() {
        Some(flat) if flat.get("type").is_some_and(|kind| kind == "grammar") => {
            let mut inner = flat.clone();
            inner.shift_remove("type");
            json!({"type": "grammar", "grammar": inner})
        }
        _ => format.clone(),
    }
}

/// Writes `tool_choice`; `auto` instead of a forced call if the model does not support forced calls, or if the web search is forced, which is not one
/// of the format's tools.
pub(in crate::chat_completions) fn write_tool_choice(
    request: &Request,
    names: &ToolNames,
    can_force: bool,
    dropped: &mut DroppedFields,
) -> Option<Value> {
    let choice = request.tool_choice.as_ref()?;
    let forces_search = request.client_format.name != NAME
        && matches!(choice, ToolChoice::Tool(name) if request.is_web_search(name));
    let is_weakened = forces_search || (choice.forces_call() && !can_force);
    if is_weakened {
        dropped.push(request.client_field_name(RequestField::ToolChoice));
    }
    Some(match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required | ToolChoice::Tool(_) if is_weakened => "auto".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => write_tool_reference(request, names, name),
        ToolChoice::AllowedTools {
            names: allowed,
            required,
        } => {
            let mode = if *required && !is_weakened {
                "required"
            } else {
                "auto"
            };
            let tools: Vec<Value> = allowed
                .iter()
                .map(|name| write_tool_reference(request, names, name))
                .collect();
            json!({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}})
        }
    })
}

/// One tool in `tool_choice`.
fn write_tool_reference(request: &Request, names: &ToolNames, name: &str) -> Value {
    let is_custom = request
        .tools
        .iter()
        .any(|tool| matches!(&tool.kind, ToolKind::Custom { name: custom, .. } if custom == name));
    let kind = if is_custom { "custom" } else { "function" };
    json!({"type": kind, kind: {"name": names.upstream_name(name)}})
}
