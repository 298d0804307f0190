//! Summarizes and validates a request without parsing its conversation: types, ranges and required members (see docs/chat.md).

mod attachments;
mod content_checks;
mod json_checks;

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use attachments::{count_attachments, count_payload_bytes};
use json_checks::{
    boolean, expect_start, integer, invalid_value, is_blank, number, parse_or_default,
    required_string, string,
};

use super::constants::GATEWAY_MARK;
use super::json::is_web_url;
use crate::error::InvalidRequest;
use crate::format::RequestSummary;

/// Types of tools beside functions and custom tools.
const HOSTED_TOOLS: [&str; 13] = [
    "web_search",
    "file_search",
    "mcp",
    "computer",
    "code_interpreter",
    "image_generation",
    "local_shell",
    "shell",
    "apply_patch",
    "namespace",
    "tool_search",
    "programmatic_tool_calling",
    "collaboration",
];

/// The members of a request, as JSON text that is not parsed yet.
#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    input: Option<&'a RawValue>,
    instructions: Option<&'a RawValue>,
    temperature: Option<&'a RawValue>,
    top_p: Option<&'a RawValue>,
    top_logprobs: Option<&'a RawValue>,
    max_tokens: Option<&'a RawValue>,
    max_output_tokens: Option<&'a RawValue>,
    max_tool_calls: Option<&'a RawValue>,
    stream: Option<&'a RawValue>,
    store: Option<&'a RawValue>,
    background: Option<&'a RawValue>,
    parallel_tool_calls: Option<&'a RawValue>,
    tools: Option<&'a RawValue>,
    include: Option<&'a RawValue>,
    reasoning: Option<&'a RawValue>,
    text: Option<&'a RawValue>,
    metadata: Option<&'a RawValue>,
    user: Option<&'a RawValue>,
    safety_identifier: Option<&'a RawValue>,
    prompt_cache_key: Option<&'a RawValue>,
    service_tier: Option<&'a RawValue>,
    previous_response_id: Option<&'a RawValue>,
    conversation: Option<&'a RawValue>,
    prompt: Option<&'a RawValue>,
}

/// The members of a tool that decide which spelling it has.
#[derive(Deserialize)]
struct ToolBody<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    name: Option<&'a RawValue>,
    function: Option<&'a RawValue>,
    remote_mcp: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct FunctionBody<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    description: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct McpBody<'a> {
    #[serde(borrow)]
    url: Option<&'a RawValue>,
    auth_token: Option<&'a RawValue>,
    timeout: Option<&'a RawValue>,
}

/// See [`crate::Format::summarize_request`].
pub(super) fn summarize_request(body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| InvalidRequest::body("the body is not UTF-8"))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(InvalidRequest::body("the body must be a JSON object"));
    }
    let wire: Body<'_> = serde_json::from_str(text)
        .map_err(|error| InvalidRequest::body(format!("the body is not valid JSON: {error}")))?;
    check_input(&wire)?;
    check_ranges(&wire)?;
    let is_native_spelling = check_tools(wire.tools)?;
    let cap = integer(wire.max_output_tokens, "max_output_tokens", 1, None)?;
    let alias_cap = integer(wire.max_tokens, "max_tokens", 1, None)?;
    let model = required_string(wire.model, "model")?.into_owned();
    let users = [
        ("user", wire.user),
        ("safety_identifier", wire.safety_identifier),
        ("prompt_cache_key", wire.prompt_cache_key),
    ];
    let mut user = None;
    for (name, value) in users {
        let value = string(value, name)?;
        user = user.or(value.map(Cow::into_owned));
    }
    Ok(RequestSummary {
        model: Some(model),
        stream: boolean(wire.stream, "stream")?.unwrap_or(false),
        include_usage: false,
        max_tokens: cap.or(alias_cap),
        thinking_budget: None,
        n: 1,
        user,
        attachments: count_attachments(body),
        payload_bytes: count_payload_bytes(body)?,
        has_reasoning_settings: wire.reasoning.is_some(),
        members: 0,
        thread: None,
        previous_response: string(wire.previous_response_id, "previous_response_id")?
            .map(Cow::into_owned),
        stores_reply: boolean(wire.store, "store")?.unwrap_or(true),
        has_stored_context: has_stored_context(&wire),
        is_native: is_native_spelling
            && alias_cap.is_none()
            && memmem::find(body, GATEWAY_MARK).is_none(),
    })
}

/// Whether the upstream adds stored context to the request.
fn has_stored_context(wire: &Body<'_>) -> bool {
    [wire.previous_response_id, wire.conversation, wire.prompt]
        .iter()
        .any(Option::is_some)
}

