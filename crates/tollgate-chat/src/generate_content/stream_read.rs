//! Reads an upstream's stream into hub events.
//!
//! Every chunk is a response object with the new parts. Older models send STOP on every chunk,
//! newer ones on one after the calls, so the finish is emitted only when the body ends.

use std::collections::BTreeMap;

use serde_json::Value;

use super::call_ids::CallIds;
use super::part_read::read_response_part;
use super::response_chunk::{Candidate, ResponseChunk};
use super::{finish, grounding, logprobs};
use crate::error::MalformedResponse;
use crate::format::StreamReader;
use crate::hub::{Event, FinishReason, Opaque, Part, PartKind};
use crate::sse::Decoder;

/// Reads one stream.
#[derive(Default)]
pub(crate) struct Reader {
    decoder: Decoder,
    state: State,
    /// The first error: returned again by every later call.
    error: Option<MalformedResponse>,
}

#[derive(Default)]
struct State {
    started: bool,
    blocked: bool,
    id: String,
    choices: BTreeMap<u32, ChoiceState>,
}

/// The state of one choice.
#[derive(Default)]
struct ChoiceState {
    ids: CallIds,
    calls: u32,
    open: OpenPart,
    finish: Option<FinishReason>,
    /// Visible text so far: citation offsets count its bytes.
    text: String,
    /// Grounding metadata that came before its text.
    pending_grounding: Option<Value>,
}

/// The part that text may still be added to.
#[derive(Default, PartialEq, Clone, Copy)]
enum OpenPart {
    #[default]
    Nothing,
    Text,
    Reasoning,
}

impl Reader {
    fn remember_error(
        &mut self,
        outcome: Result<(), MalformedResponse>,
    ) -> Result<(), MalformedResponse> {
        self.error = outcome.clone().err();
        outcome
    }

    fn fail_again(&self) -> Result<(), MalformedResponse> {
        self.error.clone().map_or(Ok(()), Err)
    }
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        self.fail_again()?;
        let state = &mut self.state;
        let outcome = self
            .decoder
            .push(bytes, |event| state.read_event(event.data, out));
        self.remember_error(outcome)
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        self.fail_again()?;
        let state = &mut self.state;
        let outcome = self
            .decoder
            .finish(|event| state.read_event(event.data, out))
            .and_then(|()| self.state.finish(out));
        self.remember_error(outcome)
    }
}

impl State {
    fn read_event(&mut self, data: &str, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        if data.trim() == "[DONE]" {
            // Not part of this format, but some upstreams send it.
            return Ok(());
        }
        let mut chunk = ResponseChunk::parse(data.as_bytes())?;
        if !self.started {
            self.started = true;
            self.id = chunk.response_id.take().unwrap_or_default();
            out.push(Event::Start {
                id: self.id.clone(),
                model: chunk.model_version.take().unwrap_or_default(),
                created: None,
                usage: None,
            });
        }
        self.blocked |= chunk.is_prompt_blocked();
        for candidate in chunk.candidates() {
            let index = candidate.index();
            let id = &self.id;
            let choice = self.choices.entry(index).or_insert_with(|| ChoiceState {
                ids: CallIds::for_response(&format!("{id} {index}")),
                ..ChoiceState::default()
            });
            choice.read_candidate(index, candidate, out)?;
        }
        out.extend(
            chunk
                .usage_metadata
                .map(|usage| Event::Usage(usage.to_usage())),
        );
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        if self.choices.is_empty() && self.blocked {
            out.push(Event::Finish {
                choice: 0,
                finish: FinishReason::PromptBlocked,
                stop_sequence: None,
            });
            return Ok(());
        }
        if self.choices.is_empty() || self.choices.values().any(|choice| choice.finish.is_none()) {
            return Err(MalformedResponse::Truncated);
        }
        for (index, mut choice) in std::mem::take(&mut self.choices) {
            choice.end_open_part(index, None, out);
            out.push(Event::Finish {
                choice: index,
                finish: choice
                    .finish
                    .unwrap_or_default()
                    .with_tool_calls(choice.calls > 0),
                stop_sequence: None,
            });
        }
        Ok(())
    }
}

