//! Reads and checks the fields of a request that routing, billing and limits need (docs/chat/messages.md), without parsing the
//! conversation.

use std::ops::RangeInclusive;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::constants::{
    EFFORTS, MAX_STOP_SEQUENCES, MIN_THINKING_BUDGET, THINKING_TYPES, TOOL_CHOICE_TYPES,
    list_alternatives,
};
use super::content_checks::{check_messages, check_system, check_tools};
use super::thread;
use crate::attachments::count_media_data;
use crate::error::InvalidRequest;
use crate::escaped_letters::count_escaped_letters;
use crate::format::{RequestSummary, Thread};

/// The members that the summary reads, as JSON text.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    messages: Option<&'a RawValue>,
    system: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_k: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    stop_sequences: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    tool_choice: Option<&'a RawValue>,
    thinking: Option<&'a RawValue>,
    output_config: Option<&'a RawValue>,
    thread: Option<&'a RawValue>,
}

/// See [`crate::Format::summarize_request`].
pub(super) fn summarize_request(body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| InvalidRequest::body("the body must be UTF-8"))?;
    if !text.trim_start().starts_with('{') {
        return Err(InvalidRequest::body("the body must be a JSON object"));
    }
    let body: Body<'_> = serde_json::from_str(text)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let model = body
        .model
        .and_then(parse_string)
        .filter(|model| !model.trim().is_empty());
    let model = model.ok_or_else(|| {
        InvalidRequest::new(
            "model",
            "is required and must be a string that is not empty",
        )
    })?;
    check_conversation(&body)?;
    let max_tokens = parse_integer("max_tokens", body.max_tokens, 1)?;
    check_number("temperature", body.temperature, 0.0..=1.0)?;
    check_number("top_p", body.top_p, 0.0..=1.0)?;
    parse_integer("top_k", body.top_k, 0)?;
    check_stop_sequences(body.stop_sequences)?;
    if let Some(tools) = body.tools {
        check_start(tools, "tools", "[", "a list")?;
        check_tools(tools)?;
    }
    check_tool_choice(body.tool_choice)?;
    let thinking_budget = check_thinking(body.thinking, max_tokens)?;
    let effort = check_output_config(body.output_config)?;
    let thread = thread::read_thread(body.thread)?;
    let attachments = count_attachments(text);
    let payload_bytes = match attachments {
        0 => 0,
        _ => count_media_data(text.as_bytes()),
    };
    Ok(RequestSummary {
        stream: parse_flag("stream", body.stream)?.unwrap_or(false),
        model: Some(model),
        include_usage: false,
        max_tokens,
        thinking_budget,
        n: 1,
        user: read_user_id(body.metadata)?,
        attachments,
        payload_bytes,
        has_reasoning_settings: effort || body.thinking.is_some(),
        members: 0,
        has_stored_context: matches!(thread, Some(Thread::Continue(_))),
        thread,
        previous_response: None,
        stores_reply: false,
        is_native: !has_foreign_signatures(text),
    })
}

/// The text of a JSON string. `None` if the value is not a string.
fn parse_string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn check_start(raw: &RawValue, field: &str, with: &str, what: &str) -> Result<(), InvalidRequest> {
    let is_valid = raw.get().starts_with(|c| with.contains(c));
    is_valid
        .then_some(())
        .ok_or_else(|| InvalidRequest::new(field, format!("must be {what}")))
}

/// Describes an invalid value for an error message.
fn describe_value(raw: &RawValue) -> &str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => raw.get(),
    }
}

fn check_conversation(body: &Body<'_>) -> Result<(), InvalidRequest> {
    let messages = body
        .messages
        .ok_or_else(|| InvalidRequest::new("messages", "is required"))?;
    check_start(messages, "messages", "[", "a list of messages")?;
    if messages.get()[1..].trim_start().starts_with(']') {
        return Err(InvalidRequest::new(
            "messages",
            "must hold at least one message",
        ));
    }
    check_messages(messages)?;
    match body.system {
        Some(system) => {
            check_start(system, "system", "\"[", "a string or a list of text blocks")?;
            check_system(system)
        }
        None => Ok(()),
    }
}

fn parse_integer(
    field: &str,
    raw: Option<&RawValue>,
    min: u64,
) -> Result<Option<u64>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let value = raw.get().parse::<u64>().ok().filter(|n| *n >= min);
    let why = || {
        format!(
            "must be a whole number of at least {min}, got {}",
            describe_value(raw)
        )
    };
    value
        .map(Some)
        .ok_or_else(|| InvalidRequest::new(field, why()))
}

fn check_number(
    field: &str,
    raw: Option<&RawValue>,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let value = serde_json::from_str::<f64>(raw.get()).ok();
    let why = || {
        let (min, max) = (range.start(), range.end());
        format!(
            "must be a number from {min} to {max}, got {}",
            describe_value(raw)
        )
    };
    let value = value.filter(|x| range.contains(x));
    value
        .map(Some)
        .ok_or_else(|| InvalidRequest::new(field, why()))
}

fn parse_flag(field: &str, raw: Option<&RawValue>) -> Result<Option<bool>, InvalidRequest> {
    match raw.map(RawValue::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(InvalidRequest::new(field, "must be true or false")),
    }
}

fn check_stop_sequences(raw: Option<&RawValue>) -> Result<(), InvalidRequest> {
    const FIELD: &str = "stop_sequences";
    let Some(raw) = raw else { return Ok(()) };
    let stops: Vec<String> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new(FIELD, "must be a list of strings"))?;
    if stops.len() > MAX_STOP_SEQUENCES {
        let why = format!(
            "takes at most {MAX_STOP_SEQUENCES} sequences, got {}",
            stops.len()
        );
        return Err(InvalidRequest::new(FIELD, why));
    }
    Ok(())
}

