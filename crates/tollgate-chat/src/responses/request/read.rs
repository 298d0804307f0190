//! A request read into the hub's form. [`super::super::glance`] has checked types and ranges of the plain members before.

use serde_json::{Map, Value};

use super::items::read_items;
use super::tools::{read_choice, read_tools};
use crate::error::Bad;
use crate::hub::{Effort, OutputFormat, Own, Part, Reasoning, Request, Role, Turn};
use crate::responses::glance::glance;
use crate::responses::wire::{
    INCLUDE_LOGPROBS, INCLUDE_REASONING, NAME, NOTE_INPUT, NOTE_INSTRUCTIONS, kind_of, note,
};

/// See [`crate::Format::read_request`].
pub(in crate::responses) fn read_request(body: &[u8]) -> Result<Request, Bad> {
    let glance = glance(body)?;
    let members: Map<String, Value> = serde_json::from_slice(body)
        .map_err(|error| Bad::body(format!("the body is not valid JSON: {error}")))?;
    let mut reading = Reading {
        request: Request {
            client: NAME,
            model: glance.model.unwrap_or_default(),
            stream: glance.stream,
            max_tokens: glance.max_tokens,
            ..Request::default()
        },
        own: Map::new(),
        input: Vec::new(),
    };
    for (name, value) in members {
        if !value.is_null() {
            reading.member(name, value)?;
        }
    }
    let Reading {
        mut request,
        own,
        input,
    } = reading;
    request.turns.extend(input);
    request.own = Own::of(NAME, own);
    Ok(request)
}

struct Reading {
    request: Request,
    own: Map<String, Value>,
    /// The turns of `input`; `instructions` come before them wherever the member stands.
    input: Vec<Turn>,
}

impl Reading {
    fn member(&mut self, name: String, value: Value) -> Result<(), Bad> {
        let request = &mut self.request;
        match name.as_str() {
            "model" | "stream" | "max_output_tokens" | "max_tokens" => {}
            "instructions" => request.turns.extend(value.as_str().map(instructions)),
            "input" => self.input = read_input(value)?,
            "temperature" => request.temperature = value.as_f64(),
            "top_p" => request.top_p = value.as_f64(),
            "top_logprobs" => request.logprobs = value.as_u64().map(|k| k as u32),
            "parallel_tool_calls" => request.parallel_tools = value.as_bool(),
            "tools" => request.tools = read_tools(value)?,
            "tool_choice" => match read_choice(&value)? {
                Some(choice) => request.tool_choice = Some(choice),
                None => self.keep(name, value),
            },
            "reasoning" => request.reasoning = Some(read_reasoning(value)?),
            "text" => self.text(value)?,
            "metadata" => request.metadata = Some(read_metadata(value)?),
            "prompt_cache_key" => request.cache_key = value.as_str().map(str::to_owned),
            "service_tier" => request.service_tier = value.as_str().map(str::to_owned),
            "user" => self.user(value),
            "include" => self.include(value)?,
            "conversation" if !value.is_string() && !value.is_object() => {
                return Err(wrong("conversation", "a string or an object", &value));
            }
            _ if is_the_default(&name, &value) => self.keep(note(&name), value),
            _ => self.keep(name, value),
        }
        Ok(())
    }

    fn keep(&mut self, name: String, value: Value) {
        self.own.insert(name, value);
    }

    fn user(&mut self, value: Value) {
        self.request.user = value.as_str().map(str::to_owned);
    }

    /// `text`: the format of the reply and how wordy it is.
    fn text(&mut self, value: Value) -> Result<(), Bad> {
        let Value::Object(mut members) = value else {
            return Ok(());
        };
        if let Some(format) = taken(&mut members, "format") {
            self.request.output = Some(read_output(format)?);
        }
        if let Some(verbosity) = taken(&mut members, "verbosity") {
            let Value::String(word) = verbosity else {
                return Err(wrong("text.verbosity", "a string", &verbosity));
            };
            self.request.verbosity = Some(word);
        }
        members.retain(|_, value| !value.is_null());
        if !members.is_empty() {
            self.keep("text".to_owned(), Value::Object(members));
        }
        Ok(())
    }

    /// `include`: what the hub has a field for, or what replies of ours hold anyway, is no loss in another format.
    fn include(&mut self, value: Value) -> Result<(), Bad> {
        let list = value.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(odd) = list.iter().position(|entry| !entry.is_string()) {
            return Err(wrong(&format!("include[{odd}]"), "a string", &list[odd]));
        }
        if list.iter().any(|entry| entry == INCLUDE_LOGPROBS) {
            self.request.logprobs = self.request.logprobs.or(Some(0));
        }
        let is_kept = |entry: &Value| entry == INCLUDE_LOGPROBS || entry == INCLUDE_REASONING;
        let name = match list.iter().all(is_kept) {
            true => note("include"),
            false => "include".to_owned(),
        };
        self.keep(name, value);
        Ok(())
    }
}