impl ChoiceState {
    fn read_candidate(
        &mut self,
        choice: u32,
        mut candidate: Candidate,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        self.pending_grounding = candidate
            .grounding_metadata
            .take()
            .or(self.pending_grounding.take());
        for (at, value) in candidate.parts().into_iter().enumerate() {
            if let Some(part) = read_response_part(value, at, &mut self.ids)? {
                self.emit_part(choice, part, out);
            }
        }
        if self.open == OpenPart::Text {
            self.emit_citations(choice, out);
        }
        let tokens = candidate
            .logprobs_result
            .as_ref()
            .and_then(logprobs::read_logprobs);
        out.extend(tokens.map(|value| Event::Logprobs { choice, value }));
        if let Some(word) = candidate.finish_reason {
            let finish = finish::read_finish_reason(&word);
            self.finish = Some(
                self.finish
                    .map_or(finish, |before| finish::combine(before, finish)),
            );
        }
        Ok(())
    }

    fn emit_part(&mut self, choice: u32, part: Part, out: &mut Vec<Event>) {
        match part.kind {
            PartKind::Text {
                text, signature, ..
            } => {
                self.switch_to(choice, OpenPart::Text, out);
                if !text.is_empty() {
                    self.text.push_str(&text);
                    self.open = OpenPart::Text;
                    out.push(Event::Text { choice, text });
                }
                if signature.is_some() {
                    self.open = OpenPart::Text;
                    self.end_open_part(choice, signature, out);
                }
            }
            PartKind::Reasoning {
                text,
                signature,
                summary,
                ..
            } => {
                self.switch_to(choice, OpenPart::Reasoning, out);
                self.open = OpenPart::Reasoning;
                if !text.is_empty() {
                    out.push(Event::Reasoning {
                        choice,
                        text,
                        summary,
                    });
                }
                if signature.is_some() {
                    self.end_open_part(choice, signature, out);
                }
            }
            kind @ PartKind::ToolCall { .. } => {
                self.end_open_part(choice, None, out);
                self.emit_call(choice, kind, out);
            }
            PartKind::RedactedReasoning(data) => {
                self.end_open_part(choice, None, out);
                out.push(Event::RedactedReasoning { choice, data });
            }
            kind => {
                self.end_open_part(choice, None, out);
                let part = Part { kind, ..part };
                out.push(Event::Part { choice, part });
            }
        }
    }

