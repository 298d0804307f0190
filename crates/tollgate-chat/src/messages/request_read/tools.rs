//! Reads `tools` and `tool_choice`.

use serde_json::{Value, json};

use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Tool, ToolChoice, ToolKind};
use crate::messages::block_read::take_cache_ttl;
use crate::messages::constants::NAME;
use crate::messages::fields::{Fields, JsonPath};
use crate::messages::notes::NOTE_TOOL_TYPE;

/// Reads `tools`.
pub(crate) fn read_tools(fields: &mut Fields<'_>) -> Result<Vec<Tool>, InvalidRequest> {
    let list = JsonPath::Member(&JsonPath::Root, "tools");
    let tools = fields.take_list("tools")?.unwrap_or_default();
    let read = |(index, tool)| read_tool(tool, &JsonPath::Item(&list, index));
    tools.into_iter().enumerate().map(read).collect()
}

fn read_tool(tool: Value, path: &JsonPath<'_>) -> Result<Tool, InvalidRequest> {
    let mut fields = Fields::from_value(tool, path)?;
    let kind = fields.take_text("type")?;
    match kind.as_deref() {
        None | Some("custom") => {}
        Some(kind) if kind.starts_with("web_search_") => {}
        Some(kind) => {
            // Anthropic's own tools have no schema.
            let kind = kind.to_owned();
            fields.insert("type", json!(kind));
            let (format, value) = (NAME, fields.into_value());
            return Ok(Tool {
                kind: ToolKind::FormatSpecific { format, value },
                cache_ttl: None,
                extra: ExtraFields::NONE,
            });
        }
    }
    let cache_ttl = take_cache_ttl(&mut fields)?;
    let read = match kind.as_deref() {
        Some(kind) if kind != "custom" => read_web_search(&mut fields)?,
        _ => read_function(&mut fields)?,
    };
    if let Some(kind) = kind {
        fields.insert(NOTE_TOOL_TYPE, json!(kind));
    }
    Ok(Tool {
        kind: read,
        cache_ttl,
        extra: fields.into_extra(),
    })
}

fn read_web_search(fields: &mut Fields<'_>) -> Result<ToolKind, InvalidRequest> {
    fields.take_text("name")?;
    let mut location = fields.take("user_location");
    if let Some(Value::Object(members)) = &mut location {
        members.shift_remove("type");
    }
    Ok(ToolKind::WebSearch { location })
}

fn read_function(fields: &mut Fields<'_>) -> Result<ToolKind, InvalidRequest> {
    let name = fields.require_name("name")?;
    let parameters = match fields.take("input_schema") {
        Some(schema @ Value::Object(_)) => schema,
        _ => {
            let why = "is required and must be a JSON schema of type object";
            return Err(fields.invalid("input_schema", why));
        }
    };
    Ok(ToolKind::Function {
        name,
        description: fields.take_text("description")?,
        parameters: Some(parameters),
        strict: fields.take_flag("strict")?,
    })
}

/// Reads `tool_choice`, which the summary has checked: the choice, and whether parallel calls are allowed.
pub(crate) fn read_tool_choice(
    fields: &mut Fields<'_>,
) -> Result<(Option<ToolChoice>, Option<bool>), InvalidRequest> {
    let Some(value) = fields.take("tool_choice") else {
        return Ok((None, None));
    };
    let path = JsonPath::Member(&JsonPath::Root, "tool_choice");
    let mut choice = Fields::from_value(value, &path)?;
    let parallel = choice
        .take_flag("disable_parallel_tool_use")?
        .map(|off| !off);
    let choice = match choice.require_text("type")?.as_str() {
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Tool(choice.require_name("name")?),
        "none" => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    Ok((Some(choice), parallel))
}
