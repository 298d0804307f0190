//! A whole reply for a client.

use serde_json::{Map, Value, json};

use super::super::write::arguments_object;
use super::super::{NAME, finish, grounding, ids, logprobs, sign, usage};
use crate::format::Rendering;
use crate::hub::{Choice, Citation, Finish, Kind, Part, Reply, Source, Usage};

/// See [`crate::Format::write_reply`].
pub(in super::super) fn write(reply: &Reply, rendering: &Rendering<'_>) -> Vec<u8> {
    let is_reply = |choice: &&Choice| choice.finish != Finish::PromptBlocked;
    let candidates: Vec<Value> = reply
        .choices
        .iter()
        .filter(is_reply)
        .map(candidate)
        .collect();
    let own = reply.own.for_format(NAME);
    let mut out = Map::new();
    let blocked = candidates.is_empty();
    if !blocked {
        out.insert("candidates".to_owned(), Value::Array(candidates));
    }
    let feedback = own.and_then(|own| own.get("promptFeedback")).cloned();
    out.insert(
        "promptFeedback".to_owned(),
        feedback.unwrap_or_else(|| prompt_feedback(blocked)),
    );
    let counted = reply.usage.unwrap_or(Usage {
        input: rendering.prompt_estimate,
        ..Usage::default()
    });
    out.insert("usageMetadata".to_owned(), usage::write(&counted));
    out.insert("modelVersion".to_owned(), json!(rendering.model));
    let id = if reply.id.is_empty() {
        rendering.seed
    } else {
        &reply.id
    };
    out.insert("responseId".to_owned(), json!(id));
    for (name, value) in own
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "promptFeedback")
    {
        out.insert(name.clone(), value.clone());
    }
    crate::text::of_object(&out)
}

/// What is said of the prompt; `OTHER` where the reason is another vendor's.
pub(in super::super) fn prompt_feedback(blocked: bool) -> Value {
    match blocked {
        true => json!({"blockReason": "OTHER", "safetyRatings": []}),
        false => json!({"safetyRatings": []}),
    }
}

fn candidate(choice: &Choice) -> Value {
    let own = choice.own.for_format(NAME);
    let mut parts: Vec<Value> = Vec::with_capacity(choice.parts.len());
    let mut cited: Vec<(usize, &str, &Citation)> = Vec::new();
    for (at, hub) in choice.parts.iter().enumerate() {
        let is_last = at + 1 == choice.parts.len();
        if is_last && finish::is_cut(choice.finish) && is_half_a_call(hub) {
            continue;
        }
        let Some(value) = part(hub) else { continue };
        if let Kind::Text {
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
        // SDKs forget a turn without parts.
        parts.push(json!({"text": ""}));
    }
    let reason = own
        .and_then(|own| own.get(".finishReason"))
        .and_then(Value::as_str);
    let reason = reason.unwrap_or_else(|| finish::write(choice.finish));
    let mut out = Map::new();
    out.insert(
        "content".to_owned(),
        json!({"parts": parts, "role": "model"}),
    );
    out.insert("finishReason".to_owned(), json!(reason));
    out.insert("index".to_owned(), json!(choice.index));
    out.insert("safetyRatings".to_owned(), json!([]));
    let grounds = grounding::write(cited);
    out.extend(grounds.map(|grounds| ("groundingMetadata".to_owned(), grounds)));
    let tokens = choice.logprobs.as_ref().and_then(logprobs::write);
    out.extend(tokens.map(|tokens| ("logprobsResult".to_owned(), tokens)));
    for (name, value) in own
        .into_iter()
        .flatten()
        .filter(|(name, _)| !name.starts_with('.'))
    {
        out.insert(name.clone(), value.clone());
    }
    Value::Object(out)
}

fn is_half_a_call(part: &Part) -> bool {
    match &part.kind {
        Kind::ToolCall {
            arguments,
            custom: false,
            ..
        } if !arguments.is_empty() => {
            serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_err()
        }
        _ => false,
    }
}

/// A part for a client; none where this format has no such part.
pub(in super::super) fn part(part: &Part) -> Option<Value> {
    let mut value = match &part.kind {
        Kind::Text {
            text, signature, ..
        } => {
            if text.is_empty() && signature.is_none() {
                return None;
            }
            signed(
                json!({"text": text}),
                signature.as_ref().map(sign::for_client),
            )
        }
        Kind::Refusal(text) => json!({"text": text}),
        Kind::Reasoning {
            text, signature, ..
        } => {
            if text.is_empty() && signature.is_none() {
                return None;
            }
            let thought = json!({"text": text, "thought": true});
            signed(thought, signature.as_ref().map(sign::for_client))
        }
        Kind::Redacted(opaque) => signed(
            json!({"text": "", "thought": true}),
            Some(sign::redacted_for_client(opaque)),
        ),
        Kind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } => {
            let mut call = Map::new();
            if !ids::is_minted(id) {
                call.insert("id".to_owned(), json!(id));
            }
            call.insert("name".to_owned(), json!(name));
            call.insert("args".to_owned(), arguments_object(arguments, *custom));
            signed(
                json!({"functionCall": call}),
                signature.as_ref().map(sign::for_client),
            )
        }
        Kind::Image { source, .. }
        | Kind::Audio { source }
        | Kind::Video { source }
        | Kind::File { source, .. } => media(source),
        Kind::Foreign { format, value } if *format == NAME => value.clone(),
        Kind::Foreign { .. } | Kind::ToolResult { .. } => return None,
    };
    if let Value::Object(members) = &mut value {
        for (path, value) in part.own.for_format(NAME).into_iter().flatten() {
            super::super::fields::insert_at(members, path.trim_start_matches('.'), value.clone());
        }
    }
    Some(value)
}

fn signed(mut part: Value, signature: Option<String>) -> Value {
    if let Some(signature) = signature {
        part["thoughtSignature"] = json!(signature);
    }
    part
}

fn media(source: &Source) -> Value {
    match source {
        Source::Base64 { media_type, data } => {
            json!({"inlineData": {"mimeType": media_type, "data": data}})
        }
        Source::Text(text) => json!({"text": text}),
        Source::FileId(uri) => json!({"fileData": {"fileUri": uri}}),
        Source::Url {
            url,
            media_type: Some(media_type),
        } => {
            json!({"fileData": {"fileUri": url, "mimeType": media_type}})
        }
        Source::Url {
            url,
            media_type: None,
        } => json!({"fileData": {"fileUri": url}}),
    }
}
