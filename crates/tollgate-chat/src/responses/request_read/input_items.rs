//! Reads the items of `input` into turns: messages, tool calls and their outputs, reasoning items.
//! One item becomes one turn.

use serde_json::{Map, Value};

use super::content_parts::{keep_members, read_parts};
use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Opaque, Part, PartKind, Role, Turn};
use crate::responses::constants::NAME;
use crate::responses::encrypted_content::EncryptedContent;
use crate::responses::extra_fields::spelling_note;
use crate::responses::json::{invalid_value, optional_string, required_string, take_member};

/// Reads `input`.
pub(crate) fn read_items(items: Vec<Value>) -> Result<Vec<Turn>, InvalidRequest> {
    let mut turns = Vec::with_capacity(items.len());
    for (i, item) in items.into_iter().enumerate() {
        let path = format!("input[{i}]");
        let Value::Object(item) = item else {
            return Err(invalid_value(&path, "an object", &item));
        };
        read_item(item, &path, &mut turns)?;
    }
    Ok(turns)
}

fn read_item(
    item: Map<String, Value>,
    path: &str,
    turns: &mut Vec<Turn>,
) -> Result<(), InvalidRequest> {
    let kind = match item.get("type").unwrap_or(&Value::Null) {
        Value::String(kind) => kind.clone(),
        Value::Null if item.contains_key("role") => "message".to_owned(),
        Value::Null if item.contains_key("id") => "item_reference".to_owned(),
        Value::Null => return Err(InvalidRequest::new(format!("{path}.role"), ROLES)),
        odd => return Err(invalid_value(&format!("{path}.type"), "a string", odd)),
    };
    let turn = match kind.as_str() {
        "message" => read_message(item, path)?,
        "function_call" => single_part_turn(Role::Assistant, read_call(item, path, false)?),
        "custom_tool_call" => single_part_turn(Role::Assistant, read_call(item, path, true)?),
        "function_call_output" => single_part_turn(Role::User, read_result(item, path, false)?),
        "custom_tool_call_output" => single_part_turn(Role::User, read_result(item, path, true)?),
        "reasoning" => return read_reasoning(item, path, turns),
        _ => {
            let role = match kind.ends_with("_output") || kind.ends_with("_response") {
                true => Role::User,
                false => Role::Assistant,
            };
            let value = Value::Object(item);
            single_part_turn(
                role,
                Part::new(PartKind::FormatSpecific {
                    format: NAME,
                    value,
                }),
            )
        }
    };
    turns.push(turn);
    Ok(())
}

const ROLES: &str = "is required: one of user, assistant, system, developer";

fn single_part_turn(role: Role, part: Part) -> Turn {
    Turn::new(role, vec![part])
}

fn read_message(mut item: Map<String, Value>, path: &str) -> Result<Turn, InvalidRequest> {
    let role_path = format!("{path}.role");
    let word = take_member(&mut item, "role").unwrap_or(Value::Null);
    let role = match word.as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system" | "developer") => Role::System,
        _ => {
            let allowed = "one of user, assistant, system, developer";
            return Err(invalid_value(&role_path, allowed, &word));
        }
    };
    let mut extra = Map::new();
    if word == "developer" {
        extra.insert(spelling_note("role"), word);
    }
    let content = take_member(&mut item, "content").unwrap_or(Value::Null);
    let path = format!("{path}.content");
    let plain = content.is_string();
    let parts = match content {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => read_parts(parts, &path, role)?,
        odd => return Err(invalid_value(&path, "a string or an array of parts", &odd)),
    };
    extra.extend(keep_members(item, &["type", "id", "status", "phase"]));
    Ok(Turn {
        plain,
        extra: ExtraFields::new(NAME, extra),
        ..Turn::new(role, parts)
    })
}

fn read_call(
    mut item: Map<String, Value>,
    path: &str,
    custom: bool,
) -> Result<Part, InvalidRequest> {
    let mut named = |name: &str| match required_string(&mut item, name, path)? {
        text if text.is_empty() => Err(InvalidRequest::new(
            format!("{path}.{name}"),
            "must not be empty",
        )),
        text => Ok(text),
    };
    let (id, name) = (named("call_id")?, named("name")?);
    let arguments = required_string(&mut item, if custom { "input" } else { "arguments" }, path)?;
    item.shift_remove("type");
    let kind = PartKind::ToolCall {
        id,
        name,
        arguments,
        custom,
        signature: None,
    };
    let extra = ExtraFields::new(NAME, keep_members(item, &["id", "status"]));
    Ok(Part {
        extra,
        ..Part::new(kind)
    })
}

