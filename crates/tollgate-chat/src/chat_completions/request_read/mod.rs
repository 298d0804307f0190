//! Reads a client's request into the hub's types.
//!
//! This file reads the settings; separate files read the conversation and the tools.

mod conversation;
mod parts;
mod tools;

use serde_json::{Map, Value};

use super::constants::{EFFORT_BESIDE_VENDOR_REASONING, NAME, USER_SPELLING, VENDOR_REASONING};
use super::field_names::CLIENT_FORMAT;
use super::json_fields::{
    expect_array, expect_object, expect_string, require_object, require_string, take_field,
    take_string,
};
use super::request_summary::summarize_request;
use crate::error::InvalidRequest;
use crate::hub::{Effort, ExtraFields, OutputFormat, Reasoning, Request};

/// Reads a request; see [`crate::Format::read_request`].
pub(super) fn read_request(body: &[u8]) -> Result<Request, InvalidRequest> {
    // This checks the types and ranges of the scalar fields.
    summarize_request(body)?;
    let value = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let mut request = Request {
        client_format: &CLIENT_FORMAT,
        ..Request::default()
    };
    let mut deferred = Deferred::default();
    let mut extra = Map::new();
    for (key, value) in expect_object(value, "body")? {
        if value.is_null() {
            continue;
        }
        if let Some(value) = read_checked_field(&mut request, &mut deferred, &key, value) {
            read_structured_field(&mut request, &mut deferred, &mut extra, key, value)?;
        }
    }
    request.max_tokens = deferred.max_completion_tokens.or(request.max_tokens);
    request.logprobs = deferred
        .logprobs
        .then(|| deferred.top_logprobs.unwrap_or(0));
    if request.user.is_none() && deferred.safety_identifier.is_some() {
        extra.insert(USER_SPELLING.to_owned(), "safety_identifier".into());
        request.user = deferred.safety_identifier;
    } else if let Some(id) = deferred.safety_identifier {
        extra.insert("safety_identifier".to_owned(), id.into());
    }
    let has_vendor_reasoning = VENDOR_REASONING
        .iter()
        .any(|name| extra.contains_key(&format!(".{name}")));
    if let (Some(effort), true) = (deferred.effort, has_vendor_reasoning) {
        extra.insert(
            EFFORT_BESIDE_VENDOR_REASONING.to_owned(),
            effort.as_str().into(),
        );
    }
    if let Some(mut reasoning) = deferred.reasoning {
        // The format has no field for it: clients that set reasoning receive it if the upstream returns it.
        reasoning.display =
            (reasoning.as_effort() != Some(Effort::None)).then(|| "auto".to_owned());
        request.reasoning = Some(reasoning);
    }
    request.extra = ExtraFields::new(NAME, extra);
    Ok(request)
}

/// Fields whose meaning depends on other fields.
#[derive(Default)]
struct Deferred {
    max_completion_tokens: Option<u64>,
    logprobs: bool,
    top_logprobs: Option<u32>,
    safety_identifier: Option<String>,
    reasoning: Option<Reasoning>,
    /// `reasoning_effort`.
    effort: Option<Effort>,
}

/// Reads a field whose type [`summarize_request`] has checked. Returns the value if the field is not one of those.
fn read_checked_field(
    request: &mut Request,
    deferred: &mut Deferred,
    key: &str,
    value: Value,
) -> Option<Value> {
    let number = |value: &Value| value.as_f64();
    let small = |value: &Value| value.as_u64().and_then(|x| u32::try_from(x).ok());
    let text = |value: Value| value.as_str().map(str::to_owned);
    match key {
        "model" => request.model = text(value).unwrap_or_default(),
        "stream" => request.stream = value == Value::Bool(true),
        "max_tokens" => request.max_tokens = value.as_u64(),
        "max_completion_tokens" => deferred.max_completion_tokens = value.as_u64(),
        "temperature" => request.temperature = number(&value),
        "top_p" => request.top_p = number(&value),
        "frequency_penalty" => request.frequency_penalty = number(&value),
        "presence_penalty" => request.presence_penalty = number(&value),
        "n" => request.n = small(&value),
        "seed" => request.seed = value.as_i64(),
        "logprobs" => deferred.logprobs = value == Value::Bool(true),
        "top_logprobs" => deferred.top_logprobs = small(&value),
        "parallel_tool_calls" => request.parallel_tools = value.as_bool(),
        "user" => request.user = text(value),
        "safety_identifier" => deferred.safety_identifier = text(value),
        "prompt_cache_key" => request.cache_key = text(value),
        "metadata" => request.metadata = Some(value),
        _ => return Some(value),
    }
    None
}

