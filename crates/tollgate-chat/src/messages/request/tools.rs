//! Tools and which of them to use.

use serde_json::{Map, Value, json};

use crate::error::InvalidRequest;
use crate::hub::{Tool, ToolChoice, ToolKind};
use crate::messages::blocks::cache_control;
use crate::messages::fields::{Fields, Path, put_back};
use crate::messages::wire::NAME;

/// The note on a tool: its `type` as the client wrote it.
const TYPE: &str = ".type";

/// The version of the vendor's web search that is asked for where the client's format does not say one.
const WEB_SEARCH: &str = "web_search_20250305";

/// Reads `tools`.
pub(super) fn read(fields: &mut Fields<'_>) -> Result<Vec<Tool>, InvalidRequest> {
    let list = Path::Member(&Path::Root, "tools");
    let tools = fields.list("tools")?.unwrap_or_default();
    let read = |(index, tool)| read_tool(tool, &Path::Item(&list, index));
    tools.into_iter().enumerate().map(read).collect()
}

fn read_tool(tool: Value, at: &Path<'_>) -> Result<Tool, InvalidRequest> {
    let mut fields = Fields::of(tool, at)?;
    let kind = fields.text("type")?;
    match kind.as_deref() {
        None | Some("custom") => {}
        Some(kind) if kind.starts_with("web_search_") => {}
        Some(kind) => {
            // The vendor's own tools carry no schema.
            let kind = kind.to_owned();
            fields.keep("type", json!(kind));
            let (format, value) = (NAME, fields.into_value());
            return Ok(Tool {
                kind: ToolKind::FormatSpecific { format, value },
                cache_ttl: None,
                extra: crate::hub::ExtraFields::NONE,
            });
        }
    }
    let cache_ttl = cache_control(&mut fields)?;
    let read = match kind.as_deref() {
        Some(kind) if kind != "custom" => web_search(&mut fields)?,
        _ => function(&mut fields)?,
    };
    if let Some(kind) = kind {
        fields.keep(TYPE, json!(kind));
    }
    Ok(Tool {
        kind: read,
        cache_ttl,
        extra: fields.rest(),
    })
}

fn web_search(fields: &mut Fields<'_>) -> Result<ToolKind, InvalidRequest> {
    fields.text("name")?;
    let mut location = fields.take("user_location");
    if let Some(Value::Object(members)) = &mut location {
        members.shift_remove("type");
    }
    Ok(ToolKind::WebSearch { location })
}

fn function(fields: &mut Fields<'_>) -> Result<ToolKind, InvalidRequest> {
    let name = fields.needed_name("name")?;
    let parameters = match fields.take("input_schema") {
        Some(schema @ Value::Object(_)) => schema,
        _ => {
            let why = "is required and must be a JSON schema of type object";
            return Err(fields.bad("input_schema", why));
        }
    };
    Ok(ToolKind::Function {
        name,
        description: fields.text("description")?,
        parameters: Some(parameters),
        strict: fields.flag("strict")?,
    })
}

/// Reads `tool_choice`: which tools, and whether several at once. The glance has checked it.
pub(super) fn read_choice(
    fields: &mut Fields<'_>,
) -> Result<(Option<ToolChoice>, Option<bool>), InvalidRequest> {
    let Some(value) = fields.take("tool_choice") else {
        return Ok((None, None));
    };
    let at = Path::Member(&Path::Root, "tool_choice");
    let mut choice = Fields::of(value, &at)?;
    let parallel = choice.flag("disable_parallel_tool_use")?.map(|off| !off);
    let choice = match choice.needed_text("type")?.as_str() {
        "any" => ToolChoice::Required,
        "tool" => ToolChoice::Tool(choice.needed_name("name")?),
        "none" => ToolChoice::None,
        _ => ToolChoice::Auto,
    };
    Ok((Some(choice), parallel))
}

/// A function's definition.
pub(super) fn write_function(
    name: &str,
    description: Option<&str>,
    parameters: Option<&Value>,
    strict: Option<bool>,
) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("name".to_owned(), json!(name));
    if let Some(text) = description {
        out.insert("description".to_owned(), json!(text));
    }
    out.insert("input_schema".to_owned(), object_schema(parameters));
    if let Some(strict) = strict {
        out.insert("strict".to_owned(), json!(strict));
    }
    out
}

/// A schema that says of itself that it is an object's; a function without parameters has an empty one.
fn object_schema(parameters: Option<&Value>) -> Value {
    match parameters {
        Some(Value::Object(schema)) if schema.get("type").is_some_and(|kind| kind == "object") => {
            Value::Object(schema.clone())
        }
        Some(Value::Object(schema)) => {
            let mut typed = Map::from_iter([("type".to_owned(), json!("object"))]);
            let rest = schema.iter().filter(|(name, _)| *name != "type");
            typed.extend(rest.map(|(name, value)| (name.clone(), value.clone())));
            Value::Object(typed)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// The function that stands in for a free-text tool: this format has none.
pub(super) fn write_custom(
    name: &str,
    description: Option<&str>,
    format: Option<&Value>,
) -> Map<String, Value> {
    let text = format
        .and_then(|format| format.get("definition"))
        .and_then(Value::as_str)
        .map(|grammar| format!("The whole input, in this grammar:\n{grammar}"));
    let text = text.unwrap_or_else(|| "The whole input.".to_owned());
    let schema = json!({
        "type": "object",
        "properties": {"input": {"type": "string", "description": text}},
        "required": ["input"],
    });
    write_function(name, description, Some(&schema), None)
}

/// The vendor's web search.
pub(super) fn write_web_search(tool: &Tool, location: Option<&Value>) -> Map<String, Value> {
    let version = tool
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(TYPE));
    let mut out = Map::new();
    let version = version.cloned().unwrap_or_else(|| json!(WEB_SEARCH));
    out.insert("type".to_owned(), version);
    out.insert("name".to_owned(), json!("web_search"));
    if let Some(Value::Object(place)) = location {
        let mut whole = Map::from_iter([("type".to_owned(), json!("approximate"))]);
        whole.extend(place.clone());
        out.insert("user_location".to_owned(), Value::Object(whole));
    }
    out
}

/// What only this format says of a tool, put back.
pub(super) fn with_own(mut out: Map<String, Value>, tool: &Tool) -> Value {
    let kind = tool
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get(TYPE));
    if let (Some(kind), false) = (kind, out.contains_key("type")) {
        out.insert("type".to_owned(), kind.clone());
    }
    put_back(&tool.extra, &mut out);
    Value::Object(out)
}