    /// Calls arrive complete.
    fn emit_call(&mut self, choice: u32, kind: PartKind, out: &mut Vec<Event>) {
        let PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } = kind
        else {
            return;
        };
        let call = self.calls;
        self.calls += 1;
        out.extend([
            Event::ToolStart {
                choice,
                call,
                id,
                name,
                custom,
            },
            Event::ToolArguments {
                choice,
                call,
                json: arguments,
            },
            Event::ToolEnd {
                choice,
                call,
                signature,
            },
        ]);
    }

    /// Ends the open part unless it is `next`.
    fn switch_to(&mut self, choice: u32, next: OpenPart, out: &mut Vec<Event>) {
        if self.open != next {
            self.end_open_part(choice, None, out);
        }
    }

    /// Ends the open part.
    fn end_open_part(&mut self, choice: u32, signature: Option<Opaque>, out: &mut Vec<Event>) {
        match std::mem::take(&mut self.open) {
            OpenPart::Nothing => {}
            OpenPart::Text => {
                self.emit_citations(choice, out);
                out.push(Event::TextEnd { choice, signature });
            }
            OpenPart::Reasoning => out.push(Event::ReasoningEnd {
                choice,
                signature,
                id: None,
            }),
        }
    }

    fn emit_citations(&mut self, choice: u32, out: &mut Vec<Event>) {
        let Some(metadata) = self.pending_grounding.take() else {
            return;
        };
        let found = grounding::read_citations(&metadata, |_| Some(self.text.as_str()));
        out.extend(found.into_iter().map(|found| Event::Citation {
            choice,
            citation: found.citation,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Response, ResponseBuilder};
    use serde_json::json;

    fn read(chunks: &[Value]) -> Result<Vec<Event>, MalformedResponse> {
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        for chunk in chunks {
            reader.push(format!("data: {chunk}\r\n\r\n").as_bytes(), &mut events)?;
        }
        reader.finish(&mut events)?;
        Ok(events)
    }

    fn folded(events: &[Event]) -> Response {
        let mut fold = ResponseBuilder::default();
        events.iter().for_each(|event| fold.push(event));
        fold.build()
    }

    fn piece(parts: Value, finish: Value) -> Value {
        json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}], "responseId": "r1", "modelVersion": "m"})
    }

    #[test]
    fn calls_are_numbered_over_the_stream_and_a_late_stop_keeps_them() {
        let call = |name: &str| json!([{"functionCall": {"name": name, "args": {"a": 1}}}]);
        let events = read(&[
            piece(call("f"), Value::Null),
            piece(call("f"), Value::Null),
            piece(json!([{"text": ""}]), json!("STOP")),
        ])
        .unwrap();
        let starts: Vec<u32> = events
            .iter()
            .filter_map(|event| match event {
                Event::ToolStart { call, .. } => Some(*call),
                _ => None,
            })
            .collect();
        assert_eq!(starts, [0, 1]);
        let reply = folded(&events);
        assert_eq!(reply.choices[0].finish, FinishReason::ToolCall);
        assert_eq!(reply.choices[0].parts.len(), 2);
    }

    #[test]
    fn a_stop_on_every_chunk_finishes_only_once() {
        let events = read(&[
            piece(json!([{"text": "a"}]), json!("STOP")),
            piece(json!([{"text": "b"}]), json!("STOP")),
        ])
        .unwrap();
        let finishes = events
            .iter()
            .filter(|event| matches!(event, Event::Finish { .. }))
            .count();
        assert_eq!(finishes, 1);
        assert_eq!(folded(&events).choices[0].parts, [Part::text("ab")]);
    }

    #[test]
    fn error_chunks_and_truncated_streams_are_errors() {
        let error =
            json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
        assert!(
            matches!(read(&[error]), Err(MalformedResponse::Upstream(error)) if error.status == Some(503) && error.message == "overloaded")
        );
        assert_eq!(
            read(&[piece(json!([{"text": "a"}]), Value::Null)]),
            Err(MalformedResponse::Truncated)
        );
        assert_eq!(read(&[]), Err(MalformedResponse::Truncated));
        assert!(matches!(
            read(&[json!("x")]),
            Err(MalformedResponse::Invalid(_))
        ));
    }

    #[test]
    fn the_first_error_is_returned_by_every_later_call() {
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        let bytes = "data: {\"error\":{\"code\":500,\"message\":\"m\"}}\n\n";
        let error = reader.push(bytes.as_bytes(), &mut events).unwrap_err();
        let good = format!("data: {}\n\n", piece(json!([{"text": "a"}]), json!("STOP")));
        assert_eq!(
            reader.push(good.as_bytes(), &mut events),
            Err(error.clone())
        );
        assert_eq!(reader.finish(&mut events), Err(error));
        assert!(events.is_empty());
    }

    #[test]
    fn thinking_signatures_and_blocked_prompts_become_events() {
        let events = read(&[
            piece(json!([{"text": "Let me", "thought": true}]), Value::Null),
            piece(
                json!([{"text": " see", "thought": true}, {"text": "Hi"}]),
                Value::Null,
            ),
            piece(
                json!([{"text": "", "thoughtSignature": "c2ln"}]),
                json!("STOP"),
            ),
        ])
        .unwrap();
        let parts = &folded(&events).choices[0].parts;
        assert!(
            matches!(&parts[0].kind, PartKind::Reasoning { text, summary: true, .. } if text == "Let me see")
        );
        assert!(
            matches!(&parts[1].kind, PartKind::Text { text, signature: Some(s), .. } if text == "Hi" && s.data == "c2ln")
        );
        let blocked = read(&[json!({"promptFeedback": {"blockReason": "SAFETY"}})]).unwrap();
        assert!(matches!(
            blocked[1],
            Event::Finish {
                finish: FinishReason::PromptBlocked,
                ..
            }
        ));
    }

    #[test]
    fn citations_are_emitted_before_their_text_ends() {
        let mut last = piece(json!([{"text": "Zürich."}]), json!("STOP"));
        last["candidates"][0]["groundingMetadata"] = json!({
            "groundingChunks": [{"web": {"uri": "https://a.example"}}],
            "groundingSupports": [{"segment": {"startIndex": 3, "endIndex": 11}, "groundingChunkIndices": [0]}],
        });
        let reply = folded(&read(&[piece(json!([{"text": "In "}]), Value::Null), last]).unwrap());
        let PartKind::Text {
            text, citations, ..
        } = &reply.choices[0].parts[0].kind
        else {
            panic!()
        };
        assert_eq!(text, "In Zürich.");
        assert_eq!((citations[0].start, citations[0].end), (Some(3), Some(10)));
    }
}
