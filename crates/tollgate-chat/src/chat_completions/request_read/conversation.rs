//! Reads `messages`: turns, tool calls and their results.

use serde_json::{Map, Value};

use super::parts;
use crate::chat_completions::constants::{NAME, ROLE_RULE};
use crate::chat_completions::json_fields::{
    expect_array, expect_object, remaining_fields, require_object, require_string, take_field,
    take_string,
};
use crate::chat_completions::reasoning::take_reasoning_parts;
use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, Part, PartKind, Role, Turn};

/// Reads `messages`: one turn each.
pub(in crate::chat_completions) fn read_messages(
    messages: Vec<Value>,
) -> Result<Vec<Turn>, InvalidRequest> {
    let mut reader = Reader::default();
    let numbered = messages.into_iter().enumerate();
    numbered
        .map(|(at, message)| reader.read_message(at, message))
        .collect()
}

/// Remembers the calls without results, so that results can be matched to calls without an id.
#[derive(Default)]
struct Reader {
    pending: Vec<PendingCall>,
}

struct PendingCall {
    /// The id in the client's call, or the name for deprecated function calls, which have no id.
    client_id: String,
    /// The id in the hub.
    id: String,
    name: String,
    custom: bool,
}

impl Reader {
    fn read_message(&mut self, at: usize, value: Value) -> Result<Turn, InvalidRequest> {
        let path = format!("messages[{at}]");
        let mut map = expect_object(value, &path)?;
        let role = require_string(&mut map, "role", &path)?;
        let name = take_string(&mut map, "name", &path)?;
        let mut extra = Map::new();
        let (role, parts, plain) = match role.as_str() {
            "system" | "developer" => {
                if role == "developer" {
                    // Stored with a leading dot: it is only a spelling, and other formats need not report it as dropped.
                    extra.insert(".role".to_owned(), role.into());
                }
                let (parts, plain) = require_content(&mut map, &path)?;
                (Role::System, parts, plain)
            }
            "user" => {
                let (parts, plain) = require_content(&mut map, &path)?;
                (Role::User, parts, plain)
            }
            "assistant" => {
                let (parts, plain) = self.read_assistant(at, &mut map, &path)?;
                (Role::Assistant, parts, plain)
            }
            "tool" => {
                let id = require_string(&mut map, "tool_call_id", &path)?;
                (
                    Role::User,
                    vec![self.read_result(id, None, &mut map, &path)?],
                    false,
                )
            }
            "function" => {
                let function =
                    name.ok_or_else(|| InvalidRequest::new(format!("{path}.name"), "is required"))?;
                let result = self.read_result(function.clone(), Some(function), &mut map, &path)?;
                return Ok(Turn::new(Role::User, vec![result]));
            }
            _ => return Err(InvalidRequest::new(format!("{path}.role"), ROLE_RULE)),
        };
        let mut parts = parts;
        // Some clients set the cache marker on the message.
        if let (Some(cache_ttl), Some(last)) = (parts::take_cache_ttl(&mut map), parts.last_mut()) {
            last.cache_ttl = last.cache_ttl.take().or(Some(cache_ttl));
        }
        extra.extend(remaining_fields(map));
        Ok(Turn {
            role,
            parts,
            plain,
            name,
            extra: ExtraFields::new(NAME, extra),
        })
    }

    fn read_assistant(
        &mut self,
        at: usize,
        map: &mut Map<String, Value>,
        path: &str,
    ) -> Result<(Vec<Part>, bool), InvalidRequest> {
        self.pending.clear();
        let mut parts = take_reasoning_parts(map);
        let (content, plain) = match take_field(map, "content") {
            Some(content) => read_content(content, &format!("{path}.content"))?,
            None => (Vec::new(), false),
        };
        parts.extend(content);
        if let Some(text) = take_string(map, "refusal", path)?.filter(|text| !text.is_empty()) {
            parts.push(Part::new(PartKind::Refusal(text)));
        }
        if let Some(calls) = take_field(map, "tool_calls") {
            let field = format!("{path}.tool_calls");
            for (k, call) in expect_array(calls, &field)?.into_iter().enumerate() {
                parts.push(self.read_call(call, &format!("{field}[{k}]"), (at, k))?);
            }
        }
        if let Some(call) = take_field(map, "function_call") {
            let field = format!("{path}.function_call");
            let mut function = expect_object(call, &field)?;
            let name = require_string(&mut function, "name", &field)?;
            let arguments = arguments_text(take_field(&mut function, "arguments"));
            parts.push(self.add_call(
                name.clone(),
                generate_call_id(at, 0),
                name,
                arguments,
                false,
            ));
        }
        // SDKs send the empty annotations of a response back in the next request.
        map.retain(|name, value| {
            name != "annotations" || value.as_array().is_none_or(|list| !list.is_empty())
        });
        Ok((parts, plain))
    }

