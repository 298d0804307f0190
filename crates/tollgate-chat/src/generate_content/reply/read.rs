//! An upstream's reply into the hub's form.

use serde_json::{Map, Value};

use super::super::fields::Fields;
use super::super::read::{Calls, read_part};
use super::super::wire::{Candidate, Chunk};
use super::super::{NAME, finish, grounding, logprobs};
use crate::error::{Bad, Garbled};
use crate::hub::{Choice, Finish, Kind, Own, Part, Reply};

/// See [`crate::Format::read_reply`].
pub(in super::super) fn read(body: &[u8]) -> Result<Reply, Garbled> {
    let mut chunk = Chunk::read(body)?;
    let candidates = chunk.candidates();
    let blocked = chunk.is_blocked();
    if candidates.is_empty() && !blocked {
        return Err(Garbled::Malformed("a reply without candidates".to_owned()));
    }
    let id = chunk.response_id.unwrap_or_default();
    let mut choices = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        choices.push(choice(candidate, &id)?);
    }
    if choices.is_empty() {
        choices.push(Choice {
            finish: Finish::PromptBlocked,
            ..Choice::empty(0)
        });
    }
    let mut own = chunk.rest;
    if let Some(feedback) = chunk.prompt_feedback.filter(says_something) {
        own.insert("promptFeedback".to_owned(), Value::Object(feedback));
    }
    Ok(Reply {
        id,
        model: chunk.model_version.unwrap_or_default(),
        created: None,
        choices,
        usage: chunk.usage_metadata.map(|usage| usage.usage()),
        service_tier: None,
        own: Own::of(NAME, own),
    })
}

/// Whether there is more in it than an empty list of ratings.
fn says_something(feedback: &Map<String, Value>) -> bool {
    feedback
        .values()
        .any(|value| value.as_array().is_none_or(|list| !list.is_empty()))
}

fn choice(mut candidate: Candidate, id: &str) -> Result<Choice, Garbled> {
    let index = candidate.index();
    let mut calls = Calls::of_reply(&format!("{id} {index}"));
    let mut parts: Vec<Part> = Vec::new();
    // Where each part of the wire is among ours: empty texts are none of them.
    let mut places = Vec::new();
    for (at, value) in candidate.parts().into_iter().enumerate() {
        let read = part(value, at, &mut calls)?;
        places.push(read.is_some().then_some(parts.len()));
        parts.extend(read);
    }
    if let Some(metadata) = &candidate.grounding_metadata {
        cite(metadata, &places, &mut parts);
    }
    let word = candidate.finish_reason.as_deref().unwrap_or("STOP");
    let any_call = parts
        .iter()
        .any(|part| matches!(part.kind, Kind::ToolCall { .. }));
    let finish = finish::read(word).with_calls(any_call);
    let mut own = candidate.rest;
    own.retain(|name, value| {
        name != "safetyRatings" || value.as_array().is_some_and(|list| !list.is_empty())
    });
    if finish::write(finish) != word {
        own.insert(".finishReason".to_owned(), Value::String(word.to_owned()));
    }
    if let Some(metadata) = candidate.grounding_metadata {
        own.insert("groundingMetadata".to_owned(), metadata);
    }
    Ok(Choice {
        index,
        parts,
        finish,
        stop_sequence: None,
        logprobs: candidate.logprobs_result.as_ref().and_then(logprobs::read),
        own: Own::of(NAME, own),
    })
}

/// A part of a reply. Missing arguments are an empty object there.
pub(in super::super) fn part(
    value: Value,
    at: usize,
    calls: &mut Calls,
) -> Result<Option<Part>, Garbled> {
    let malformed =
        |bad: Bad| Garbled::Malformed(format!("a part of the reply is malformed: {}", bad.field));
    let fields = Fields::of(value, format!("parts[{at}]")).map_err(malformed)?;
    let mut part = match fields.is_empty() {
        true => return Ok(None),
        false => read_part(fields, calls).map_err(malformed)?,
    };
    if let Some(Part {
        kind: Kind::ToolCall { arguments, .. },
        ..
    }) = &mut part
        && arguments.is_empty()
    {
        arguments.push_str("{}");
    }
    Ok(part)
}

