//! Whole replies, both ways.

use std::ops::Range;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::request::{image_url, reasoning};
use super::wire::{NAME, finish_of, reason_of};
use super::{error, usage};
use crate::error::Garbled;
use crate::format::Rendering;
use crate::hub::{Choice, Citation, Finish, Kind, Own, Part, Reply};
use crate::media;

/// Reads an upstream's reply.
pub(super) fn read(body: &[u8]) -> Result<Reply, Garbled> {
    let malformed = |why: &str| Garbled::Malformed(why.to_owned());
    let value = serde_json::from_slice(body).map_err(|_| malformed("the reply is not JSON"))?;
    let Value::Object(mut map) = value else {
        return Err(malformed("the reply is no object"));
    };
    if map.get("error").is_some_and(is_truthy) {
        return Err(error::upstream(&map.into()));
    }
    let Some(Value::Array(choices)) = map.shift_remove("choices") else {
        return Err(malformed("the reply has no `choices`"));
    };
    let id = take_string(&mut map, "id");
    let made = map.shift_remove("created").and_then(|at| at.as_f64());
    let mut reply = Reply {
        model: take_string(&mut map, "model"),
        created: made.map(|at| at as i64),
        usage: map.shift_remove("usage").as_ref().and_then(usage::read),
        service_tier: Some(take_string(&mut map, "service_tier")).filter(|tier| !tier.is_empty()),
        choices: Vec::with_capacity(choices.len()),
        id,
        own: Own::NONE,
    };
    for (at, choice) in choices.into_iter().enumerate() {
        reply.choices.push(read_choice(at, choice, &reply.id)?);
    }
    map.shift_remove("object");
    map.retain(|_, value| !value.is_null());
    reply.own = Own::of(NAME, map);
    Ok(reply)
}

/// What JavaScript and Python hold for true.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    }
}

fn take_string(map: &mut Map<String, Value>, name: &str) -> String {
    match map.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

fn read_choice(at: usize, value: Value, reply: &str) -> Result<Choice, Garbled> {
    let Value::Object(mut choice) = value else {
        return Err(Garbled::Malformed("a choice is no object".to_owned()));
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
    let mut parts = reasoning(&mut message);
    content_parts(message.shift_remove("content"), &mut parts);
    let citations = message.shift_remove("annotations");
    cite(&mut parts, citations.iter().flat_map(read_citations));
    let refusal = take_string(&mut message, "refusal");
    if !refusal.is_empty() {
        parts.push(Part::of(Kind::Refusal(refusal)));
    }
    let images = message.shift_remove("images");
    parts.extend(images.iter().flat_map(read_images));
    let calls = parts.len();
    parts.extend(read_calls(&mut message, (reply, index)));
    let has_calls = parts.len() > calls;
    let reason = take_string(&mut choice, "finish_reason");
    let mut finish = match reason.as_str() {
        "" => Finish::End,
        reason => finish_of(reason),
    }
    .with_calls(has_calls);
    let refuses = parts
        .iter()
        .any(|part| matches!(part.kind, Kind::Refusal(_)));
    if refuses && finish == Finish::End {
        finish = Finish::Refusal;
    }
    let mut own = Map::new();
    if let Some(audio) = message
        .shift_remove("audio")
        .filter(|audio| !audio.is_null())
    {
        own.insert("audio".to_owned(), audio);
    }
    Ok(Choice {
        index,
        parts,
        finish,
        stop_sequence: None,
        logprobs: choice
            .shift_remove("logprobs")
            .filter(|logprobs| !logprobs.is_null()),
        own: Own::of(NAME, own),
    })
}

/// A string, or the list of parts that some vendors give (Mistral's thinking among them).
pub(super) fn content_parts(content: Option<Value>, out: &mut Vec<Part>) {
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
                    out.push(Part::of(Kind::Reasoning {
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

/// Sources go to the last text.
fn cite(parts: &mut [Part], sources: impl IntoIterator<Item = Citation>) {
    let texts = parts
        .iter_mut()
        .rev()
        .find_map(|part| match &mut part.kind {
            Kind::Text { citations, .. } => Some(citations),
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
            own: Own::NONE,
        })
    })
    .collect()
}

/// Pictures that a model made, as several vendors give them.
pub(super) fn read_images(list: &Value) -> Vec<Part> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(|image| {
        let url = image["image_url"]["url"].as_str()?;
        let source = if media::is_data_uri(url) {
            media::inline(url, "image/png").ok()?
        } else {
            crate::hub::Source::Url {
                url: url.to_owned(),
                media_type: None,
            }
        };
        Some(Part::of(Kind::Image {
            source,
            detail: None,
        }))
    })
    .collect()
}

fn read_calls(message: &mut Map<String, Value>, place: (&str, u32)) -> Vec<Part> {
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
            _ => minted_id(place.0, place.1, parts.len() as u32, name),
        };
        parts.push(Part::of(Kind::ToolCall {
            id,
            name: name.to_owned(),
            arguments,
            custom,
            signature: None,
        }));
    }
    parts
}

/// An id for a call that the upstream gave none: the same for the same call of the same reply.
pub(super) fn minted_id(reply: &str, choice: u32, call: u32, name: &str) -> String {
    let digest = Sha256::digest(format!("{reply}\n{choice}\n{call}\n{name}"));
    digest[..12]
        .iter()
        .fold("call_".to_owned(), |id, byte| format!("{id}{byte:02x}"))
}

/// Writes a reply for a client.
pub(super) fn write(reply: &Reply, rendering: &Rendering<'_>) -> Vec<u8> {
    let blocked = [Choice {
        finish: Finish::PromptBlocked,
        ..Choice::empty(0)
    }];
    let choices = match reply.choices.as_slice() {
        [] => &blocked,
        choices => choices,
    };
    let choices: Vec<Value> = choices
        .iter()
        .map(|choice| write_choice(choice, rendering))
        .collect();
    let mut out = Map::new();
    out.insert("id".to_owned(), reply_id(&reply.id, rendering).into());
    out.insert("object".to_owned(), "chat.completion".into());
    out.insert(
        "created".to_owned(),
        reply.created.unwrap_or(rendering.created).into(),
    );
    out.insert("model".to_owned(), rendering.model.into());
    out.insert("choices".to_owned(), choices.into());
    if let Some(counts) = &reply.usage {
        out.insert("usage".to_owned(), usage::write(counts));
    }
    if let Some(tier) = &reply.service_tier {
        // Anthropic's word for the usual one.
        let tier = if tier == "standard" { "default" } else { tier };
        out.insert("service_tier".to_owned(), tier.into());
    }
    for (name, value) in reply.own.for_format(NAME).into_iter().flatten() {
        out.insert(name.clone(), value.clone());
    }
    crate::text::of_object(&out)
}

/// The upstream's id, or one that is made.
pub(super) fn reply_id(upstream: &str, rendering: &Rendering<'_>) -> String {
    match upstream {
        "" => format!("chatcmpl-{}", rendering.seed),
        id => id.to_owned(),
    }
}

#[derive(Default)]
struct Message {
    text: String,
    has_text: bool,
    refusal: Option<String>,
    reasoning: String,
    calls: Vec<Value>,
    citations: Vec<Value>,
    images: Vec<Value>,
}

fn write_choice(choice: &Choice, rendering: &Rendering<'_>) -> Value {
    let mut message = Message::default();
    for part in &choice.parts {
        add_part(&mut message, part, choice.index, rendering);
    }
    let finish = match choice.finish {
        // A refusal in words is an ordinary end here; but calls that were cut must not look complete.
        Finish::Refusal if message.refusal.is_some() && message.calls.is_empty() => Finish::End,
        finish => finish,
    };
    let silent = !message.has_text && (!message.calls.is_empty() || message.refusal.is_some());
    let content = if silent {
        Value::Null
    } else {
        message.text.into()
    };
    let mut out = Map::new();
    out.insert("role".to_owned(), "assistant".into());
    out.insert("content".to_owned(), content);
    if !message.reasoning.is_empty() {
        out.insert("reasoning_content".to_owned(), message.reasoning.into());
    }
    out.insert("refusal".to_owned(), message.refusal.into());
    let lists = [
        ("annotations", message.citations),
        ("images", message.images),
        ("tool_calls", message.calls),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            out.insert(name.to_owned(), list.into());
        }
    }
    out.extend(choice.own.for_format(NAME).cloned().unwrap_or_default());
    json!({
        "index": choice.index,
        "message": out,
        "logprobs": choice.logprobs.as_ref().map(whole_logprobs),
        "finish_reason": reason_of(finish),
    })
}

