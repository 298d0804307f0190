//! Reads a Responses request into the hub's form.
//!
//! The request summary has checked types and ranges of the plain members before.

mod content_parts;
mod input_items;
pub(super) mod tools;

use serde_json::{Map, Value};

use super::constants::{INCLUDE_LOGPROBS, INCLUDE_REASONING, NAME};
use super::extra_fields::{NOTE_INPUT, NOTE_INSTRUCTIONS, spelling_note};
use super::field_names::CLIENT_FORMAT;
use super::json::{invalid_value, take_member};
use super::request_summary::summarize_request;
use crate::error::InvalidRequest;
use crate::hub::{Effort, ExtraFields, OutputFormat, Part, Reasoning, Request, Role, Turn};
use input_items::read_items;
use tools::{read_choice, read_tools};

/// See [`crate::Format::read_request`].
pub(super) fn read_request(body: &[u8]) -> Result<Request, InvalidRequest> {
    let summary = summarize_request(body)?;
    let members: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body is not valid JSON: {error}")))?;
    let mut reader = RequestReader {
        request: Request {
            client_format: &CLIENT_FORMAT,
            model: summary.model.unwrap_or_default(),
            stream: summary.stream,
            max_tokens: summary.max_tokens,
            ..Request::default()
        },
        extra: Map::new(),
        input: Vec::new(),
    };
    for (name, value) in members {
        if !value.is_null() {
            reader.read_member(name, value)?;
        }
    }
    let RequestReader {
        mut request,
        extra,
        input,
    } = reader;
    request.turns.extend(input);
    request.extra = ExtraFields::new(NAME, extra);
    Ok(request)
}

struct RequestReader {
    request: Request,
    extra: Map<String, Value>,
    /// The turns of `input`; `instructions` precede them whatever the order of members.
    input: Vec<Turn>,
}

impl RequestReader {
    fn read_member(&mut self, name: String, value: Value) -> Result<(), InvalidRequest> {
        let request = &mut self.request;
        match name.as_str() {
            "model" | "stream" | "max_output_tokens" | "max_tokens" => {}
            "instructions" => request.turns.extend(value.as_str().map(instructions_turn)),
            "input" => self.input = read_input(value)?,
            "temperature" => request.temperature = value.as_f64(),
            "top_p" => request.top_p = value.as_f64(),
            // 0 is the default.
            "top_logprobs" if value == 0 => self.keep_extra(spelling_note(&name), value),
            "top_logprobs" => request.logprobs = value.as_u64().map(|k| k as u32),
            "parallel_tool_calls" => request.parallel_tools = value.as_bool(),
            "tools" => request.tools = read_tools(value)?,
            "tool_choice" => match read_choice(&value)? {
                Some(choice) => request.tool_choice = Some(choice),
                None => self.keep_extra(name, value),
            },
            "reasoning" => request.reasoning = Some(read_reasoning(value)?),
            "text" => self.read_text(value)?,
            "metadata" => request.metadata = Some(read_metadata(value)?),
            "prompt_cache_key" => request.cache_key = value.as_str().map(str::to_owned),
            "service_tier" => request.service_tier = value.as_str().map(str::to_owned),
            "user" => self.read_user(value),
            "include" => self.read_include(value)?,
            "conversation" if !value.is_string() && !value.is_object() => {
                return Err(invalid_value(
                    "conversation",
                    "a string or an object",
                    &value,
                ));
            }
            _ if is_default_value(&name, &value) => self.keep_extra(spelling_note(&name), value),
            _ => self.keep_extra(name, value),
        }
        Ok(())
    }

    fn keep_extra(&mut self, name: String, value: Value) {
        self.extra.insert(name, value);
    }

    fn read_user(&mut self, value: Value) {
        self.request.user = value.as_str().map(str::to_owned);
    }

    /// `text`: output format and verbosity.
    fn read_text(&mut self, value: Value) -> Result<(), InvalidRequest> {
        let Value::Object(mut members) = value else {
            return Ok(());
        };
        if let Some(format) = take_member(&mut members, "format") {
            self.request.output = Some(read_output(format)?);
        }
        if let Some(verbosity) = take_member(&mut members, "verbosity") {
            let Value::String(word) = verbosity else {
                return Err(invalid_value("text.verbosity", "a string", &verbosity));
            };
            self.request.verbosity = Some(word);
        }
        members.retain(|_, value| !value.is_null());
        if !members.is_empty() {
            self.keep_extra("text".to_owned(), Value::Object(members));
        }
        Ok(())
    }

