//! The quick look at a request: SPEC.md's table enforced without reading the conversation.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{IMAGE_MAX, OUR_MARK};
use crate::error::Bad;
use crate::format::Glance;

/// The members that are looked at, unread.
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

/// The members of a tool that decide its spelling.
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

/// See [`crate::Format::glance`].
pub(super) fn glance(body: &[u8]) -> Result<Glance, Bad> {
    let text = std::str::from_utf8(body).map_err(|_| Bad::body("the body is not UTF-8"))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err(Bad::body("the body must be a JSON object"));
    }
    let wire: Body<'_> = serde_json::from_str(text)
        .map_err(|error| Bad::body(format!("the body is not valid JSON: {error}")))?;
    check_input(&wire)?;
    check_ranges(&wire)?;
    let spelled_as_real = check_tools(wire.tools)?;
    let cap = whole(wire.max_output_tokens, "max_output_tokens", 1, None)?;
    let spec_cap = whole(wire.max_tokens, "max_tokens", 1, None)?;
    let model = required_text(wire.model, "model")?.into_owned();
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
    Ok(Glance {
        model: Some(model),
        stream: boolean(wire.stream, "stream")?.unwrap_or(false),
        include_usage: false,
        max_tokens: cap.or(spec_cap),
        n: 1,
        user,
        attachments: attachments(body),
        payload_bytes: payload_bytes(body)?,
        says_reasoning: wire.reasoning.is_some(),
        members: 0,
        is_native: spelled_as_real && spec_cap.is_none() && memmem::find(body, OUR_MARK).is_none(),
    })
}

/// The input is a text or a list that holds something, unless the conversation is kept by the upstream.
fn check_input(wire: &Body<'_>) -> Result<(), Bad> {
    let kept_elsewhere = [wire.previous_response_id, wire.conversation, wire.prompt]
        .iter()
        .any(Option::is_some);
    let Some(input) = wire.input else {
        return match kept_elsewhere {
            true => Ok(()),
            false => Err(Bad::new(
                "input",
                "is required: a string or an array of items",
            )),
        };
    };
    match input.get().as_bytes().first() {
        Some(b'"') if is_blank(input.get()) => Err(Bad::new("input", "must not be empty or blank")),
        Some(b'"') => Ok(()),
        Some(b'[') => {
            let is_empty = input.get()[1..].trim_ascii_start().starts_with(']');
            match is_empty && !kept_elsewhere {
                true => Err(Bad::new("input", "must hold at least one item")),
                false => Ok(()),
            }
        }
        _ => Err(wrong("input", "a string or an array of items", input)),
    }
}

fn check_ranges(wire: &Body<'_>) -> Result<(), Bad> {
    number(wire.temperature, "temperature", 0.0, 2.0)?;
    number(wire.top_p, "top_p", 0.0, 1.0)?;
    whole(wire.top_logprobs, "top_logprobs", 0, Some(20))?;
    whole(wire.max_tool_calls, "max_tool_calls", 1, None)?;
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
        starts_with(value, name, start, what)?;
    }
    Ok(())
}

/// Checks the tools; tells whether all of them are spelled as OpenAI spells them.
fn check_tools(tools: Option<&RawValue>) -> Result<bool, Bad> {
    let Some(tools) = starts_with(tools, "tools", b'[', "an array of tools")? else {
        return Ok(true);
    };
    let tools: Vec<&RawValue> = parse(tools);
    let mut is_native = true;
    for (i, tool) in tools.into_iter().enumerate() {
        let path = |member: &str| format!("tools[{i}]{member}");
        if !tool.get().starts_with('{') {
            return Err(wrong(&path(""), "an object", tool));
        }
        let wire: ToolBody<'_> = serde_json::from_str(tool.get())
            .map_err(|error| Bad::new(path(""), format!("is not valid: {error}")))?;
        let kind = required_text(wire.kind, &path(".type"))?;
        match kind.as_ref() {
            "function" if wire.function.is_some() => {
                check_nested(wire.function, &path(".function"))?;
                is_native = false;
            }
            "function" | "custom" => {
                required_text(wire.name, &path(".name"))?;
            }
            "remote_mcp" => {
                check_mcp(wire.remote_mcp, &path(".remote_mcp"))?;
                is_native = false;
            }
            _ => {}
        }
    }
    Ok(is_native)
}

fn check_nested(function: Option<&RawValue>, path: &str) -> Result<(), Bad> {
    let Some(function) = starts_with(function, path, b'{', "an object")? else {
        return Ok(());
    };
    let wire: FunctionBody<'_> = serde_json::from_str(function.get())
        .map_err(|error| Bad::new(path, format!("is not valid: {error}")))?;
    required_text(wire.name, &format!("{path}.name"))?;
    let description = format!("{path}.description");
    match string(wire.description, &description)? {
        Some(_) => Ok(()),
        None => Err(Bad::new(description, "is required: a string")),
    }
}

fn check_mcp(mcp: Option<&RawValue>, path: &str) -> Result<(), Bad> {
    let Some(mcp) = starts_with(mcp, path, b'{', "an object")? else {
        return Err(Bad::new(path, "is required: an object with `url`"));
    };
    let wire: McpBody<'_> = serde_json::from_str(mcp.get())
        .map_err(|error| Bad::new(path, format!("is not valid: {error}")))?;
    let url = required_text(wire.url, &format!("{path}.url"))?;
    if !is_web_url(&url) {
        return Err(Bad::new(
            format!("{path}.url"),
            "must be an http or https URL",
        ));
    }
    string(wire.auth_token, &format!("{path}.auth_token"))?;
    number(wire.timeout, &format!("{path}.timeout"), 0.0, 86_400.0)?;
    Ok(())
}

