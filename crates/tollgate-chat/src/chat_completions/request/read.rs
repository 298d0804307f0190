//! A client's request, read into the hub's form.

use serde_json::{Map, Value};

use super::super::glance::glance;
use super::super::wire::{NAME, USER_SPELLING};
use super::value::{list, need_object, need_text, object, take, take_text, text};
use super::{messages_read, tools};
use crate::error::Bad;
use crate::hub::{Effort, OutputFormat, Own, Reasoning, Request};

/// Reads a request.
pub(in super::super) fn read(body: &[u8]) -> Result<Request, Bad> {
    // Types and ranges of the plain fields are checked there.
    glance(body)?;
    let value = serde_json::from_slice(body)
        .map_err(|error| Bad::body(format!("the body must be valid JSON: {error}")))?;
    let mut request = Request {
        client: NAME,
        ..Request::default()
    };
    let mut later = Later::default();
    let mut own = Map::new();
    for (key, value) in object(value, "body")? {
        if value.is_null() {
            continue;
        }
        if let Some(value) = plain_field(&mut request, &mut later, &key, value) {
            structured_field(&mut request, &mut later, &mut own, key, value)?;
        }
    }
    request.max_tokens = later.max_completion_tokens.or(request.max_tokens);
    request.logprobs = later.logprobs.then(|| later.top_logprobs.unwrap_or(0));
    if request.user.is_none() && later.safety_identifier.is_some() {
        own.insert(USER_SPELLING.to_owned(), "safety_identifier".into());
        request.user = later.safety_identifier;
    } else if let Some(id) = later.safety_identifier {
        own.insert("safety_identifier".to_owned(), id.into());
    }
    if let Some(mut reasoning) = later.reasoning {
        // Clients of this format that speak of reasoning want to see it where the upstream shows it.
        reasoning.show = (reasoning.as_effort() != Some(Effort::None)).then(|| "auto".to_owned());
        request.reasoning = Some(reasoning);
    }
    request.own = Own::of(NAME, own);
    Ok(request)
}

/// What is decided once all members were seen.
#[derive(Default)]
struct Later {
    max_completion_tokens: Option<u64>,
    logprobs: bool,
    top_logprobs: Option<u32>,
    safety_identifier: Option<String>,
    reasoning: Option<Reasoning>,
}

/// Members whose types [`glance`] has checked. Gives back what is none of them.
fn plain_field(request: &mut Request, later: &mut Later, key: &str, value: Value) -> Option<Value> {
    let number = |value: &Value| value.as_f64();
    let small = |value: &Value| value.as_u64().and_then(|x| u32::try_from(x).ok());
    let words = |value: Value| value.as_str().map(str::to_owned);
    match key {
        "model" => request.model = words(value).unwrap_or_default(),
        "stream" => request.stream = value == Value::Bool(true),
        "max_tokens" => request.max_tokens = value.as_u64(),
        "max_completion_tokens" => later.max_completion_tokens = value.as_u64(),
        "temperature" => request.temperature = number(&value),
        "top_p" => request.top_p = number(&value),
        "frequency_penalty" => request.frequency_penalty = number(&value),
        "presence_penalty" => request.presence_penalty = number(&value),
        "n" => request.n = small(&value),
        "seed" => request.seed = value.as_i64(),
        "logprobs" => later.logprobs = value == Value::Bool(true),
        "top_logprobs" => later.top_logprobs = small(&value),
        "parallel_tool_calls" => request.parallel_tools = value.as_bool(),
        "user" => request.user = words(value),
        "safety_identifier" => later.safety_identifier = words(value),
        "prompt_cache_key" => request.cache_key = words(value),
        "metadata" => request.metadata = Some(value),
        _ => return Some(value),
    }
    None
}

