//! Writes a complete (non-streaming) response for a client.

use std::ops::Range;

use serde_json::{Map, Value, json};

use super::constants::NAME;
use super::finish::finish_to_reason;
use super::ids::{generate_call_id, response_id};
use super::images::write_generated_image;
use super::usage;
use crate::format::RenderOptions;
use crate::hub::{Choice, Citation, FinishReason, Part, PartKind, Response};

/// Writes a response; see [`crate::Format::write_response`].
pub(super) fn write_response(response: &Response, options: &RenderOptions<'_>) -> Vec<u8> {
    let blocked = [Choice {
        finish: FinishReason::PromptBlocked,
        ..Choice::empty(0)
    }];
    let choices = match response.choices.as_slice() {
        [] => &blocked,
        choices => choices,
    };
    let choices: Vec<Value> = choices
        .iter()
        .map(|choice| write_choice(choice, options))
        .collect();
    let mut out = Map::new();
    out.insert("id".to_owned(), response_id(&response.id, options).into());
    out.insert("object".to_owned(), "chat.completion".into());
    out.insert(
        "created".to_owned(),
        response.created.unwrap_or(options.created).into(),
    );
    out.insert("model".to_owned(), options.model.into());
    out.insert("choices".to_owned(), choices.into());
    if let Some(counts) = &response.usage {
        out.insert("usage".to_owned(), usage::write(counts));
    }
    if let Some(tier) = &response.service_tier {
        // `standard` is Anthropic's name of the tier.
        let tier = if tier == "standard" { "default" } else { tier };
        out.insert("service_tier".to_owned(), tier.into());
    }
    for (name, value) in response.extra.for_format(NAME).into_iter().flatten() {
        out.insert(name.clone(), value.clone());
    }
    crate::json_text::object_to_vec(&out)
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

fn write_choice(choice: &Choice, options: &RenderOptions<'_>) -> Value {
    let mut message = Message::default();
    for part in &choice.parts {
        add_part(&mut message, part, choice.index, options);
    }
    let finish = match choice.finish {
        // OpenAI reports a refusal as `stop`. With tool calls the reason is kept: calls that were cut off must not look complete.
        FinishReason::Refusal if message.refusal.is_some() && message.calls.is_empty() => {
            FinishReason::EndTurn
        }
        finish => finish,
    };
    let is_null = !message.has_text && (!message.calls.is_empty() || message.refusal.is_some());
    let content = if is_null {
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
    out.extend(choice.extra.for_format(NAME).cloned().unwrap_or_default());
    json!({
        "index": choice.index,
        "message": out,
        "logprobs": choice.logprobs.as_ref().map(complete_logprobs),
        "finish_reason": finish_to_reason(finish),
    })
}

fn add_part(message: &mut Message, part: &Part, choice: u32, options: &RenderOptions<'_>) {
    match &part.kind {
        PartKind::Text {
            text, citations, ..
        } => {
            let before = message.text.chars().count() as u64;
            let after = before + text.chars().count() as u64;
            let sources = citations
                .iter()
                .filter_map(|source| write_annotation(source, before..after));
            message.citations.extend(sources);
            message.text.push_str(text);
            message.has_text = true;
        }
        PartKind::Reasoning { text, .. } => {
            if !message.reasoning.is_empty() && !text.is_empty() {
                message.reasoning.push_str("\n\n");
            }
            message.reasoning.push_str(text);
        }
        PartKind::Refusal(text) => message.refusal.get_or_insert_default().push_str(text),
        PartKind::Image { source, .. } => {
            let index = message.images.len();
            message.images.extend(write_generated_image(source, index));
        }
        PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            ..
        } => {
            let id = match id.as_str() {
                "" => generate_call_id(options.seed, choice, message.calls.len() as u32, name),
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

/// Writes a citation of the text part at the characters `text` of the content. `None` if it has no URL.
pub(super) fn write_annotation(source: &Citation, text: Range<u64>) -> Option<Value> {
    if source.url.is_empty() {
        return None;
    }
    let offset = |position: u64| text.start.saturating_add(position);
    Some(json!({"type": "url_citation", "url_citation": {
        "url": source.url,
        "title": source.title,
        "start_index": source.start.map_or(text.start, offset),
        "end_index": source.end.map_or(text.end, offset),
    }}))
}

/// Log probabilities with both lists, which the SDKs' types require.
pub(super) fn complete_logprobs(logprobs: &Value) -> Value {
    let mut complete = json!({"content": null, "refusal": null});
    if let (Some(complete), Some(lists)) = (complete.as_object_mut(), logprobs.as_object()) {
        complete.extend(lists.clone());
    }
    complete
}
