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
    /// The signature of the open text, which is complete. Its end is held back until another part follows: its citations may come in a later chunk.
    text_signature: Option<Opaque>,
    finish: Option<FinishReason>,
    /// Visible text so far: citation offsets count its bytes.
    text: String,
    /// Grounding metadata that was received while no text was open.
    pending_grounding: Option<Value>,
}

/// The part that following text may be added to.
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
            if !choice.text.is_empty() {
                // The text ended before, for example because a call followed.
                choice.emit_citations(index, out);
            }
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
                if let Some(signature) = self.text_signature.take() {
                    // Grounding metadata in the chunk of the text that follows belongs to that text, unless it is empty.
                    if text.is_empty() {
                        self.emit_citations(choice, out);
                    }
                    self.open = OpenPart::Nothing;
                    out.push(Event::TextEnd {
                        choice,
                        signature: Some(signature),
                    });
                }
                self.switch_to(choice, OpenPart::Text, out);
                if !text.is_empty() {
                    self.text.push_str(&text);
                    self.open = OpenPart::Text;
                    out.push(Event::Text { choice, text });
                }
                if signature.is_some() {
                    self.open = OpenPart::Text;
                    self.text_signature = signature;
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

    /// Emits the events of a call; calls arrive complete.
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

    /// Ends the open part. `signature` is that of reasoning.
    fn end_open_part(&mut self, choice: u32, signature: Option<Opaque>, out: &mut Vec<Event>) {
        match std::mem::take(&mut self.open) {
            OpenPart::Nothing => {}
            OpenPart::Text => {
                self.emit_citations(choice, out);
                let signature = self.text_signature.take();
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
