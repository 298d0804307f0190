//! Summarizes a request of Anthropic's Messages API: the fields of docs/chat/messages.md, checked without parsing the conversation.

use std::ops::RangeInclusive;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{CHOICE_TYPES, EFFORTS, MOST_STOPS, SMALLEST_BUDGET, THINKING_TYPES, one_of};
use crate::error::InvalidRequest;
use crate::format::RequestSummary;

/// The members that matter here, as they stand in the body.
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
}

/// Looks at a request; see [`crate::Format::glance`].
pub(super) fn glance(body: &[u8]) -> Result<RequestSummary, InvalidRequest> {
    let text =
        std::str::from_utf8(body).map_err(|_| InvalidRequest::body("the body must be UTF-8"))?;
    if !text.trim_start().starts_with('{') {
        return Err(InvalidRequest::body("the body must be a JSON object"));
    }
    let body: Body<'_> = serde_json::from_str(text)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let model = body
        .model
        .and_then(string)
        .filter(|model| !model.trim().is_empty());
    let model = model.ok_or_else(|| {
        bad(
            "model",
            "is required and must be a string that is not empty",
        )
    })?;
    conversation(&body)?;
    let max_tokens = whole("max_tokens", body.max_tokens, 1)?;
    number("temperature", body.temperature, 0.0..=1.0)?;
    number("top_p", body.top_p, 0.0..=1.0)?;
    whole("top_k", body.top_k, 0)?;
    stop_sequences(body.stop_sequences)?;
    if let Some(tools) = body.tools {
        starts(tools, "tools", "[", "a list")?;
    }
    tool_choice(body.tool_choice)?;
    thinking(body.thinking, max_tokens)?;
    let effort = effort(body.output_config)?;
    Ok(RequestSummary {
        stream: flag("stream", body.stream)?.unwrap_or(false),
        model: Some(model),
        include_usage: false,
        max_tokens,
        n: 1,
        user: user(body.metadata)?,
        attachments: attachments(text),
        payload_bytes: payload_bytes(text),
        has_reasoning_settings: effort || body.thinking.is_some(),
        members: 0,
        is_native: !holds_foreign_signatures(text),
    })
}

fn bad(field: &str, why: impl AsRef<str>) -> InvalidRequest {
    InvalidRequest::new(field, why)
}

/// The text of a JSON string; none where it is something else.
fn string(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

fn starts(raw: &RawValue, field: &str, with: &str, what: &str) -> Result<(), InvalidRequest> {
    let fits = raw.get().starts_with(|c| with.contains(c));
    fits.then_some(())
        .ok_or_else(|| bad(field, format!("must be {what}")))
}

/// How a value that does not fit is called.
fn got(raw: &RawValue) -> &str {
    match raw.get().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'[') => "a list",
        Some(b'{') => "an object",
        _ => raw.get(),
    }
}

fn conversation(body: &Body<'_>) -> Result<(), InvalidRequest> {
    let messages = body
        .messages
        .ok_or_else(|| bad("messages", "is required"))?;
    starts(messages, "messages", "[", "a list of messages")?;
    if messages.get()[1..].trim_start().starts_with(']') {
        return Err(bad("messages", "must hold at least one message"));
    }
    match body.system {
        Some(system) => starts(system, "system", "\"[", "a string or a list of text blocks"),
        None => Ok(()),
    }
}

fn whole(field: &str, raw: Option<&RawValue>, min: u64) -> Result<Option<u64>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let value = raw.get().parse::<u64>().ok().filter(|n| *n >= min);
    let why = || format!("must be a whole number of at least {min}, got {}", got(raw));
    value.map(Some).ok_or_else(|| bad(field, why()))
}

fn number(
    field: &str,
    raw: Option<&RawValue>,
    range: RangeInclusive<f64>,
) -> Result<Option<f64>, InvalidRequest> {
    let Some(raw) = raw else { return Ok(None) };
    let value = serde_json::from_str::<f64>(raw.get()).ok();
    let why = || {
        let (min, max) = (range.start(), range.end());
        format!("must be a number from {min} to {max}, got {}", got(raw))
    };
    let value = value.filter(|x| range.contains(x));
    value.map(Some).ok_or_else(|| bad(field, why()))
}

fn flag(field: &str, raw: Option<&RawValue>) -> Result<Option<bool>, InvalidRequest> {
    match raw.map(RawValue::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(bad(field, "must be true or false")),
    }
}

fn stop_sequences(raw: Option<&RawValue>) -> Result<(), InvalidRequest> {
    const FIELD: &str = "stop_sequences";
    let Some(raw) = raw else { return Ok(()) };
    let stops: Vec<String> =
        serde_json::from_str(raw.get()).map_err(|_| bad(FIELD, "must be a list of strings"))?;
    if stops.len() > MOST_STOPS {
        let why = format!("takes at most {MOST_STOPS} sequences, got {}", stops.len());
        return Err(bad(FIELD, why));
    }
    Ok(())
}