/// Puts citations on the texts that they are in.
fn cite(metadata: &Value, places: &[Option<usize>], parts: &mut [Part]) {
    let first_text = parts
        .iter()
        .position(|part| matches!(part.kind, Kind::Text { .. }));
    let place_of = |wire: usize| {
        let there = places.get(wire).copied().flatten();
        there
            .filter(|at| matches!(parts[*at].kind, Kind::Text { .. }))
            .or(first_text)
    };
    let found: Vec<_> = {
        let text_of = |wire: usize| match &parts[place_of(wire)?].kind {
            Kind::Text { text, .. } => Some(text.as_str()),
            _ => None,
        };
        let found = grounding::read(metadata, text_of);
        found
            .into_iter()
            .map(|found| (place_of(found.part), found.citation))
            .collect()
    };
    for (place, citation) in found {
        let part = place.and_then(|at| parts.get_mut(at));
        if let Some(Kind::Text { citations, .. }) = part.map(|part| &mut part.kind) {
            citations.push(citation);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Usage;
    use serde_json::json;

    fn of(value: Value) -> Result<Reply, Garbled> {
        read(value.to_string().as_bytes())
    }

    #[test]
    fn trap_29_a_call_is_told_from_the_parts_not_from_the_word() {
        let call = json!({"functionCall": {"name": "f"}});
        for (word, finish) in [
            ("STOP", Finish::ToolCall),
            ("OTHER", Finish::ToolCall),
            ("MAX_TOKENS", Finish::Length),
            ("SAFETY", Finish::Refusal),
        ] {
            let reply =
                of(json!({"candidates": [{"content": {"parts": [call]}, "finishReason": word}]}))
                    .unwrap();
            assert_eq!(reply.choices[0].finish, finish, "{word}");
            let Kind::ToolCall { id, arguments, .. } = &reply.choices[0].parts[0].kind else {
                panic!()
            };
            assert!(!id.is_empty());
            assert_eq!(arguments, "{}");
        }
    }

    #[test]
    fn a_blocked_prompt_is_a_reply_and_nothing_at_all_is_none() {
        let reply = of(json!({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 4}})).unwrap();
        assert_eq!(reply.choices.len(), 1);
        assert_eq!(reply.choices[0].finish, Finish::PromptBlocked);
        assert_eq!(
            reply.usage,
            Some(Usage {
                input: 4,
                ..Usage::default()
            })
        );
        assert!(matches!(of(json!({})), Err(Garbled::Malformed(_))));
        assert!(matches!(of(json!([])), Err(Garbled::Malformed(_))));
        assert!(
            matches!(of(json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}})), Err(Garbled::Upstream(words)) if words.status == Some(503))
        );
    }

    #[test]
    fn candidates_may_lack_content() {
        for candidate in [
            json!({}),
            json!({"content": {}}),
            json!({"content": {"parts": null}}),
            json!({"content": {"parts": [{}, {"text": ""}]}}),
        ] {
            let mut candidate = candidate;
            candidate["finishReason"] = json!("MAX_TOKENS");
            let reply = of(json!({"candidates": [candidate]})).unwrap();
            assert_eq!(reply.choices[0].finish, Finish::Length);
            assert!(reply.choices[0].parts.is_empty());
        }
    }

    #[test]
    fn citations_sit_on_their_text() {
        let reply = of(json!({"candidates": [{
            "content": {"parts": [{"text": "hm", "thought": true}, {"text": "Zürich."}]}, "finishReason": "STOP",
            "groundingMetadata": {
                "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
                "groundingSupports": [{"segment": {"partIndex": 1, "endIndex": 8}, "groundingChunkIndices": [0]}],
            },
        }]})).unwrap();
        let Kind::Text { citations, .. } = &reply.choices[0].parts[1].kind else {
            panic!()
        };
        assert_eq!((citations[0].start, citations[0].end), (Some(0), Some(7)));
    }
}