fn read_structured_field(
    request: &mut Request,
    deferred: &mut Deferred,
    extra: &mut Map<String, Value>,
    key: String,
    value: Value,
) -> Result<(), InvalidRequest> {
    match key.as_str() {
        "messages" => {
            request.turns = conversation::read_messages(expect_array(value, "messages")?)?
        }
        "stop" => request.stop = read_stop_sequences(value),
        "stream_options" => {
            let mut options = expect_object(value, &key)?;
            let include_usage = take_field(&mut options, "include_usage");
            request.include_usage = include_usage == Some(Value::Bool(true));
            if !options.is_empty() {
                extra.insert(key, options.into());
            }
        }
        "response_format" => request.output = Some(read_output_format(value)?),
        "tools" => request
            .tools
            .extend(tools::read_tools(expect_array(value, &key)?)?),
        "functions" => request
            .tools
            .extend(tools::read_functions(expect_array(value, &key)?)?),
        "web_search_options" => request.tools.push(tools::read_web_search(value)?),
        "tool_choice" => request.tool_choice = Some(tools::read_tool_choice(value)?),
        "function_call" => request.tool_choice = Some(tools::read_function_call(value)?),
        "verbosity" => request.verbosity = Some(expect_string(value, &key)?),
        "service_tier" => request.service_tier = Some(expect_string(value, &key)?),
        "top_k" => match value.as_u64() {
            Some(k) => request.top_k = Some(k),
            // Some engines accept -1 for "all".
            None => drop(extra.insert(key, value)),
        },
        "reasoning_effort" => {
            let name = expect_string(value, &key)?;
            deferred.effort = Some(parse_effort(&key, &name)?);
            deferred.reasoning.get_or_insert_default().effort = deferred.effort;
        }
        name if VENDOR_REASONING.contains(&name) => match read_vendor_reasoning(&value) {
            Some(requested) => {
                let current = deferred.reasoning.get_or_insert_default();
                current.effort = current.effort.or(requested.effort);
                current.budget = current.budget.or(requested.budget);
                current.adaptive |= requested.adaptive;
                extra.insert(format!(".{key}"), value);
            }
            None => drop(extra.insert(key, value)),
        },
        _ => drop(extra.insert(key, value)),
    }
    Ok(())
}

fn parse_effort(field: &str, name: &str) -> Result<Effort, InvalidRequest> {
    Effort::parse(name).ok_or_else(|| {
        InvalidRequest::new(
            field,
            "must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\" or \"max\"",
        )
    })
}

/// Reads vendors' own reasoning settings: `{type, budget_tokens}`, `{effort, max_tokens, enabled}`, a flag.
fn read_vendor_reasoning(value: &Value) -> Option<Reasoning> {
    let mut requested = Reasoning::default();
    if let Some(on) = value.as_bool() {
        requested.effort = (!on).then_some(Effort::None);
        return Some(requested);
    }
    let map = value.as_object()?;
    match map.get("type").and_then(Value::as_str) {
        Some("disabled") => requested.effort = Some(Effort::None),
        Some("adaptive" | "auto") => requested.adaptive = true,
        _ => {}
    }
    if map.get("enabled") == Some(&Value::Bool(false)) {
        requested.effort = Some(Effort::None);
    }
    if let Some(word) = map.get("effort").and_then(Value::as_str) {
        requested.effort = Effort::parse(word);
    }
    let budget = map.get("budget_tokens").or_else(|| map.get("max_tokens"));
    requested.budget = budget.and_then(Value::as_i64);
    Some(requested)
}

fn read_stop_sequences(value: Value) -> Vec<String> {
    let texts = match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list
            .into_iter()
            .filter_map(|stop| stop.as_str().map(str::to_owned))
            .collect(),
        _ => Vec::new(),
    };
    texts.into_iter().filter(|text| !text.is_empty()).collect()
}

fn read_output_format(value: Value) -> Result<OutputFormat, InvalidRequest> {
    const FIELD: &str = "response_format";
    let mut format = expect_object(value, FIELD)?;
    match require_string(&mut format, "type", FIELD)?.as_str() {
        "text" => Ok(OutputFormat::Text),
        "json_object" => Ok(OutputFormat::Json),
        "json_schema" => {
            let mut schema = require_object(&mut format, "json_schema", FIELD)?;
            const INNER: &str = "response_format.json_schema";
            Ok(OutputFormat::Schema {
                name: take_string(&mut schema, "name", INNER)?,
                description: take_string(&mut schema, "description", INNER)?,
                strict: take_field(&mut schema, "strict").and_then(|strict| strict.as_bool()),
                schema: require_object(&mut schema, "schema", INNER)?.into(),
            })
        }
        _ => Err(InvalidRequest::new(
            "response_format.type",
            "must be \"text\", \"json_object\" or \"json_schema\"",
        )),
    }
}
