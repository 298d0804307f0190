//! Writes `tools` and `tool_choice`.

use serde_json::{Map, Value, json};

use crate::error::InvalidRequest;
use crate::hub::{Request, RequestField, Tool, ToolChoice, ToolKind, ToolNames};
use crate::responses::constants::{ALLOWED_DOMAINS, NAME, SEARCH_CONTEXT_SIZE};
use crate::responses::extra_fields::write_extra_fields;
use crate::strict_schema::keeps_strict;

/// Writes one tool, functions flat.
pub(crate) fn write_tool(
    tool: &Tool,
    request: &Request,
    names: &ToolNames,
) -> Result<Value, InvalidRequest> {
    let is_own = request.client_format.name == NAME;
    let mut members = Map::new();
    match &tool.kind {
        ToolKind::Function {
            name,
            description,
            parameters,
            strict,
        } => {
            members.insert("type".to_owned(), "function".into());
            members.insert("name".to_owned(), names.upstream_name(name).into());
            if let Some(description) = description {
                members.insert("description".to_owned(), description.as_str().into());
            }
            let none = match is_own {
                true => Value::Null,
                false => json!({"type": "object", "properties": {}}),
            };
            members.insert("parameters".to_owned(), parameters.clone().unwrap_or(none));
            // `strict` is on by default in this format and off by default in others
            // ([langchain#35885](https://github.com/langchain-ai/langchain/issues/35885)).
            let strict = strict.map(|strict| strict && keeps_strict(tool, request));
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
            members.insert("name".to_owned(), names.upstream_name(name).into());
            if let Some(description) = description {
                members.insert("description".to_owned(), description.as_str().into());
            }
            if let Some(format) = format {
                members.insert("format".to_owned(), format.clone());
            }
        }
        ToolKind::WebSearch { location } => {
            members.insert("type".to_owned(), "web_search".into());
            if let Some(Value::Object(fields)) = location {
                let mut fields = fields.clone();
                fields.insert("type".to_owned(), "approximate".into());
                members.insert("user_location".to_owned(), Value::Object(fields));
            }
            if let (Some(domains), false) = (tool.extra.get(ALLOWED_DOMAINS), is_own) {
                members.insert("filters".to_owned(), json!({ALLOWED_DOMAINS: domains}));
            }
            if let Some(size) = tool.extra.get(SEARCH_CONTEXT_SIZE) {
                members.insert(SEARCH_CONTEXT_SIZE.to_owned(), size.clone());
            }
        }
        ToolKind::FormatSpecific { format, value } if *format == NAME => return Ok(value.clone()),
        ToolKind::FormatSpecific { value, .. } => {
            let name = type_of_foreign(value);
            let why = format!(
                "holds the tool `{name}`, which the upstream of this model does not support"
            );
            return Err(InvalidRequest::new(
                request.client_field_name(RequestField::Tools),
                why,
            ));
        }
    }
    write_extra_fields(&tool.extra, &mut members);
    Ok(Value::Object(members))
}

/// The type name of a tool or part that only another format has.
pub(crate) fn type_of_foreign(value: &Value) -> &str {
    let first = || value.as_object()?.keys().next().map(String::as_str);
    let kind = value["type"].as_str().or_else(first);
    kind.unwrap_or("part of another format")
}

/// Writes `tool_choice`.
pub(crate) fn write_choice(choice: &ToolChoice, request: &Request, names: &ToolNames) -> Value {
    let is_own = request.client_format.name == NAME;
    let named = |name: &String| match !is_own && request.is_web_search(name) {
        true => json!({"type": "web_search"}),
        false => json!({"type": tool_type(request, name), "name": names.upstream_name(name)}),
    };
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => named(name),
        ToolChoice::AllowedTools { names, required } => json!({
            "type": "allowed_tools",
            "mode": if *required { "required" } else { "auto" },
            "tools": names.iter().map(named).collect::<Vec<_>>(),
        }),
    }
}

fn tool_type(request: &Request, tool_name: &str) -> &'static str {
    let is_custom =
        |tool: &Tool| matches!(&tool.kind, ToolKind::Custom { name, .. } if name == tool_name);
    match request.tools.iter().any(is_custom) {
        true => "custom",
        false => "function",
    }
}