fn read_user_id(raw: Option<&RawValue>) -> Result<Option<String>, InvalidRequest> {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        user_id: Option<&'a RawValue>,
    }
    let Some(raw) = raw else { return Ok(None) };
    check_start(raw, "metadata", "{", "an object")?;
    let metadata: Metadata<'_> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new("metadata", "must be an object"))?;
    let Some(user) = metadata.user_id else {
        return Ok(None);
    };
    let user = parse_string(user)
        .ok_or_else(|| InvalidRequest::new("metadata.user_id", "must be a string"))?;
    Ok(Some(user))
}

fn check_tool_choice(raw: Option<&RawValue>) -> Result<(), InvalidRequest> {
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        name: Option<&'a RawValue>,
        disable_parallel_tool_use: Option<&'a RawValue>,
    }
    let Some(raw) = raw else { return Ok(()) };
    check_start(raw, "tool_choice", "{", "an object")?;
    let choice: Choice<'_> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new("tool_choice", "must be an object"))?;
    let kind = check_one_of("tool_choice.type", choice.kind, TOOL_CHOICE_TYPES)?;
    parse_flag(
        "tool_choice.disable_parallel_tool_use",
        choice.disable_parallel_tool_use,
    )?;
    let name = choice
        .name
        .and_then(parse_string)
        .filter(|name| !name.is_empty());
    if kind == "tool" && name.is_none() {
        return Err(InvalidRequest::new(
            "tool_choice.name",
            "is required and must name a tool",
        ));
    }
    Ok(())
}

/// Checks that the value is one of `allowed`, and returns it.
fn check_one_of(
    field: &str,
    raw: Option<&RawValue>,
    allowed: &[&'static str],
) -> Result<&'static str, InvalidRequest> {
    let value = raw.and_then(parse_string);
    let found = allowed.iter().find(|one| value.as_deref() == Some(**one));
    found.copied().ok_or_else(|| {
        InvalidRequest::new(field, format!("must be {}", list_alternatives(allowed)))
    })
}

/// Checks `thinking`. Returns its budget.
fn check_thinking(
    raw: Option<&RawValue>,
    max_tokens: Option<u64>,
) -> Result<Option<u64>, InvalidRequest> {
    #[derive(Deserialize)]
    struct Thinking<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        budget_tokens: Option<&'a RawValue>,
        display: Option<&'a RawValue>,
    }
    const BUDGET: &str = "thinking.budget_tokens";
    let Some(raw) = raw else { return Ok(None) };
    check_start(raw, "thinking", "{", "an object")?;
    let thinking: Thinking<'_> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new("thinking", "must be an object"))?;
    let kind = check_one_of("thinking.type", thinking.kind, THINKING_TYPES)?;
    if thinking
        .display
        .is_some_and(|raw| parse_string(raw).is_none())
    {
        return Err(InvalidRequest::new("thinking.display", "must be a string"));
    }
    if kind != "enabled" {
        return Ok(None);
    }
    let budget = parse_integer(BUDGET, thinking.budget_tokens, MIN_THINKING_BUDGET)?
        .ok_or_else(|| InvalidRequest::new(BUDGET, "is required with `type` `enabled`"))?;
    match max_tokens {
        Some(max) if budget >= max => Err(InvalidRequest::new(
            BUDGET,
            format!("must be less than `max_tokens`, got {budget} and {max}"),
        )),
        _ => Ok(Some(budget)),
    }
}

/// Checks `output_config`. Returns whether it has an effort.
fn check_output_config(raw: Option<&RawValue>) -> Result<bool, InvalidRequest> {
    #[derive(Deserialize)]
    struct OutputConfig<'a> {
        #[serde(borrow)]
        effort: Option<&'a RawValue>,
        format: Option<&'a RawValue>,
    }
    let Some(raw) = raw else { return Ok(false) };
    check_start(raw, "output_config", "{", "an object")?;
    let config: OutputConfig<'_> = serde_json::from_str(raw.get())
        .map_err(|_| InvalidRequest::new("output_config", "must be an object"))?;
    if let Some(format) = config.format {
        check_start(format, "output_config.format", "{", "an object")?;
    }
    let Some(effort) = config.effort else {
        return Ok(false);
    };
    let efforts: Vec<&'static str> = EFFORTS.iter().map(|effort| effort.as_str()).collect();
    check_one_of("output_config.effort", Some(effort), &efforts)?;
    Ok(true)
}

/// The number of images and files, estimated from the `type` strings; never too low.
fn count_attachments(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let plain: usize = ["\"image\"", "\"document\"", "\"container_upload\""]
        .iter()
        .map(|word| memmem::find_iter(bytes, word.as_bytes()).count())
        .sum();
    // An escaped letter (`\u006d`) could be part of such a string.
    let hidden = count_escaped_letters(bytes);
    u32::try_from(plain + hidden).unwrap_or(u32::MAX)
}

/// After a member's name: the text after the opening quote of its value. `None` if the value is not a string.
fn string_after_name(rest: &str) -> Option<&str> {
    let rest = rest.trim_start().strip_prefix(':')?;
    rest.trim_start().strip_prefix('"')
}

/// Whether thinking in the history has another vendor's signature (wrapped by the gateway) or an empty one: the API rejects both.
fn has_foreign_signatures(text: &str) -> bool {
    let bytes = text.as_bytes();
    memmem::find(bytes, b"\"tg1.").is_some()
        || memmem::find(bytes, b"\"tgs.").is_some()
        || memmem::find_iter(bytes, b"\"signature\"")
            .any(|at| string_after_name(&text[at + 11..]).is_some_and(|rest| rest.starts_with('"')))
}