/// Members that say what holds without them (where nothing is kept here, `store: false` is such a one).
fn is_the_default(name: &str, value: &Value) -> bool {
    match name {
        "store" | "background" => value == &Value::Bool(false),
        "truncation" => value == "disabled",
        "stream_options" => true,
        _ => false,
    }
}

fn instructions(text: &str) -> Turn {
    let parts = match text.is_empty() {
        true => Vec::new(),
        false => vec![Part::text(text)],
    };
    noted(Turn::of(Role::System, parts), NOTE_INSTRUCTIONS)
}

fn read_input(value: Value) -> Result<Vec<Turn>, Bad> {
    match value {
        Value::String(text) => {
            let turn = Turn::of(Role::User, vec![Part::text(text)]);
            Ok(vec![noted(turn, NOTE_INPUT)])
        }
        Value::Array(items) => read_items(items),
        _ => Ok(Vec::new()),
    }
}

fn noted(mut turn: Turn, note: &str) -> Turn {
    turn.plain = true;
    turn.own = Own::of(NAME, Map::from_iter([(note.to_owned(), Value::Bool(true))]));
    turn
}

fn read_reasoning(value: Value) -> Result<Reasoning, Bad> {
    const WORDS: &str = "one of none, minimal, low, medium, high, xhigh, max";
    let Value::Object(mut members) = value else {
        return Ok(Reasoning::default());
    };
    let effort = match taken(&mut members, "effort") {
        None => None,
        Some(word) => Some(
            word.as_str()
                .and_then(Effort::from_word)
                .ok_or_else(|| wrong("reasoning.effort", WORDS, &word))?,
        ),
    };
    let mut show = None;
    for (name, kept) in [("summary", false), ("generate_summary", true)] {
        let Some(value) = taken(&mut members, name) else {
            continue;
        };
        let Value::String(word) = value else {
            return Err(wrong(&format!("reasoning.{name}"), "a string", &value));
        };
        if kept {
            members.insert(note(name), Value::String(word.clone()));
        }
        show = show.or(Some(word));
    }
    members.retain(|_, value| !value.is_null());
    Ok(Reasoning {
        effort,
        show,
        own: Own::of(NAME, members),
        ..Reasoning::default()
    })
}

fn read_output(value: Value) -> Result<OutputFormat, Bad> {
    let Value::Object(mut members) = value else {
        return Err(wrong("text.format", "an object", &value));
    };
    let kind = taken(&mut members, "type").unwrap_or(Value::Null);
    match kind.as_str() {
        Some("text") => Ok(OutputFormat::Text),
        Some("json_object") => Ok(OutputFormat::Json),
        Some("json_schema") => {
            let mut text = |name: &str| match taken(&mut members, name) {
                None => Ok(None),
                Some(Value::String(text)) => Ok(Some(text)),
                Some(odd) => Err(wrong(&format!("text.format.{name}"), "a string", &odd)),
            };
            let (name, description) = (text("name")?, text("description")?);
            let strict = match taken(&mut members, "strict") {
                None => None,
                Some(Value::Bool(strict)) => Some(strict),
                Some(odd) => return Err(wrong("text.format.strict", "true or false", &odd)),
            };
            let schema = taken(&mut members, "schema").unwrap_or(Value::Null);
            if !schema.is_object() {
                return Err(wrong("text.format.schema", "a JSON schema", &schema));
            }
            Ok(OutputFormat::Schema {
                name,
                description,
                schema,
                strict,
            })
        }
        _ => Err(wrong(
            "text.format.type",
            "one of text, json_object, json_schema",
            &kind,
        )),
    }
}

fn read_metadata(value: Value) -> Result<Value, Bad> {
    let odd = value
        .as_object()
        .and_then(|map| map.iter().find(|(_, value)| !value.is_string()));
    match odd {
        Some((name, odd)) => Err(wrong(&format!("metadata.{name}"), "a string", odd)),
        None => Ok(value),
    }
}

/// Takes a member out; null counts as absent.
pub(super) fn taken(members: &mut Map<String, Value>, name: &str) -> Option<Value> {
    members.shift_remove(name).filter(|value| !value.is_null())
}

/// "`field` must be …, not …".
pub(super) fn wrong(field: &str, what: &str, came: &Value) -> Bad {
    let shown = match came {
        Value::Null => return Bad::new(field, format!("is required: {what}")),
        Value::String(word) if word.len() <= 40 => format!("\"{word}\""),
        Value::Number(number) => number.to_string(),
        other => kind_of(other).to_owned(),
    };
    Bad::new(field, format!("must be {what}, not {shown}"))
}
