//! Reads an upstream's complete (non-streaming) response into the hub's form.

use serde_json::{Map, Value};

use super::call_ids::CallIds;
use super::constants::NAME;
use super::part_read::read_response_part;
use super::response_chunk::{Candidate, ResponseChunk};
use super::{finish, grounding, logprobs};
use crate::error::MalformedResponse;
use crate::hub::{Choice, ExtraFields, FinishReason, Part, PartKind, Response};

/// See [`crate::Format::read_response`].
pub(crate) fn read_response(body: &[u8]) -> Result<Response, MalformedResponse> {
    let mut chunk = ResponseChunk::parse(body)?;
    let candidates = chunk.candidates();
    let blocked = chunk.is_prompt_blocked();
    if candidates.is_empty() && !blocked {
        return Err(MalformedResponse::Invalid(
            "a response without candidates".to_owned(),
        ));
    }
    let id = chunk.response_id.unwrap_or_default();
    let mut choices = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        choices.push(read_choice(candidate, &id)?);
    }
    if choices.is_empty() {
        choices.push(Choice {
            finish: FinishReason::PromptBlocked,
            ..Choice::empty(0)
        });
    }
    let mut extra = chunk.rest;
    if let Some(feedback) = chunk.prompt_feedback.filter(has_content) {
        extra.insert("promptFeedback".to_owned(), Value::Object(feedback));
    }
    Ok(Response {
        id,
        model: chunk.model_version.unwrap_or_default(),
        created: None,
        choices,
        usage: chunk.usage_metadata.map(|usage| usage.to_usage()),
        service_tier: None,
        extra: ExtraFields::new(NAME, extra),
    })
}

/// Whether the feedback has anything but empty arrays.
fn has_content(feedback: &Map<String, Value>) -> bool {
    feedback
        .values()
        .any(|value| value.as_array().is_none_or(|list| !list.is_empty()))
}

fn read_choice(mut candidate: Candidate, id: &str) -> Result<Choice, MalformedResponse> {
    let index = candidate.index();
    let mut calls = CallIds::for_response(&format!("{id} {index}"));
    let mut parts: Vec<Part> = Vec::new();
    // The index of the hub part of each part in the JSON; `None` for empty texts, which the hub leaves out.
    let mut part_indices = Vec::new();
    for (at, value) in candidate.parts().into_iter().enumerate() {
        let read = read_response_part(value, at, &mut calls)?;
        part_indices.push(read.is_some().then_some(parts.len()));
        parts.extend(read);
    }
    if let Some(metadata) = &candidate.grounding_metadata {
        attach_citations(metadata, &part_indices, &mut parts);
    }
    let reason = candidate.finish_reason.as_deref().unwrap_or("STOP");
    let any_call = parts
        .iter()
        .any(|part| matches!(part.kind, PartKind::ToolCall { .. }));
    let finish = finish::read_finish_reason(reason).with_tool_calls(any_call);
    let mut extra = candidate.rest;
    extra.retain(|name, value| {
        name != "safetyRatings" || value.as_array().is_some_and(|list| !list.is_empty())
    });
    if finish::finish_reason_name(finish) != reason {
        extra.insert(".finishReason".to_owned(), Value::String(reason.to_owned()));
    }
    if let Some(metadata) = candidate.grounding_metadata {
        extra.insert("groundingMetadata".to_owned(), metadata);
    }
    Ok(Choice {
        index,
        parts,
        finish,
        stop_sequence: None,
        logprobs: candidate
            .logprobs_result
            .as_ref()
            .and_then(logprobs::read_logprobs),
        extra: ExtraFields::new(NAME, extra),
    })
}

/// Attaches citations to the text parts that they refer to.
fn attach_citations(metadata: &Value, part_indices: &[Option<usize>], parts: &mut [Part]) {
    let first_text = parts
        .iter()
        .position(|part| matches!(part.kind, PartKind::Text { .. }));
    let part_index = |wire: usize| {
        let there = part_indices.get(wire).copied().flatten();
        there
            .filter(|at| matches!(parts[*at].kind, PartKind::Text { .. }))
            .or(first_text)
    };
    let found: Vec<_> = {
        let text_of = |wire: usize| match &parts[part_index(wire)?].kind {
            PartKind::Text { text, .. } => Some(text.as_str()),
            _ => None,
        };
        let found = grounding::read_citations(metadata, text_of);
        found
            .into_iter()
            .map(|found| (part_index(found.part), found.citation))
            .collect()
    };
    for (position, citation) in found {
        let part = position.and_then(|at| parts.get_mut(at));
        if let Some(PartKind::Text { citations, .. }) = part.map(|part| &mut part.kind) {
            citations.push(citation);
        }
    }
}