/// Whether `url` is one of the web.
pub(super) fn is_web_url(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        url.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme) && url.len() > scheme.len())
    })
}

/// How many pictures and files there seem to be.
fn attachments(body: &[u8]) -> u32 {
    const WORDS: [&[u8]; 4] = [
        b"\"input_image\"",
        b"\"input_file\"",
        b"\"input_audio\"",
        b"\"computer_screenshot\"",
    ];
    let count = |word: &&[u8]| memmem::find_iter(body, *word).count();
    WORDS
        .iter()
        .map(count)
        .sum::<usize>()
        .try_into()
        .unwrap_or(u32::MAX)
}

/// Bytes of base64 inside data URIs and bare `file_data`. Refuses a picture over the limit.
fn payload_bytes(body: &[u8]) -> Result<u64, Bad> {
    const URI: &[u8] = b";base64,";
    const FILE: &[u8] = b"\"file_data\"";
    let mut sum = 0;
    for at in memmem::find_iter(body, URI) {
        let length = until_quote(&body[at + URI.len()..]);
        let head = &body[at.saturating_sub(64)..at];
        if memmem::rfind(head, b"data:image").is_some() && length / 4 * 3 > IMAGE_MAX {
            return Err(Bad::new("input", "holds a picture of more than 20 MB"));
        }
        sum += length;
    }
    for at in memmem::find_iter(body, FILE) {
        let rest = body[at + FILE.len()..].trim_ascii_start();
        let value = rest
            .strip_prefix(b":")
            .unwrap_or_default()
            .trim_ascii_start();
        if let Some(value) = value
            .strip_prefix(b"\"")
            .filter(|v| !v.starts_with(b"data:"))
        {
            sum += until_quote(value);
        }
    }
    Ok(sum)
}

fn until_quote(text: &[u8]) -> u64 {
    memchr(b'"', text).unwrap_or(text.len()) as u64
}

fn starts_with<'a>(
    value: Option<&'a RawValue>,
    field: &str,
    start: u8,
    what: &str,
) -> Result<Option<&'a RawValue>, Bad> {
    match value {
        Some(value) if value.get().as_bytes().first() != Some(&start) => {
            Err(wrong(field, what, value))
        }
        other => Ok(other),
    }
}

fn boolean(value: Option<&RawValue>, field: &str) -> Result<Option<bool>, Bad> {
    match value.map(RawValue::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(wrong(
            field,
            "true or false",
            value.unwrap_or(RawValue::NULL),
        )),
    }
}

fn string<'a>(value: Option<&'a RawValue>, field: &str) -> Result<Option<Cow<'a, str>>, Bad> {
    let Some(value) = starts_with(value, field, b'"', "a string")? else {
        return Ok(None);
    };
    text_of(value.get())
        .map(Some)
        .ok_or_else(|| wrong(field, "a string of valid characters", value))
}

fn required_text<'a>(value: Option<&'a RawValue>, field: &str) -> Result<Cow<'a, str>, Bad> {
    match string(value, field)? {
        None => Err(Bad::new(field, "is required: a string")),
        Some(text) if text.trim().is_empty() => Err(Bad::new(field, "must not be empty or blank")),
        Some(text) => Ok(text),
    }
}

fn number(value: Option<&RawValue>, field: &str, min: f64, max: f64) -> Result<Option<f64>, Bad> {
    let Some(value) = value else { return Ok(None) };
    let what = format!("a number from {min} to {max}");
    let is_number = matches!(value.get().as_bytes().first(), Some(b'-' | b'0'..=b'9'));
    match value.get().parse::<f64>() {
        Ok(number) if is_number && (min..=max).contains(&number) => Ok(Some(number)),
        _ => Err(wrong(field, &what, value)),
    }
}

fn whole(
    value: Option<&RawValue>,
    field: &str,
    min: u64,
    max: Option<u64>,
) -> Result<Option<u64>, Bad> {
    let Some(value) = value else { return Ok(None) };
    let is_whole = value.get().bytes().all(|b| b.is_ascii_digit());
    match value.get().parse::<u64>() {
        Ok(number) if is_whole && number >= min && max.is_none_or(|max| number <= max) => {
            Ok(Some(number))
        }
        _ => {
            let what = match max {
                Some(max) => format!("a whole number from {min} to {max}"),
                None => format!("a whole number of at least {min}"),
            };
            Err(wrong(field, &what, value))
        }
    }
}

/// "`field` must be …, not …": short values are shown, long ones only by their type.
fn wrong(field: &str, what: &str, value: &RawValue) -> Bad {
    let raw = value.get();
    let came = match raw.as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "an array",
        Some(b'{') => "an object",
        _ if raw.len() <= 32 => raw,
        _ => "a number",
    };
    Bad::new(field, format!("must be {what}, not {came}"))
}

/// The text of a JSON string, borrowed where nothing in it is escaped. None where an escape is no character.
pub(super) fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(json).ok().map(Cow::Owned)
}

/// Whether a JSON string holds only white space.
fn is_blank(json: &str) -> bool {
    // A long text that begins with a letter is common: no need to read it to its end.
    !json
        .as_bytes()
        .get(1)
        .is_some_and(u8::is_ascii_alphanumeric)
        && text_of(json).is_none_or(|text| text.trim().is_empty())
}

/// JSON that was valid when it was taken out of its surroundings; nothing where it is of another type.
fn parse<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> T {
    serde_json::from_str(raw.get()).unwrap_or_default()
}
