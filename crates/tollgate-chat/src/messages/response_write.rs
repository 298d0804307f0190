//! Writes a complete (non-streaming) response for a client.

use serde_json::{Map, Value, json};

use super::block_write::{arguments_to_input, signature_block, signature_for_client};
use super::citations::write_citation;
use super::constants::{NAME, VENDOR};
use super::fields::write_extra_fields;
use super::finish::finish_to_reason;
use super::ids::{client_call_id, message_id};
use super::usage;
use crate::format::RenderOptions;
use crate::hub::{FinishReason, Opaque, Part, PartKind, Response, Source, Usage};
use crate::media;
use crate::tokens::TokenEstimator;

/// See [`crate::Format::write_response`].
pub(super) fn write_response(response: &Response, options: &RenderOptions<'_>) -> Vec<u8> {
    let choice = response.choices.first();
    let mut content = Vec::new();
    let mut ends_with_text = false;
    let mut finish = choice.map_or(FinishReason::PromptBlocked, |choice| choice.finish);
    for part in choice.iter().flat_map(|choice| &choice.parts) {
        if matches!(part.kind, PartKind::Refusal(_)) && finish == FinishReason::EndTurn {
            finish = FinishReason::Refusal;
        }
        content.extend(part_to_blocks(part, content.len()));
        ends_with_text = matches!(
            &part.kind,
            PartKind::Text { text, signature: Some(_), .. } if !text.is_empty()
        );
    }
    if ends_with_text {
        // Removes the block with the signature of the last text: clients use the last block as the text of the response.
        content.pop();
    }
    let sequence = choice.and_then(|choice| choice.stop_sequence.as_deref());
    let sequence = sequence.filter(|_| finish == FinishReason::StopSequence);
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| out.insert(name.to_owned(), value);
    put("id", json!(message_id(&response.id, options.seed)));
    put("type", json!("message"));
    put("role", json!("assistant"));
    put("model", json!(options.model));
    put("content", Value::Array(content));
    put(
        "stop_reason",
        json!(finish_to_reason(finish, sequence.is_some())),
    );
    put("stop_sequence", json!(sequence));
    put("usage", write_response_usage(response, options));
    write_extra_fields(&response.extra, &mut out);
    crate::json_text::object_to_vec(&out)
}

fn write_response_usage(response: &Response, options: &RenderOptions<'_>) -> Value {
    let mut out = usage::write_usage(
        &response
            .usage
            .unwrap_or_else(|| estimate_usage(response, options)),
    );
    if let Some(tier) = &response.service_tier {
        out.insert("service_tier".to_owned(), json!(tier));
    }
    let extra = response
        .extra
        .for_format(NAME)
        .and_then(|extra| extra.get("usage"));
    for (name, value) in extra.and_then(Value::as_object).into_iter().flatten() {
        out.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(out)
}

/// The gateway's estimate, for a response without usage.
fn estimate_usage(response: &Response, options: &RenderOptions<'_>) -> Usage {
    let mut generated = TokenEstimator::default();
    for part in response.choices.iter().flat_map(|choice| &choice.parts) {
        match &part.kind {
            PartKind::Text { text, .. }
            | PartKind::Reasoning { text, .. }
            | PartKind::Refusal(text) => {
                generated.add(text);
            }
            PartKind::ToolCall {
                name, arguments, ..
            } => {
                generated.add(name);
                generated.add(arguments);
            }
            _ => {}
        }
    }
    Usage {
        input: options.estimated_prompt_tokens,
        output: generated.tokens(),
        ..Usage::default()
    }
}

/// The blocks of one part: the part's block, and a block with its signature. `index` is the index of the first one.
pub(super) fn part_to_blocks(part: &Part, index: usize) -> Vec<Value> {
    let mut out = Vec::from_iter(part_to_block(part, index));
    let signature = match &part.kind {
        PartKind::Text { signature, .. } | PartKind::ToolCall { signature, .. } => {
            signature.as_ref()
        }
        _ => None,
    };
    out.extend(signature.map(signature_block));
    if let Some(Value::Object(block)) = out.first_mut() {
        write_extra_fields(&part.extra, block);
    }
    out
}

fn part_to_block(part: &Part, index: usize) -> Option<Value> {
    match &part.kind {
        PartKind::Text { text, .. } if text.is_empty() => None,
        PartKind::Text {
            text, citations, ..
        } => {
            let mut block = json!({"type": "text", "text": text});
            let citations: Vec<Value> = citations.iter().filter_map(write_citation).collect();
            if !citations.is_empty() {
                block["citations"] = Value::Array(citations);
            }
            Some(block)
        }
        PartKind::Refusal(text) => Some(json!({"type": "text", "text": text})),
        PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            ..
        } => Some(json!({
            "type": "tool_use",
            "id": client_call_id(id, index),
            "name": name,
            "input": arguments_to_input(arguments, *custom),
        })),
        PartKind::Reasoning {
            text, signature, ..
        } => Some(json!({
            "type": "thinking",
            "thinking": text,
            "signature": signature_for_client(signature.as_ref()),
        })),
        PartKind::RedactedReasoning(data) => Some(redacted_block(data)),
        PartKind::FormatSpecific { format, value } if *format == NAME => Some(value.clone()),
        PartKind::Image { source, .. } => {
            image_markdown(source).map(|text| json!({"type": "text", "text": text}))
        }
        PartKind::FormatSpecific { .. }
        | PartKind::Audio { .. }
        | PartKind::Video { .. }
        | PartKind::File { .. }
        | PartKind::ToolResult { .. } => None,
    }
}

/// The block of redacted thinking.
pub(super) fn redacted_block(data: &Opaque) -> Value {
    let data = match data.vendor == VENDOR {
        true => data.data.clone(),
        false => data.to_portable(),
    };
    json!({"type": "redacted_thinking", "data": data})
}

/// A generated image as Markdown text: the format has no block for it.
pub(super) fn image_markdown(source: &Source) -> Option<String> {
    let url = match source {
        Source::Url { url, .. } => url.clone(),
        Source::Base64 { media_type, data } => media::format_data_uri(media_type, data),
        Source::Text(_) | Source::FileId(_) => return None,
    };
    Some(format!("![image]({url})"))
}
