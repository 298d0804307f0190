//! The conversation, read.

use serde_json::{Map, Value};

use super::super::wire::{NAME, ROLES_IN_WORDS};
use super::parts;
use super::value::{left, list, need_object, need_text, object, take, take_text, text};
use crate::error::Bad;
use crate::hub::{Kind, Opaque, Own, Part, Role, Turn};

/// Reads `messages`: one turn each.
pub(super) fn read(messages: Vec<Value>) -> Result<Vec<Turn>, Bad> {
    let mut reader = Reader::default();
    let numbered = messages.into_iter().enumerate();
    numbered
        .map(|(at, message)| reader.message(at, message))
        .collect()
}

/// Knows the calls that wait for their results, so that results without an id find theirs.
#[derive(Default)]
struct Reader {
    waiting: Vec<Waiting>,
}

struct Waiting {
    /// The id as it stands in the call, or the name for the deprecated function calls, which have no id.
    said: String,
    /// The id in the hub.
    id: String,
    name: String,
    custom: bool,
}

impl Reader {
    fn message(&mut self, at: usize, value: Value) -> Result<Turn, Bad> {
        let path = format!("messages[{at}]");
        let mut map = object(value, &path)?;
        let role = need_text(&mut map, "role", &path)?;
        let name = take_text(&mut map, "name", &path)?;
        let mut own = Map::new();
        let (role, parts, plain) = match role.as_str() {
            "system" | "developer" => {
                if role == "developer" {
                    // A spelling: nobody misses it.
                    own.insert(".role".to_owned(), role.into());
                }
                let (parts, plain) = need_content(&mut map, &path)?;
                (Role::System, parts, plain)
            }
            "user" => {
                let (parts, plain) = need_content(&mut map, &path)?;
                (Role::User, parts, plain)
            }
            "assistant" => {
                let (parts, plain) = self.assistant(at, &mut map, &path)?;
                (Role::Assistant, parts, plain)
            }
            "tool" => {
                let id = need_text(&mut map, "tool_call_id", &path)?;
                (
                    Role::User,
                    vec![self.result(id, None, &mut map, &path)?],
                    false,
                )
            }
            "function" => {
                let function =
                    name.ok_or_else(|| Bad::new(format!("{path}.name"), "is required"))?;
                let result = self.result(function.clone(), Some(function), &mut map, &path)?;
                return Ok(Turn::of(Role::User, vec![result]));
            }
            _ => return Err(Bad::new(format!("{path}.role"), ROLES_IN_WORDS)),
        };
        let mut parts = parts;
        // Some clients put the marker on the message.
        if let (Some(cache), Some(last)) = (parts::take_cache(&mut map), parts.last_mut()) {
            last.cache = last.cache.take().or(Some(cache));
        }
        own.extend(left(map));
        Ok(Turn {
            role,
            parts,
            plain,
            name,
            own: Own::of(NAME, own),
        })
    }

    fn assistant(
        &mut self,
        at: usize,
        map: &mut Map<String, Value>,
        path: &str,
    ) -> Result<(Vec<Part>, bool), Bad> {
        self.waiting.clear();
        let mut parts = reasoning(map);
        let (content, plain) = match take(map, "content") {
            Some(content) => content_of(content, &format!("{path}.content"))?,
            None => (Vec::new(), false),
        };
        parts.extend(content);
        if let Some(words) = take_text(map, "refusal", path)?.filter(|words| !words.is_empty()) {
            parts.push(Part::of(Kind::Refusal(words)));
        }
        if let Some(calls) = take(map, "tool_calls") {
            let field = format!("{path}.tool_calls");
            for (k, call) in list(calls, &field)?.into_iter().enumerate() {
                parts.push(self.call(call, &format!("{field}[{k}]"), (at, k))?);
            }
        }
        if let Some(call) = take(map, "function_call") {
            let field = format!("{path}.function_call");
            let mut function = object(call, &field)?;
            let name = need_text(&mut function, "name", &field)?;
            let arguments = arguments(take(&mut function, "arguments"));
            parts.push(self.wait_for(name.clone(), minted(at, 0), name, arguments, false));
        }
        // The SDKs echo these of a reply.
        map.retain(|name, value| {
            name != "annotations" || value.as_array().is_none_or(|list| !list.is_empty())
        });
        Ok((parts, plain))
    }

