//! Writes a complete (non-streaming) response for a client.

use serde_json::{Map, Value, json};

use super::constants::NAME;
use super::part_write::write_part;
use super::{finish, grounding, logprobs, usage};
use crate::format::RenderOptions;
use crate::hub::{Choice, Citation, FinishReason, Part, PartKind, Response, Usage};

/// See [`crate::Format::write_response`].
pub(crate) fn write_response(reply: &Response, options: &RenderOptions<'_>) -> Vec<u8> {
    let is_not_blocked = |choice: &&Choice| choice.finish != FinishReason::PromptBlocked;
    let candidates: Vec<Value> = reply
        .choices
        .iter()
        .filter(is_not_blocked)
        .map(write_candidate)
        .collect();
    let extra = reply.extra.for_format(NAME);
    let mut out = Map::new();
    let blocked = candidates.is_empty();
    if !blocked {
        out.insert("candidates".to_owned(), Value::Array(candidates));
    }
    let feedback = extra.and_then(|extra| extra.get("promptFeedback")).cloned();
    out.insert(
        "promptFeedback".to_owned(),
        feedback.unwrap_or_else(|| prompt_feedback(blocked)),
    );
    let counted = reply.usage.unwrap_or(Usage {
        input: options.estimated_prompt_tokens,
        ..Usage::default()
    });
    out.insert("usageMetadata".to_owned(), usage::write_usage(&counted));
    out.insert("modelVersion".to_owned(), json!(options.model));
    let id = if reply.id.is_empty() {
        options.seed
    } else {
        &reply.id
    };
    out.insert("responseId".to_owned(), json!(id));
    for (name, value) in extra
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "promptFeedback")
    {
        out.insert(name.clone(), value.clone());
    }
    crate::json_text::object_to_vec(&out)
}

/// `promptFeedback`. The block reason is `OTHER`, because the actual reason is a value of another vendor.
pub(crate) fn prompt_feedback(blocked: bool) -> Value {
    match blocked {
        true => json!({"blockReason": "OTHER", "safetyRatings": []}),
        false => json!({"safetyRatings": []}),
    }
}

fn write_candidate(choice: &Choice) -> Value {
    let extra = choice.extra.for_format(NAME);
    let mut parts: Vec<Value> = Vec::with_capacity(choice.parts.len());
    let mut cited: Vec<(usize, &str, &Citation)> = Vec::new();
    for (at, hub) in choice.parts.iter().enumerate() {
        let is_last = at + 1 == choice.parts.len();
        if is_last && finish::is_truncated(choice.finish) && has_incomplete_arguments(hub) {
            continue;
        }
        let Some(value) = write_part(hub) else {
            continue;
        };
        if let PartKind::Text {
            text, citations, ..
        } = &hub.kind
        {
            cited.extend(
                citations
                    .iter()
                    .map(|citation| (parts.len(), text.as_str(), citation)),
            );
        }
        parts.push(value);
    }
    if parts.is_empty() {
        // SDKs leave a turn without parts out of the conversation.
        parts.push(json!({"text": ""}));
    }
    let reason = extra
        .and_then(|extra| extra.get(".finishReason"))
        .and_then(Value::as_str);
    let reason = reason.unwrap_or_else(|| finish::finish_reason_name(choice.finish));
    let mut out = Map::new();
    out.insert(
        "content".to_owned(),
        json!({"parts": parts, "role": "model"}),
    );
    out.insert("finishReason".to_owned(), json!(reason));
    out.insert("index".to_owned(), json!(choice.index));
    out.insert("safetyRatings".to_owned(), json!([]));
    let grounding_metadata = grounding::write_grounding(cited);
    out.extend(grounding_metadata.map(|metadata| ("groundingMetadata".to_owned(), metadata)));
    let tokens = choice.logprobs.as_ref().and_then(logprobs::write_logprobs);
    out.extend(tokens.map(|tokens| ("logprobsResult".to_owned(), tokens)));
    for (name, value) in extra
        .into_iter()
        .flatten()
        .filter(|(name, _)| !name.starts_with('.'))
    {
        out.insert(name.clone(), value.clone());
    }
    Value::Object(out)
}

fn has_incomplete_arguments(part: &Part) -> bool {
    match &part.kind {
        PartKind::ToolCall {
            arguments,
            custom: false,
            ..
        } if !arguments.is_empty() => {
            serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err()
        }
        _ => false,
    }
}
