//! Reads a client's request into the hub's form.

mod thinking;
mod tools;

use serde_json::{Map, Value, json};

use super::block_read::read_content;
use super::field_names::CLIENT_FORMAT;
use super::fields::{Fields, JsonPath};
use super::notes::NOTE_AMONG_MESSAGES;
use super::request_summary::summarize_request;
use crate::error::InvalidRequest;
use crate::hub::{OutputFormat, Part, PartKind, Request, Role, Turn};
pub(crate) use thinking::read_thinking;

/// See [`crate::Format::read_request`].
pub(crate) fn read_request(body: &[u8]) -> Result<Request, InvalidRequest> {
    let summary = summarize_request(body)?;
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let mut fields = Fields::from_value(value, &JsonPath::Root)?;
    let mut turns = Vec::from_iter(read_system(&mut fields)?);
    read_messages(&mut fields, &mut turns)?;
    let (tool_choice, parallel_tools) = tools::read_tool_choice(&mut fields)?;
    let mut output_config = take_object(&mut fields, "output_config");
    let output = read_output_format(&mut fields, &mut output_config)?;
    let reasoning = read_thinking(take_object(&mut fields, "thinking"), &mut output_config);
    let mut metadata = take_object(&mut fields, "metadata");
    metadata.shift_remove("user_id");
    for (name, left) in [("metadata", metadata), ("output_config", output_config)] {
        if !left.is_empty() {
            fields.insert(name, Value::Object(left));
        }
    }
    let stop = fields.take_list("stop_sequences")?.unwrap_or_default();
    // Types and ranges have been checked by the summary.
    let mut number = |name| fields.take(name).and_then(|value| value.as_f64());
    let (temperature, top_p) = (number("temperature"), number("top_p"));
    let top_k = fields.take("top_k").and_then(|value| value.as_u64());
    for known in ["model", "max_tokens", "stream"] {
        fields.take(known);
    }
    Ok(Request {
        client_format: &CLIENT_FORMAT,
        model: summary.model.unwrap_or_default(),
        turns,
        max_tokens: summary.max_tokens,
        temperature,
        top_p,
        top_k,
        stop: stop
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        output,
        tools: tools::read_tools(&mut fields)?,
        tool_choice,
        parallel_tools,
        reasoning,
        user: summary.user,
        service_tier: fields.take_text("service_tier")?,
        stream: summary.stream,
        extra: fields.into_extra(),
        ..Request::default()
    })
}

/// Takes an object; an empty one if it is missing.
fn take_object(fields: &mut Fields<'_>, name: &str) -> Map<String, Value> {
    match fields.take(name) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn read_system(fields: &mut Fields<'_>) -> Result<Option<Turn>, InvalidRequest> {
    let path = JsonPath::Member(&JsonPath::Root, "system");
    let Some(value) = fields.take("system") else {
        return Ok(None);
    };
    check_text_only(&value, &path)?;
    let (parts, plain) = read_content(value, &path)?;
    let turn = Turn {
        plain,
        ..Turn::new(Role::System, parts)
    };
    Ok((!turn.parts.is_empty()).then_some(turn))
}

/// System content must be text.
fn check_text_only(value: &Value, path: &JsonPath<'_>) -> Result<(), InvalidRequest> {
    for (index, block) in value.as_array().into_iter().flatten().enumerate() {
        if block.get("type").is_none_or(|kind| kind != "text") {
            let item = JsonPath::Item(path, index);
            return Err(JsonPath::Member(&item, "type").invalid("must be `text`"));
        }
    }
    Ok(())
}

fn read_messages(fields: &mut Fields<'_>, turns: &mut Vec<Turn>) -> Result<(), InvalidRequest> {
    let list = JsonPath::Member(&JsonPath::Root, "messages");
    let before = turns.len();
    for (index, message) in fields
        .take_list("messages")?
        .unwrap_or_default()
        .into_iter()
        .enumerate()
    {
        turns.push(read_message(message, &JsonPath::Item(&list, index))?);
    }
    let is_blank =
        |part: &Part| matches!(&part.kind, PartKind::Text { text, .. } if text.trim().is_empty());
    if turns[before..]
        .iter()
        .all(|turn| turn.parts.iter().all(is_blank))
    {
        return Err(list.invalid("must not all be empty"));
    }
    Ok(())
}

fn read_message(message: Value, path: &JsonPath<'_>) -> Result<Turn, InvalidRequest> {
    let mut fields = Fields::from_value(message, path)?;
    let role = match fields.require_text("role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return Err(fields.invalid("role", "must be `user`, `assistant` or `system`")),
    };
    let path = JsonPath::Member(path, "content");
    let value = fields
        .take("content")
        .ok_or_else(|| path.invalid("is required"))?;
    check_block_types(role, &value, &path)?;
    let (parts, plain) = read_content(value, &path)?;
    if role == Role::System {
        fields.insert(NOTE_AMONG_MESSAGES, json!(true));
    }
    Ok(Turn {
        role,
        parts,
        plain,
        name: None,
        extra: fields.into_extra(),
    })
}

/// Checks that tool calls and thinking are in assistant turns only, tool results in user turns only, and that system turns contain only text.
fn check_block_types(
    role: Role,
    content: &Value,
    path: &JsonPath<'_>,
) -> Result<(), InvalidRequest> {
    if role == Role::System {
        return check_text_only(content, path);
    }
    let (forbidden, owner): (&[&str], _) = match role {
        Role::Assistant => (&["tool_result"], "user"),
        _ => (&["tool_use", "thinking", "redacted_thinking"], "assistant"),
    };
    for (index, block) in content.as_array().into_iter().flatten().enumerate() {
        let kind = block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if forbidden.contains(&kind) {
            let why = format!("must not be `{kind}` here: it is allowed in {owner} turns only");
            return Err(JsonPath::Member(&JsonPath::Item(path, index), "type").invalid(why));
        }
    }
    Ok(())
}

/// Reads `output_config.format`, or its older name `output_format`.
fn read_output_format(
    fields: &mut Fields<'_>,
    output_config: &mut Map<String, Value>,
) -> Result<Option<OutputFormat>, InvalidRequest> {
    let config = JsonPath::Member(&JsonPath::Root, "output_config");
    let (current, older) = (
        JsonPath::Member(&config, "format"),
        JsonPath::Member(&JsonPath::Root, "output_format"),
    );
    let (value, path) = match output_config.shift_remove("format") {
        Some(value) => (Some(value), current),
        None => (fields.take("output_format"), older),
    };
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let mut format = Fields::from_value(value, &path)?;
    if format.take_text("type")?.as_deref() != Some("json_schema") {
        return Err(format.invalid("type", "must be `json_schema`"));
    }
    match format.take("schema") {
        Some(schema @ Value::Object(_)) => Ok(Some(OutputFormat::Schema {
            name: format.take_text("name")?,
            description: None,
            schema,
            strict: None,
        })),
        _ => Err(format.invalid("schema", "is required and must be a JSON schema")),
    }
}
