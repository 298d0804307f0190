//! Removes thoughts (the model's reasoning as text) that the client did not request from translated responses.
//!
//! Signatures of reasoning stay in the responses format, whose clients send them back as `encrypted_content`. Clients of the other formats do not
//! need them: the gateway stores what their tool loops need (docs/chat.md).

use crate::format::Format;
use crate::hub::{Effort, Event, PartKind, Request, Response};

/// Whether the client requests thoughts: `thinking` (messages), `includeThoughts` (generate-content), a reasoning summary (responses), any reasoning
/// at all in chat-completions, which has no field for it.
pub fn are_requested(request: &Request) -> bool {
    let Some(reasoning) = &request.reasoning else {
        return false;
    };
    match reasoning.display.as_deref() {
        Some("omitted" | "none") => false,
        Some(_) => true,
        None => {
            let is_thinking_set = reasoning.adaptive
                || reasoning.budget.is_some()
                || reasoning.extra.names_unknown_to("").next().is_some();
            request.client_format.shows_budgeted_thoughts
                && is_thinking_set
                && reasoning.as_effort() != Some(Effort::None)
        }
    }
}

/// Removes thoughts from the events of a response in `format`.
pub fn hide_in_events(events: &mut Vec<Event>, format: &dyn Format) {
    let keeps_signatures = format.keeps_reasoning_signatures();
    events.retain(|event| match event {
        Event::Reasoning { .. } => false,
        Event::ReasoningEnd { signature, .. } => keeps_signatures && signature.is_some(),
        Event::RedactedReasoning { .. } => keeps_signatures,
        _ => true,
    });
}

/// Removes thoughts from a complete response in `format`.
pub fn hide_in_response(response: &mut Response, format: &dyn Format) {
    let keeps_signatures = format.keeps_reasoning_signatures();
    for choice in &mut response.choices {
        choice.parts.retain_mut(|part| match &mut part.kind {
            PartKind::Reasoning {
                text, signature, ..
            } => {
                text.clear();
                keeps_signatures && signature.is_some()
            }
            PartKind::RedactedReasoning(_) => keeps_signatures,
            _ => true,
        });
    }
}