/// `input` must be a string that is not blank or an array that is not empty, unless the upstream
/// stores the conversation.
fn check_input(wire: &Body<'_>) -> Result<(), InvalidRequest> {
    let has_stored_input = has_stored_context(wire);
    let Some(input) = wire.input else {
        return match has_stored_input {
            true => Ok(()),
            false => Err(InvalidRequest::new(
                "input",
                "is required: a string or an array of items",
            )),
        };
    };
    match input.get().as_bytes().first() {
        Some(b'"') if is_blank(input.get()) => {
            Err(InvalidRequest::new("input", "must not be empty or blank"))
        }
        Some(b'"') => Ok(()),
        Some(b'[') => {
            let is_empty = input.get()[1..].trim_ascii_start().starts_with(']');
            match is_empty && !has_stored_input {
                true => Err(InvalidRequest::new("input", "must hold at least one item")),
                false => content_checks::check_items(input),
            }
        }
        _ => Err(invalid_value(
            "input",
            "a string or an array of items",
            input,
        )),
    }
}

fn check_ranges(wire: &Body<'_>) -> Result<(), InvalidRequest> {
    number(wire.temperature, "temperature", 0.0, 2.0)?;
    number(wire.top_p, "top_p", 0.0, 1.0)?;
    integer(wire.top_logprobs, "top_logprobs", 0, Some(20))?;
    integer(wire.max_tool_calls, "max_tool_calls", 1, None)?;
    for (name, value) in [
        ("store", wire.store),
        ("background", wire.background),
        ("parallel_tool_calls", wire.parallel_tool_calls),
    ] {
        boolean(value, name)?;
    }
    for (name, value) in [
        ("instructions", wire.instructions),
        ("service_tier", wire.service_tier),
        ("previous_response_id", wire.previous_response_id),
    ] {
        string(value, name)?;
    }
    for (name, value, start, what) in [
        ("include", wire.include, b'[', "an array of strings"),
        ("reasoning", wire.reasoning, b'{', "an object"),
        ("text", wire.text, b'{', "an object"),
        ("metadata", wire.metadata, b'{', "an object"),
        ("prompt", wire.prompt, b'{', "an object"),
    ] {
        expect_start(value, name, start, what)?;
    }
    Ok(())
}

/// Checks the tools. Returns whether all of them are spelled as OpenAI documents them.
fn check_tools(tools: Option<&RawValue>) -> Result<bool, InvalidRequest> {
    let Some(tools) = expect_start(tools, "tools", b'[', "an array of tools")? else {
        return Ok(true);
    };
    let tools: Vec<&RawValue> = parse_or_default(tools);
    let mut is_native = true;
    for (i, tool) in tools.into_iter().enumerate() {
        let path = |member: &str| format!("tools[{i}]{member}");
        if !tool.get().starts_with('{') {
            return Err(invalid_value(&path(""), "an object", tool));
        }
        let wire: ToolBody<'_> = serde_json::from_str(tool.get())
            .map_err(|error| InvalidRequest::new(path(""), format!("is not valid: {error}")))?;
        let kind = required_string(wire.kind, &path(".type"))?;
        match kind.as_ref() {
            "function" if wire.function.is_some() => {
                check_nested_function(wire.function, &path(".function"))?;
                is_native = false;
            }
            "function" | "custom" => {
                required_string(wire.name, &path(".name"))?;
            }
            "remote_mcp" => {
                check_mcp(wire.remote_mcp, &path(".remote_mcp"))?;
                is_native = false;
            }
            kind if is_hosted_tool(kind) => {}
            kind => {
                let known = "function, custom, web_search, file_search, remote_mcp or another tool of OpenAI's";
                let why = format!("must be {known}, not {kind:?}");
                return Err(InvalidRequest::new(path(".type"), why));
            }
        }
    }
    Ok(is_native)
}

/// Whether the vendor runs a tool of that type. Some types end with a date or `_preview`.
fn is_hosted_tool(kind: &str) -> bool {
    let is_version = |rest: &str| rest.is_empty() || rest.starts_with('_');
    HOSTED_TOOLS
        .iter()
        .any(|tool| kind.strip_prefix(tool).is_some_and(is_version))
}

fn check_nested_function(function: Option<&RawValue>, path: &str) -> Result<(), InvalidRequest> {
    let Some(function) = expect_start(function, path, b'{', "an object")? else {
        return Ok(());
    };
    let wire: FunctionBody<'_> = serde_json::from_str(function.get())
        .map_err(|error| InvalidRequest::new(path, format!("is not valid: {error}")))?;
    required_string(wire.name, &format!("{path}.name"))?;
    let description = format!("{path}.description");
    match string(wire.description, &description)? {
        Some(_) => Ok(()),
        None => Err(InvalidRequest::new(description, "is required: a string")),
    }
}

fn check_mcp(mcp: Option<&RawValue>, path: &str) -> Result<(), InvalidRequest> {
    let Some(mcp) = expect_start(mcp, path, b'{', "an object")? else {
        return Err(InvalidRequest::new(
            path,
            "is required: an object with `url`",
        ));
    };
    let wire: McpBody<'_> = serde_json::from_str(mcp.get())
        .map_err(|error| InvalidRequest::new(path, format!("is not valid: {error}")))?;
    let url = required_string(wire.url, &format!("{path}.url"))?;
    if !is_web_url(&url) {
        return Err(InvalidRequest::new(
            format!("{path}.url"),
            "must be an http or https URL",
        ));
    }
    string(wire.auth_token, &format!("{path}.auth_token"))?;
    number(wire.timeout, &format!("{path}.timeout"), 0.0, 86_400.0)?;
    Ok(())
}