fn user(raw: Option<&RawValue>) -> Result<Option<String>, InvalidRequest> {
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow)]
        user_id: Option<&'a RawValue>,
    }
    let Some(raw) = raw else { return Ok(None) };
    starts(raw, "metadata", "{", "an object")?;
    let metadata: Metadata<'_> =
        serde_json::from_str(raw.get()).map_err(|_| bad("metadata", "must be an object"))?;
    let Some(user) = metadata.user_id else {
        return Ok(None);
    };
    let user = string(user).ok_or_else(|| bad("metadata.user_id", "must be a string"))?;
    Ok(Some(user))
}

fn tool_choice(raw: Option<&RawValue>) -> Result<(), InvalidRequest> {
    #[derive(Deserialize)]
    struct Choice<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        name: Option<&'a RawValue>,
        disable_parallel_tool_use: Option<&'a RawValue>,
    }
    let Some(raw) = raw else { return Ok(()) };
    starts(raw, "tool_choice", "{", "an object")?;
    let choice: Choice<'_> =
        serde_json::from_str(raw.get()).map_err(|_| bad("tool_choice", "must be an object"))?;
    let kind = word("tool_choice.type", choice.kind, CHOICE_TYPES)?;
    flag(
        "tool_choice.disable_parallel_tool_use",
        choice.disable_parallel_tool_use,
    )?;
    let name = choice.name.and_then(string).filter(|name| !name.is_empty());
    if kind == "tool" && name.is_none() {
        return Err(bad("tool_choice.name", "is required and must name a tool"));
    }
    Ok(())
}

/// A member that must be one of `words`.
fn word(
    field: &str,
    raw: Option<&RawValue>,
    words: &[&'static str],
) -> Result<&'static str, InvalidRequest> {
    let said = raw.and_then(string);
    let found = words.iter().find(|word| said.as_deref() == Some(**word));
    found
        .copied()
        .ok_or_else(|| bad(field, format!("must be {}", one_of(words))))
}

fn thinking(raw: Option<&RawValue>, max_tokens: Option<u64>) -> Result<(), InvalidRequest> {
    #[derive(Deserialize)]
    struct Thinking<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<&'a RawValue>,
        budget_tokens: Option<&'a RawValue>,
        display: Option<&'a RawValue>,
    }
    const BUDGET: &str = "thinking.budget_tokens";
    let Some(raw) = raw else { return Ok(()) };
    starts(raw, "thinking", "{", "an object")?;
    let thinking: Thinking<'_> =
        serde_json::from_str(raw.get()).map_err(|_| bad("thinking", "must be an object"))?;
    let kind = word("thinking.type", thinking.kind, THINKING_TYPES)?;
    if thinking.display.is_some_and(|raw| string(raw).is_none()) {
        return Err(bad("thinking.display", "must be a string"));
    }
    if kind != "enabled" {
        return Ok(());
    }
    let budget = whole(BUDGET, thinking.budget_tokens, SMALLEST_BUDGET)?
        .ok_or_else(|| bad(BUDGET, "is required with `type` `enabled`"))?;
    match max_tokens {
        Some(max) if budget >= max => Err(bad(
            BUDGET,
            format!("must be less than `max_tokens`, got {budget} and {max}"),
        )),
        _ => Ok(()),
    }
}

/// Whether an effort is named.
fn effort(raw: Option<&RawValue>) -> Result<bool, InvalidRequest> {
    #[derive(Deserialize)]
    struct OutputConfig<'a> {
        #[serde(borrow)]
        effort: Option<&'a RawValue>,
        format: Option<&'a RawValue>,
    }
    let Some(raw) = raw else { return Ok(false) };
    starts(raw, "output_config", "{", "an object")?;
    let config: OutputConfig<'_> =
        serde_json::from_str(raw.get()).map_err(|_| bad("output_config", "must be an object"))?;
    if let Some(format) = config.format {
        starts(format, "output_config.format", "{", "an object")?;
    }
    let Some(effort) = config.effort else {
        return Ok(false);
    };
    let words: Vec<&'static str> = EFFORTS.iter().map(|effort| effort.as_str()).collect();
    word("output_config.effort", Some(effort), &words)?;
    Ok(true)
}

/// How many parts seem to be pictures or files.
fn attachments(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let plain: usize = ["\"image\"", "\"document\"", "\"container_upload\""]
        .iter()
        .map(|word| memmem::find_iter(bytes, word.as_bytes()).count())
        .sum();
    // A letter that is written as \u006d could hide such a word; nobody writes letters so in earnest.
    let hidden = memmem::find_iter(bytes, b"\\u00")
        .filter(|at| matches!(bytes.get(at + 4), Some(b'4'..=b'7')))
        .count();
    u32::try_from(plain + hidden).unwrap_or(u32::MAX)
}

/// How many bytes of the texts behind `"data":` look like base64.
fn payload_bytes(text: &str) -> u64 {
    let bytes = text.as_bytes();
    let mut sum = 0;
    for at in memmem::find_iter(bytes, b"\"data\"") {
        let Some(value) = member_value(&text[at + 6..]) else {
            continue;
        };
        let end = memchr::memchr(b'"', value.as_bytes()).unwrap_or(value.len());
        // Plain-text documents have their text in a member of the same name.
        let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=-_\\".contains(byte);
        if value.as_bytes()[..end].iter().take(64).all(is_base64) {
            sum += end as u64;
        }
    }
    sum
}