    /// `include`. Values that the hub has a field for, or that every response has anyway, are not
    /// reported as dropped by other formats.
    fn read_include(&mut self, value: Value) -> Result<(), InvalidRequest> {
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(odd) = list.iter().position(|entry| !entry.is_string()) {
            return Err(invalid_value(
                &format!("include[{odd}]"),
                "a string",
                &list[odd],
            ));
        }
        if list.iter().any(|entry| entry == INCLUDE_LOGPROBS) {
            self.request.logprobs = self.request.logprobs.or(Some(0));
        }
        let is_kept = |entry: &Value| entry == INCLUDE_LOGPROBS || entry == INCLUDE_REASONING;
        let name = match list.iter().all(is_kept) {
            true => spelling_note("include"),
            false => "include".to_owned(),
        };
        self.keep_extra(name, value);
        Ok(())
    }
}

/// Whether a member only states the default. `store: false` is such a member, because the gateway stores nothing.
fn is_default_value(name: &str, value: &Value) -> bool {
    match name {
        "store" | "background" => value == &Value::Bool(false),
        "truncation" => value == "disabled",
        "stream_options" => true,
        _ => false,
    }
}

fn instructions_turn(text: &str) -> Turn {
    let parts = match text.is_empty() {
        true => Vec::new(),
        false => vec![Part::text(text)],
    };
    with_note(Turn::new(Role::System, parts), NOTE_INSTRUCTIONS)
}

fn read_input(value: Value) -> Result<Vec<Turn>, InvalidRequest> {
    match value {
        Value::String(text) => {
            let turn = Turn::new(Role::User, vec![Part::text(text)]);
            Ok(vec![with_note(turn, NOTE_INPUT)])
        }
        Value::Array(items) => read_items(items),
        _ => Ok(Vec::new()),
    }
}

fn with_note(mut turn: Turn, note: &str) -> Turn {
    turn.plain = true;
    turn.extra = ExtraFields::new(NAME, Map::from_iter([(note.to_owned(), Value::Bool(true))]));
    turn
}

fn read_reasoning(value: Value) -> Result<Reasoning, InvalidRequest> {
    const ALLOWED: &str = "one of none, minimal, low, medium, high, xhigh, max";
    let Value::Object(mut members) = value else {
        return Ok(Reasoning::default());
    };
    let effort = match take_member(&mut members, "effort") {
        None => None,
        Some(word) => Some(
            word.as_str()
                .and_then(Effort::parse)
                .ok_or_else(|| invalid_value("reasoning.effort", ALLOWED, &word))?,
        ),
    };
    let mut show = None;
    for (name, is_deprecated) in [("summary", false), ("generate_summary", true)] {
        let Some(value) = take_member(&mut members, name) else {
            continue;
        };
        let Value::String(word) = value else {
            return Err(invalid_value(
                &format!("reasoning.{name}"),
                "a string",
                &value,
            ));
        };
        if is_deprecated {
            members.insert(spelling_note(name), Value::String(word.clone()));
        }
        show = show.or(Some(word));
    }
    members.retain(|_, value| !value.is_null());
    Ok(Reasoning {
        effort,
        display: show,
        extra: ExtraFields::new(NAME, members),
        ..Reasoning::default()
    })
}

fn read_output(value: Value) -> Result<OutputFormat, InvalidRequest> {
    let Value::Object(mut members) = value else {
        return Err(invalid_value("text.format", "an object", &value));
    };
    let kind = take_member(&mut members, "type").unwrap_or(Value::Null);
    match kind.as_str() {
        Some("text") => Ok(OutputFormat::Text),
        Some("json_object") => Ok(OutputFormat::Json),
        Some("json_schema") => {
            let mut text = |name: &str| match take_member(&mut members, name) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(odd) => Err(invalid_value(
                    &format!("text.format.{name}"),
                    "a string",
                    &odd,
                )),
            };
            let (name, description) = (text("name")?, text("description")?);
            let strict = match take_member(&mut members, "strict") {
                None => None,
                Some(Value::Bool(strict)) => Some(strict),
                Some(odd) => {
                    return Err(invalid_value("text.format.strict", "true or false", &odd));
                }
            };
            let schema = take_member(&mut members, "schema").unwrap_or(Value::Null);
            if !schema.is_object() {
                return Err(invalid_value(
                    "text.format.schema",
                    "a JSON schema",
                    &schema,
                ));
            }
            Ok(OutputFormat::Schema {
                name,
                description,
                schema,
                strict,
            })
        }
        _ => Err(invalid_value(
            "text.format.type",
            "one of text, json_object, json_schema",
            &kind,
        )),
    }
}

fn read_metadata(value: Value) -> Result<Value, InvalidRequest> {
    let odd = value
        .as_object()
        .and_then(|map| map.iter().find(|(_, value)| !value.is_string()));
    match odd {
        Some((name, odd)) => Err(invalid_value(&format!("metadata.{name}"), "a string", odd)),
        None => Ok(value),
    }
}