    fn read_call(
        &mut self,
        value: Value,
        path: &str,
        position: (usize, usize),
    ) -> Result<Part, InvalidRequest> {
        let mut map = expect_object(value, path)?;
        let client_id = take_string(&mut map, "id", path)?.unwrap_or_default();
        let id = match client_id.as_str() {
            "" => generate_call_id(position.0, position.1),
            id => id.to_owned(),
        };
        if map.get("type").is_some_and(|kind| kind == "custom") {
            let mut custom = require_object(&mut map, "custom", path)?;
            let path = format!("{path}.custom");
            let name = require_string(&mut custom, "name", &path)?;
            let input = take_string(&mut custom, "input", &path)?.unwrap_or_default();
            return Ok(self.add_call(client_id, id, name, input, true));
        }
        let mut function = require_object(&mut map, "function", path)?;
        let name = require_string(&mut function, "name", &format!("{path}.function"))?;
        let arguments = arguments_text(take_field(&mut function, "arguments"));
        Ok(self.add_call(client_id, id, name, arguments, false))
    }

    fn add_call(
        &mut self,
        client_id: String,
        id: String,
        name: String,
        arguments: String,
        custom: bool,
    ) -> Part {
        self.pending.push(PendingCall {
            client_id,
            id: id.clone(),
            name: name.clone(),
            custom,
        });
        Part::new(PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature: None,
        })
    }

    /// `client_id` is the id that the result names, or the function's name for the deprecated role `function`.
    fn read_result(
        &mut self,
        client_id: String,
        name: Option<String>,
        map: &mut Map<String, Value>,
        path: &str,
    ) -> Result<Part, InvalidRequest> {
        let found = self.pending.iter().position(|call| match &name {
            Some(name) => call.name == *name,
            None => call.client_id == client_id,
        });
        let (id, custom) = match found.map(|at| self.pending.remove(at)) {
            Some(call) => (call.id, call.custom),
            None => (client_id, false),
        };
        let (content, plain) = match take_field(map, "content") {
            Some(content) => read_content(content, &format!("{path}.content"))?,
            None if name.is_some() => (Vec::new(), true),
            None => {
                return Err(InvalidRequest::new(
                    format!("{path}.content"),
                    "is required",
                ));
            }
        };
        Ok(Part::new(PartKind::ToolResult {
            id,
            name: None,
            content,
            plain,
            is_error: false,
            custom,
        }))
    }
}

/// The id of a call without one: always the same for the same conversation.
fn generate_call_id(message: usize, call: usize) -> String {
    format!("call_{message}_{call}")
}

/// Arguments as JSON text. Some clients send the object itself.
fn arguments_text(value: Option<Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

fn require_content(
    map: &mut Map<String, Value>,
    path: &str,
) -> Result<(Vec<Part>, bool), InvalidRequest> {
    let path = format!("{path}.content");
    match take_field(map, "content") {
        Some(content) => read_content(content, &path),
        None => Err(InvalidRequest::new(path, "is required")),
    }
}

/// Parts, and whether the content was one string.
fn read_content(content: Value, path: &str) -> Result<(Vec<Part>, bool), InvalidRequest> {
    match content {
        Value::String(text) if text.is_empty() => Ok((Vec::new(), true)),
        Value::String(text) => Ok((vec![Part::text(text)], true)),
        Value::Array(list) => {
            let numbered = list.into_iter().enumerate();
            let parts = numbered.filter_map(|(at, part)| {
                parts::read_part(part, &format!("{path}[{at}]")).transpose()
            });
            Ok((parts.collect::<Result<_, _>>()?, false))
        }
        _ => Err(InvalidRequest::new(
            path,
            "must be a string or a list of parts",
        )),
    }
}