fn structured_field(
    request: &mut Request,
    later: &mut Later,
    own: &mut Map<String, Value>,
    key: String,
    value: Value,
) -> Result<(), Bad> {
    match key.as_str() {
        "messages" => request.turns = messages_read::read(list(value, "messages")?)?,
        "stop" => request.stop = stops(value),
        "stream_options" => {
            let mut options = object(value, &key)?;
            let asked = take(&mut options, "include_usage");
            request.include_usage = asked == Some(Value::Bool(true));
            if !options.is_empty() {
                own.insert(key, options.into());
            }
        }
        "response_format" => request.output = Some(output(value)?),
        "tools" => request.tools.extend(tools::read(list(value, &key)?)?),
        "functions" => request
            .tools
            .extend(tools::read_functions(list(value, &key)?)?),
        "web_search_options" => request.tools.push(tools::read_web_search(value)?),
        "tool_choice" => request.tool_choice = Some(tools::read_choice(value)?),
        "function_call" => request.tool_choice = Some(tools::read_function_call(value)?),
        "verbosity" => request.verbosity = Some(text(value, &key)?),
        "service_tier" => request.service_tier = Some(text(value, &key)?),
        "top_k" => match value.as_u64() {
            Some(k) => request.top_k = Some(k),
            // Some engines take -1 for "all".
            None => drop(own.insert(key, value)),
        },
        "reasoning_effort" => {
            let word = text(value, &key)?;
            later.reasoning.get_or_insert_default().effort = Some(effort(&key, &word)?);
        }
        "thinking" | "reasoning" | "enable_thinking" => match vendor_reasoning(&value) {
            Some(asked) if later.reasoning.is_none() => later.reasoning = Some(asked),
            Some(asked) => {
                let there = later.reasoning.get_or_insert_default();
                there.effort = there.effort.or(asked.effort);
                there.budget = there.budget.or(asked.budget);
                there.adaptive |= asked.adaptive;
            }
            None => drop(own.insert(key, value)),
        },
        _ => drop(own.insert(key, value)),
    }
    Ok(())
}

fn effort(field: &str, word: &str) -> Result<Effort, Bad> {
    Effort::from_word(word).ok_or_else(|| {
        Bad::new(
            field,
            "must be \"none\", \"minimal\", \"low\", \"medium\", \"high\", \"xhigh\" or \"max\"",
        )
    })
}

/// How vendors' own extensions ask for thinking: `{type, budget_tokens}`, `{effort, max_tokens, enabled}`, a flag.
fn vendor_reasoning(value: &Value) -> Option<Reasoning> {
    let mut asked = Reasoning::default();
    if let Some(on) = value.as_bool() {
        asked.effort = (!on).then_some(Effort::None);
        return Some(asked);
    }
    let map = value.as_object()?;
    match map.get("type").and_then(Value::as_str) {
        Some("disabled") => asked.effort = Some(Effort::None),
        Some("adaptive" | "auto") => asked.adaptive = true,
        _ => {}
    }
    if map.get("enabled") == Some(&Value::Bool(false)) {
        asked.effort = Some(Effort::None);
    }
    if let Some(word) = map.get("effort").and_then(Value::as_str) {
        asked.effort = Effort::from_word(word);
    }
    let budget = map.get("budget_tokens").or_else(|| map.get("max_tokens"));
    asked.budget = budget.and_then(Value::as_i64);
    Some(asked)
}

fn stops(value: Value) -> Vec<String> {
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

fn output(value: Value) -> Result<OutputFormat, Bad> {
    const FIELD: &str = "response_format";
    let mut format = object(value, FIELD)?;
    match need_text(&mut format, "type", FIELD)?.as_str() {
        "text" => Ok(OutputFormat::Text),
        "json_object" => Ok(OutputFormat::Json),
        "json_schema" => {
            let mut schema = need_object(&mut format, "json_schema", FIELD)?;
            const INNER: &str = "response_format.json_schema";
            Ok(OutputFormat::Schema {
                name: take_text(&mut schema, "name", INNER)?,
                description: take_text(&mut schema, "description", INNER)?,
                strict: take(&mut schema, "strict").and_then(|strict| strict.as_bool()),
                schema: need_object(&mut schema, "schema", INNER)?.into(),
            })
        }
        _ => Err(Bad::new(
            "response_format.type",
            "must be \"text\", \"json_object\" or \"json_schema\"",
        )),
    }
}
