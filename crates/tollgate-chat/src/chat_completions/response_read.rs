//! Reads a complete (non-streaming) response of an upstream.

use serde_json::{Map, Value, json};

use super::constants::NAME;
use super::error::{self, is_truthy};
use super::finish::finish_from_reason;
use super::ids::generate_call_id;
use super::images::read_images;
use super::reasoning::take_reasoning_parts;
use super::usage;
use crate::error::MalformedResponse;
use crate::hub::{Choice, Citation, ExtraFields, FinishReason, Part, PartKind, Response};

/// Reads a response; see [`crate::Format::read_response`].
pub(super) fn read_response(body: &[u8]) -> Result<Response, MalformedResponse> {
    let malformed = |why: &str| MalformedResponse::Invalid(why.to_owned());
    let value = serde_json::from_slice(body).map_err(|_| malformed("the response is not JSON"))?;
    let Value::Object(mut map) = value else {
        return Err(malformed("the response is not an object"));
    };
    if map.get("error").is_some_and(is_truthy) {
        return Err(error::read_inline_error(&map.into()));
    }
    let Some(Value::Array(choices)) = map.shift_remove("choices") else {
        return Err(malformed("the response has no `choices`"));
    };
    if choices.is_empty() {
        return Err(malformed("the response has no `choices`"));
    }
    let id = take_string_or_empty(&mut map, "id");
    let created = map.shift_remove("created").and_then(|at| at.as_f64());
    let mut response = Response {
        model: take_string_or_empty(&mut map, "model"),
        created: created.map(|at| at as i64),
        usage: map
            .shift_remove("usage")
            .as_ref()
            .and_then(usage::read_usage),
        service_tier: Some(take_string_or_empty(&mut map, "service_tier"))
            .filter(|tier| !tier.is_empty()),
        choices: Vec::with_capacity(choices.len()),
        id,
        extra: ExtraFields::NONE,
    };
    for (at, choice) in choices.into_iter().enumerate() {
        response
            .choices
            .push(read_choice(at, choice, &response.id)?);
    }
    map.shift_remove("object");
    map.retain(|_, value| !value.is_null());
    response.extra = ExtraFields::new(NAME, map);
    Ok(response)
}

fn take_string_or_empty(map: &mut Map<String, Value>, name: &str) -> String {
    match map.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn read_choice(at: usize, value: Value, response_id: &str) -> Result<Choice, MalformedResponse> {
    let Value::Object(mut choice) = value else {
        return Err(MalformedResponse::Invalid(
            "a choice is not an object".to_owned(),
        ));
    };
    let index = choice
        .get("index")
        .and_then(Value::as_u64)
        .unwrap_or(at as u64);
    let index = u32::try_from(index).unwrap_or(0);
    let mut message = match choice.shift_remove("message") {
        Some(Value::Object(message)) => message,
        _ => Map::new(),
    };
    let mut parts = take_reasoning_parts(&mut message);
    read_content_parts(message.shift_remove("content"), &mut parts);
    let citations = message.shift_remove("annotations");
    add_citations(&mut parts, citations.iter().flat_map(read_citations));
    let refusal = take_string_or_empty(&mut message, "refusal");
    if !refusal.is_empty() {
        parts.push(Part::new(PartKind::Refusal(refusal)));
    }
    let images = message.shift_remove("images");
    parts.extend(images.iter().flat_map(read_images));
    let calls = parts.len();
    parts.extend(read_calls(&mut message, (response_id, index)));
    let has_calls = parts.len() > calls;
    let reason = take_string_or_empty(&mut choice, "finish_reason");
    let mut finish = match reason.as_str() {
        "" => FinishReason::EndTurn,
        reason => finish_from_reason(reason),
    }
    .with_tool_calls(has_calls);
    let has_refusal = parts
        .iter()
        .any(|part| matches!(part.kind, PartKind::Refusal(_)));
    if has_refusal && finish == FinishReason::EndTurn {
        finish = FinishReason::Refusal;
    }
    let mut extra = Map::new();
    if let Some(audio) = message
        .shift_remove("audio")
        .filter(|audio| !audio.is_null())
    {
        extra.insert("audio".to_owned(), audio);
    }
    Ok(Choice {
        index,
        parts,
        finish,
        stop_sequence: None,
        logprobs: choice
            .shift_remove("logprobs")
            .filter(|logprobs| !logprobs.is_null()),
        extra: ExtraFields::new(NAME, extra),
    })
}

/// Reads `content`: a string, or the list of parts that some vendors send (Mistral's reasoning is in it).
pub(super) fn read_content_parts(content: Option<Value>, out: &mut Vec<Part>) {
    match content {
        Some(Value::String(text)) if !text.is_empty() => out.push(Part::text(text)),
        Some(Value::Array(list)) => {
            for part in list {
                if let Some(text) = part["text"].as_str().filter(|text| !text.is_empty()) {
                    out.push(Part::text(text));
                } else if let Some(thoughts) = part["thinking"].as_array() {
                    let text = thoughts
                        .iter()
                        .filter_map(|thought| thought["text"].as_str());
                    out.push(Part::new(PartKind::Reasoning {
                        text: text.collect(),
                        signature: None,
                        id: None,
                        summary: false,
                    }));
                } else if part["image_url"].is_object() {
                    out.extend(read_images(&Value::Array(vec![part])));
                }
            }
        }
        _ => {}
    }
}

/// Adds citations to the last text part.
fn add_citations(parts: &mut [Part], sources: impl IntoIterator<Item = Citation>) {
    let texts = parts
        .iter_mut()
        .rev()
        .find_map(|part| match &mut part.kind {
            PartKind::Text { citations, .. } => Some(citations),
            _ => None,
        });
    if let Some(citations) = texts {
        citations.extend(sources);
    }
}

/// Reads `annotations`.
pub(super) fn read_citations(list: &Value) -> Vec<Citation> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|annotation| {
        let source = annotation.get("url_citation")?;
        let word = |name: &str| source[name].as_str().unwrap_or_default().to_owned();
        Some(Citation {
            url: word("url"),
            title: word("title"),
            start: source["start_index"].as_u64(),
            end: source["end_index"].as_u64(),
            cited_text: source["content"].as_str().map(str::to_owned),
            extra: ExtraFields::NONE,
        })
    })
    .collect()
}

fn read_calls(message: &mut Map<String, Value>, (response_id, choice): (&str, u32)) -> Vec<Part> {
    let calls = match message.shift_remove("tool_calls") {
        Some(Value::Array(calls)) => calls,
        _ => Vec::new(),
    };
    let old = message
        .shift_remove("function_call")
        .filter(Value::is_object);
    let old = old.map(|function| json!({"function": function}));
    let mut parts: Vec<Part> = Vec::new();
    for call in calls.into_iter().chain(old) {
        let custom = call["type"] == "custom";
        let inner = &call[if custom { "custom" } else { "function" }];
        let Some(name) = inner["name"].as_str().filter(|name| !name.is_empty()) else {
            continue;
        };
        let arguments = match &inner[if custom { "input" } else { "arguments" }] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        let id = match call["id"].as_str() {
            Some(id) if !id.is_empty() => id.to_owned(),
            _ => generate_call_id(response_id, choice, parts.len() as u32, name),
        };
        parts.push(Part::new(PartKind::ToolCall {
            id,
            name: name.to_owned(),
            arguments,
            custom,
            signature: None,
        }));
    }
    parts
}