fn read_result(
    mut item: Map<String, Value>,
    path: &str,
    custom: bool,
) -> Result<Part, InvalidRequest> {
    let id = required_string(&mut item, "call_id", path)?;
    if id.is_empty() {
        return Err(InvalidRequest::new(
            format!("{path}.call_id"),
            "must not be empty",
        ));
    }
    let name = optional_string(&mut item, "name", path)?;
    let output = take_member(&mut item, "output").unwrap_or(Value::Null);
    let plain = output.is_string();
    let path = format!("{path}.output");
    let content = match output {
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::String(text) => vec![Part::text(text)],
        Value::Array(parts) => read_parts(parts, &path, Role::User)?,
        odd => return Err(invalid_value(&path, "a string or an array of parts", &odd)),
    };
    item.shift_remove("type");
    let kind = PartKind::ToolResult {
        id,
        name,
        content,
        plain,
        is_error: false,
        custom,
    };
    let extra = ExtraFields::new(NAME, keep_members(item, &["id", "status"]));
    Ok(Part {
        extra,
        ..Part::new(kind)
    })
}

/// Reads a reasoning item into one part per summary and per reasoning text; the last one gets the
/// signature. An item that only transports the signature of a call or text is not a turn: its
/// signature is attached to that call or text.
fn read_reasoning(
    mut item: Map<String, Value>,
    path: &str,
    turns: &mut Vec<Turn>,
) -> Result<(), InvalidRequest> {
    let id = optional_string(&mut item, "id", path)?;
    let encrypted = optional_string(&mut item, "encrypted_content", path)?
        .map(|text| EncryptedContent::decode(&text));
    let mut parts = Vec::new();
    for (list, is_summary) in [("summary", true), ("content", false)] {
        for text in read_reasoning_texts(take_member(&mut item, list), &format!("{path}.{list}"))? {
            parts.push(reasoning_part(text, is_summary, &id));
        }
    }
    match encrypted {
        Some(EncryptedContent::CallSignature(call, opaque)) => {
            attach_signature_to_call(turns, &call, opaque);
            return Ok(());
        }
        Some(EncryptedContent::TextSignature(opaque)) => {
            attach_signature_to_text(turns, opaque);
            return Ok(());
        }
        Some(EncryptedContent::Redacted(opaque)) => {
            parts.push(Part::new(PartKind::RedactedReasoning(opaque)))
        }
        Some(EncryptedContent::Signature(opaque)) => {
            if parts.is_empty() {
                parts.push(reasoning_part(String::new(), true, &id));
            }
            if let Some(PartKind::Reasoning { signature, .. }) =
                parts.last_mut().map(|p| &mut p.kind)
            {
                *signature = Some(opaque);
            }
        }
        None if parts.is_empty() => parts.push(reasoning_part(String::new(), true, &id)),
        None => {}
    }
    item.shift_remove("type");
    if let Some(first) = parts.first_mut() {
        first.extra = ExtraFields::new(NAME, keep_members(item, &["status"]));
    }
    turns.push(Turn::new(Role::Assistant, parts));
    Ok(())
}

fn reasoning_part(text: String, summary: bool, id: &Option<String>) -> Part {
    Part::new(PartKind::Reasoning {
        text,
        signature: None,
        id: id.clone(),
        summary,
    })
}

fn read_reasoning_texts(list: Option<Value>, path: &str) -> Result<Vec<String>, InvalidRequest> {
    let list = match list {
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(odd) => return Err(invalid_value(path, "an array of texts", &odd)),
    };
    let text = |(i, entry): (usize, &Value)| match entry.get("text") {
        Some(Value::String(text)) => Ok(text.clone()),
        other => {
            let odd = other.unwrap_or(&Value::Null);
            Err(invalid_value(&format!("{path}[{i}].text"), "a string", odd))
        }
    };
    list.iter().enumerate().map(text).collect()
}

fn attach_signature_to_call(turns: &mut [Turn], call: &str, opaque: Opaque) {
    for part in turns
        .iter_mut()
        .rev()
        .flat_map(|turn| turn.parts.iter_mut().rev())
    {
        if let PartKind::ToolCall { id, signature, .. } = &mut part.kind
            && id == call
        {
            *signature = Some(opaque);
            return;
        }
    }
}

fn attach_signature_to_text(turns: &mut [Turn], opaque: Opaque) {
    let last = turns
        .iter_mut()
        .rev()
        .find(|turn| turn.role == Role::Assistant);
    let parts = last
        .into_iter()
        .flat_map(|turn| turn.parts.iter_mut().rev());
    for part in parts {
        if let PartKind::Text { signature, .. } = &mut part.kind {
            *signature = Some(opaque);
            return;
        }
    }
}