    fn call(&mut self, value: Value, path: &str, place: (usize, usize)) -> Result<Part, Bad> {
        let mut map = object(value, path)?;
        let said = take_text(&mut map, "id", path)?.unwrap_or_default();
        let id = match said.as_str() {
            "" => minted(place.0, place.1),
            id => id.to_owned(),
        };
        if map.get("type").is_some_and(|kind| kind == "custom") {
            let mut custom = need_object(&mut map, "custom", path)?;
            let path = format!("{path}.custom");
            let name = need_text(&mut custom, "name", &path)?;
            let input = take_text(&mut custom, "input", &path)?.unwrap_or_default();
            return Ok(self.wait_for(said, id, name, input, true));
        }
        let mut function = need_object(&mut map, "function", path)?;
        let name = need_text(&mut function, "name", &format!("{path}.function"))?;
        let arguments = arguments(take(&mut function, "arguments"));
        Ok(self.wait_for(said, id, name, arguments, false))
    }

    fn wait_for(
        &mut self,
        said: String,
        id: String,
        name: String,
        arguments: String,
        custom: bool,
    ) -> Part {
        self.waiting.push(Waiting {
            said,
            id: id.clone(),
            name: name.clone(),
            custom,
        });
        Part::of(Kind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature: None,
        })
    }

    /// `said` is the id that the result names, or for the deprecated role the function.
    fn result(
        &mut self,
        said: String,
        name: Option<String>,
        map: &mut Map<String, Value>,
        path: &str,
    ) -> Result<Part, Bad> {
        let found = self.waiting.iter().position(|call| match &name {
            Some(name) => call.name == *name,
            None => call.said == said,
        });
        let (id, custom) = match found.map(|at| self.waiting.remove(at)) {
            Some(call) => (call.id, call.custom),
            None => (said, false),
        };
        let (content, plain) = match take(map, "content") {
            Some(content) => content_of(content, &format!("{path}.content"))?,
            None if name.is_some() => (Vec::new(), true),
            None => return Err(Bad::new(format!("{path}.content"), "is required")),
        };
        Ok(Part::of(Kind::ToolResult {
            id,
            name: None,
            content,
            plain,
            is_error: false,
            custom,
        }))
    }
}

/// The id of a call that came without one: the same whenever the same conversation is read.
fn minted(message: usize, call: usize) -> String {
    format!("call_{message}_{call}")
}

/// Arguments as JSON text. Some clients send the object itself.
fn arguments(value: Option<Value>) -> String {
    match value {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    }
}

fn need_content(map: &mut Map<String, Value>, path: &str) -> Result<(Vec<Part>, bool), Bad> {
    let path = format!("{path}.content");
    match take(map, "content") {
        Some(content) => content_of(content, &path),
        None => Err(Bad::new(path, "is required")),
    }
}

/// Parts, and whether the content was one string.
fn content_of(content: Value, path: &str) -> Result<(Vec<Part>, bool), Bad> {
    match content {
        Value::String(text) if text.is_empty() => Ok((Vec::new(), true)),
        Value::String(text) => Ok((vec![Part::text(text)], true)),
        Value::Array(list) => {
            let numbered = list.into_iter().enumerate();
            let parts = numbered
                .filter_map(|(at, part)| parts::read(part, &format!("{path}[{at}]")).transpose());
            Ok((parts.collect::<Result<_, _>>()?, false))
        }
        _ => Err(Bad::new(path, "must be a string or a list of parts")),
    }
}

/// Thinking in the spellings of vendors and gateways: `thinking_blocks` (with signatures), `reasoning_content`, `reasoning`.
pub(in super::super) fn reasoning(map: &mut Map<String, Value>) -> Vec<Part> {
    let blocks = match take(map, "thinking_blocks") {
        Some(Value::Array(blocks)) => blocks.iter().filter_map(thinking_block).collect(),
        _ => Vec::new(),
    };
    let words = |map: &mut Map<String, Value>, name: &str| {
        map.get(name)
            .is_none_or(|value| value.is_string() || value.is_null())
            .then(|| take(map, name))
            .flatten()
            .and_then(|value| text(value, name).ok())
    };
    let (first, second) = (words(map, "reasoning_content"), words(map, "reasoning"));
    if !blocks.is_empty() {
        return blocks;
    }
    let said = first.or(second).filter(|text| !text.is_empty());
    said.into_iter().map(|text| thinking(text, None)).collect()
}

fn thinking(text: String, signature: Option<Opaque>) -> Part {
    Part::of(Kind::Reasoning {
        text,
        signature,
        id: None,
        summary: false,
    })
}

fn thinking_block(block: &Value) -> Option<Part> {
    const VENDOR: &str = "anthropic";
    let word = |name: &str| block[name].as_str();
    match word("type")? {
        "thinking" => {
            let signature = word("signature").filter(|text| !text.is_empty());
            let signature = signature.map(|text| Opaque::unwrapped(text, VENDOR));
            Some(thinking(word("thinking")?.to_owned(), signature))
        }
        "redacted_thinking" => {
            let data = Opaque::unwrapped(word("data")?, VENDOR);
            Some(Part::of(Kind::Redacted(data)))
        }
        _ => None,
    }
}