/// Behind a member's name: what follows the quote that begins its text.
fn member_value(rest: &str) -> Option<&str> {
    let rest = rest.trim_start().strip_prefix(':')?;
    rest.trim_start().strip_prefix('"')
}

/// Whether thinking in the history is signed by another vendor (wrapped by us) or by nobody: this vendor refuses both.
fn holds_foreign_signatures(text: &str) -> bool {
    let bytes = text.as_bytes();
    memmem::find(bytes, b"\"tg1.").is_some()
        || memmem::find(bytes, b"\"tgs.").is_some()
        || memmem::find_iter(bytes, b"\"signature\"")
            .any(|at| member_value(&text[at + 11..]).is_some_and(|rest| rest.starts_with('"')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn with(member: &str, value: Value) -> Result<RequestSummary, InvalidRequest> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4096});
        body[member] = value;
        glance(body.to_string().as_bytes())
    }

    #[test]
    fn the_table_of_the_specification_holds() {
        for (member, value, field) in [
            ("model", json!(null), "model"),
            ("model", json!(" "), "model"),
            ("messages", json!(null), "messages"),
            ("messages", json!([]), "messages"),
            ("messages", json!("hi"), "messages"),
            ("max_tokens", json!(0), "max_tokens"),
            ("max_tokens", json!(1.0), "max_tokens"),
            ("max_tokens", json!("5"), "max_tokens"),
            ("temperature", json!(1.01), "temperature"),
            ("temperature", json!("1"), "temperature"),
            ("top_p", json!(-0.1), "top_p"),
            ("top_k", json!(2.5), "top_k"),
            ("stream", json!("true"), "stream"),
            ("stop_sequences", json!("x"), "stop_sequences"),
            (
                "stop_sequences",
                json!(["1", "2", "3", "4", "5"]),
                "stop_sequences",
            ),
            ("metadata", json!([]), "metadata"),
            ("metadata", json!({"user_id": 7}), "metadata.user_id"),
            ("system", json!({}), "system"),
            ("tools", json!({}), "tools"),
            ("tool_choice", json!("auto"), "tool_choice"),
            ("tool_choice", json!({"type": "some"}), "tool_choice.type"),
            ("tool_choice", json!({"type": "tool"}), "tool_choice.name"),
            ("thinking", json!({"type": "on"}), "thinking.type"),
            (
                "thinking",
                json!({"type": "enabled"}),
                "thinking.budget_tokens",
            ),
            (
                "thinking",
                json!({"type": "enabled", "budget_tokens": 1000}),
                "thinking.budget_tokens",
            ),
            (
                "thinking",
                json!({"type": "enabled", "budget_tokens": 4096}),
                "thinking.budget_tokens",
            ),
            (
                "output_config",
                json!({"effort": "huge"}),
                "output_config.effort",
            ),
        ] {
            let bad = with(member, value.clone()).expect_err(&format!("{member}: {value}"));
            assert_eq!(bad.field, field);
            assert!(bad.message.contains(field), "{}", bad.message);
        }
        let bad = with("max_tokens", json!("5")).unwrap_err();
        assert_eq!(
            bad.message,
            "`max_tokens` must be a whole number of at least 1, got a string"
        );
    }

    #[test]
    fn null_is_absent_and_the_rest_is_seen() {
        for member in ["temperature", "max_tokens", "tools", "thinking", "metadata"] {
            with(member, json!(null)).unwrap();
        }
        let body = json!({
            "model": "claude", "stream": true, "metadata": {"user_id": "u1"}, "thinking": {"type": "adaptive"},
            "messages": [{"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "so it is"}},
            ]}],
            "unknown": {"whatever": 1},
        });
        let seen = glance(body.to_string().as_bytes()).unwrap();
        let expected = RequestSummary {
            model: Some("claude".to_owned()),
            stream: true,
            n: 1,
            user: Some("u1".to_owned()),
            attachments: 2,
            payload_bytes: 12,
            has_reasoning_settings: true,
            members: 0,
            is_native: true,
            ..RequestSummary::default()
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn hidden_attachments_count() {
        let body =
            br#"{"model":"m","messages":[{"role":"user","content":[{"type":"im\u0061ge"}]}]}"#;
        assert_eq!(glance(body).unwrap().attachments, 1);
    }

    #[test]
    fn signatures_of_others_are_not_for_this_vendor() {
        for signature in ["", "tg1.gemini.YQ"] {
            let block = json!({"type": "thinking", "thinking": "hm", "signature": signature});
            let turn = json!([{"role": "assistant", "content": [block]}]);
            assert!(!with("messages", turn).unwrap().is_native);
        }
    }

    #[test]
    fn what_is_no_json_object_is_refused() {
        for body in [
            &b""[..],
            b"[]",
            b"\xff",
            b"{",
            b"{\"model\":\"a\",\"model\":\"b\"}",
        ] {
            assert!(glance(body).is_err());
        }
    }
}