fn add_part(message: &mut Message, part: &Part, choice: u32, rendering: &Rendering<'_>) {
    match &part.kind {
        Kind::Text {
            text, citations, ..
        } => {
            let before = message.text.chars().count() as u64;
            let after = before + text.chars().count() as u64;
            let sources = citations
                .iter()
                .filter_map(|source| annotation(source, before..after));
            message.citations.extend(sources);
            message.text.push_str(text);
            message.has_text = true;
        }
        Kind::Reasoning { text, .. } => {
            if !message.reasoning.is_empty() && !text.is_empty() {
                message.reasoning.push_str("\n\n");
            }
            message.reasoning.push_str(text);
        }
        Kind::Refusal(text) => message.refusal.get_or_insert_default().push_str(text),
        Kind::Image { source, .. } => {
            let index = message.images.len();
            message.images.extend(image(source, index));
        }
        Kind::ToolCall {
            id,
            name,
            arguments,
            custom,
            ..
        } => {
            let id = match id.as_str() {
                "" => minted_id(rendering.seed, choice, message.calls.len() as u32, name),
                id => id.to_owned(),
            };
            message.calls.push(if *custom {
                json!({"id": id, "type": "custom", "custom": {"name": name, "input": arguments}})
            } else {
                let arguments = if arguments.is_empty() { "{}" } else { arguments };
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
            });
        }
        _ => {}
    }
}

/// A source of the text between these characters of the whole content, as far as it does not say its own place in that
/// text. Sources without a page have no place here.
pub(super) fn annotation(source: &Citation, text: Range<u64>) -> Option<Value> {
    if source.url.is_empty() {
        return None;
    }
    let at = |place: u64| text.start.saturating_add(place);
    Some(json!({"type": "url_citation", "url_citation": {
        "url": source.url,
        "title": source.title,
        "start_index": source.start.map_or(text.start, at),
        "end_index": source.end.map_or(text.end, at),
    }}))
}

/// A picture that a model made, as several vendors give it.
pub(super) fn image(source: &crate::hub::Source, index: usize) -> Option<Value> {
    let url = image_url(source)?;
    Some(json!({"index": index, "type": "image_url", "image_url": {"url": url}}))
}

/// Both lists are there, as the SDKs' types want it.
pub(super) fn whole_logprobs(logprobs: &Value) -> Value {
    let mut whole = json!({"content": null, "refusal": null});
    if let (Some(whole), Some(lists)) = (whole.as_object_mut(), logprobs.as_object()) {
        whole.extend(lists.clone());
    }
    whole
}
