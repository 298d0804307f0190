//! An upstream's stream into events.
//!
//! Every piece is a reply object with the new parts. Old models say STOP on every piece, new ones on one behind the calls, so a
//! finish is only told when the body ends: the strongest word that came.

use std::collections::BTreeMap;

use serde_json::Value;

use super::read::Calls;
use super::wire::{Candidate, Chunk};
use super::{finish, grounding, logprobs, reply};
use crate::error::Garbled;
use crate::format::StreamReader;
use crate::hub::{Event, Finish, Kind, Opaque, Part};
use crate::sse::Decoder;

/// Reads one stream.
#[derive(Default)]
pub(super) struct Reader {
    decoder: Decoder,
    state: State,
    /// A fault stays one, whatever comes after it.
    fault: Option<Garbled>,
}

#[derive(Default)]
struct State {
    started: bool,
    blocked: bool,
    id: String,
    choices: BTreeMap<u32, Reading>,
}

/// One choice.
#[derive(Default)]
struct Reading {
    ids: Calls,
    calls: u32,
    open: Open,
    finish: Option<Finish>,
    /// Visible text so far: citations are counted in its bytes.
    text: String,
    /// Where citations are, until a text stands to carry them.
    grounds: Option<Value>,
}

/// What may still grow.
#[derive(Default, PartialEq, Clone, Copy)]
enum Open {
    #[default]
    Nothing,
    Text,
    Reasoning,
}

impl Reader {
    fn check(&mut self, outcome: Result<(), Garbled>) -> Result<(), Garbled> {
        self.fault = outcome.clone().err();
        outcome
    }

    fn sound(&self) -> Result<(), Garbled> {
        self.fault.clone().map_or(Ok(()), Err)
    }
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), Garbled> {
        self.sound()?;
        let state = &mut self.state;
        let outcome = self
            .decoder
            .push(bytes, |event| state.take(event.data, out));
        self.check(outcome)
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), Garbled> {
        self.sound()?;
        let state = &mut self.state;
        let outcome = self
            .decoder
            .finish(|event| state.take(event.data, out))
            .and_then(|()| self.state.end(out));
        self.check(outcome)
    }
}

impl State {
    fn take(&mut self, data: &str, out: &mut Vec<Event>) -> Result<(), Garbled> {
        if data.trim() == "[DONE]" {
            // Not of this format, but some say it.
            return Ok(());
        }
        let mut chunk = Chunk::read(data.as_bytes())?;
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
        self.blocked |= chunk.is_blocked();
        for candidate in chunk.candidates() {
            let index = candidate.index();
            let id = &self.id;
            let reading = self.choices.entry(index).or_insert_with(|| Reading {
                ids: Calls::of_reply(&format!("{id} {index}")),
                ..Reading::default()
            });
            reading.take(index, candidate, out)?;
        }
        out.extend(
            chunk
                .usage_metadata
                .map(|usage| Event::Usage(usage.usage())),
        );
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), Garbled> {
        if self.choices.is_empty() && self.blocked {
            out.push(Event::Finish {
                choice: 0,
                finish: Finish::PromptBlocked,
                stop_sequence: None,
            });
            return Ok(());
        }
        if self.choices.is_empty()
            || self
                .choices
                .values()
                .any(|reading| reading.finish.is_none())
        {
            return Err(Garbled::BrokeOff);
        }
        for (index, mut reading) in std::mem::take(&mut self.choices) {
            reading.close(index, None, out);
            out.push(Event::Finish {
                choice: index,
                finish: reading
                    .finish
                    .unwrap_or_default()
                    .with_calls(reading.calls > 0),
                stop_sequence: None,
            });
        }
        Ok(())
    }
}

impl Reading {
    fn take(
        &mut self,
        choice: u32,
        mut candidate: Candidate,
        out: &mut Vec<Event>,
    ) -> Result<(), Garbled> {
        self.grounds = candidate.grounding_metadata.take().or(self.grounds.take());
        for (at, value) in candidate.parts().into_iter().enumerate() {
            if let Some(part) = reply::read_part(value, at, &mut self.ids)? {
                self.part(choice, part, out);
            }
        }
        if self.open == Open::Text {
            self.cite(choice, out);
        }
        let tokens = candidate.logprobs_result.as_ref().and_then(logprobs::read);
        out.extend(tokens.map(|value| Event::Logprobs { choice, value }));
        if let Some(word) = candidate.finish_reason {
            let finish = finish::read(&word);
            self.finish = Some(
                self.finish
                    .map_or(finish, |before| finish::stronger(before, finish)),
            );
        }
        Ok(())
    }

    fn part(&mut self, choice: u32, part: Part, out: &mut Vec<Event>) {
        match part.kind {
            Kind::Text {
                text, signature, ..
            } => {
                self.switch(choice, Open::Text, out);
                if !text.is_empty() {
                    self.text.push_str(&text);
                    self.open = Open::Text;
                    out.push(Event::Text { choice, text });
                }
                if signature.is_some() {
                    self.open = Open::Text;
                    self.close(choice, signature, out);
                }
            }
            Kind::Reasoning {
                text,
                signature,
                summary,
                ..
            } => {
                self.switch(choice, Open::Reasoning, out);
                self.open = Open::Reasoning;
                if !text.is_empty() {
                    out.push(Event::Reasoning {
                        choice,
                        text,
                        summary,
                    });
                }
                if signature.is_some() {
                    self.close(choice, signature, out);
                }
            }
            kind @ Kind::ToolCall { .. } => {
                self.close(choice, None, out);
                self.call(choice, kind, out);
            }
            Kind::Redacted(data) => {
                self.close(choice, None, out);
                out.push(Event::Redacted { choice, data });
            }
            kind => {
                self.close(choice, None, out);
                let part = Part { kind, ..part };
                out.push(Event::Part { choice, part });
            }
        }
    }

    /// A call comes whole.
    fn call(&mut self, choice: u32, kind: Kind, out: &mut Vec<Event>) {
        let Kind::ToolCall {
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

    /// Ends what is open if it is something else than `next`.
    fn switch(&mut self, choice: u32, next: Open, out: &mut Vec<Event>) {
        if self.open != next {
            self.close(choice, None, out);
        }
    }

    /// Ends what is open.
    fn close(&mut self, choice: u32, signature: Option<Opaque>, out: &mut Vec<Event>) {
        match std::mem::take(&mut self.open) {
            Open::Nothing => {}
            Open::Text => {
                self.cite(choice, out);
                out.push(Event::TextEnd { choice, signature });
            }
            Open::Reasoning => out.push(Event::ReasoningEnd {
                choice,
                signature,
                id: None,
            }),
        }
    }

    fn cite(&mut self, choice: u32, out: &mut Vec<Event>) {
        let Some(metadata) = self.grounds.take() else {
            return;
        };
        let found = grounding::read(&metadata, |_| Some(self.text.as_str()));
        out.extend(found.into_iter().map(|found| Event::Citation {
            choice,
            citation: found.citation,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{Fold, Reply};
    use serde_json::json;

    fn read(chunks: &[Value]) -> Result<Vec<Event>, Garbled> {
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        for chunk in chunks {
            reader.push(format!("data: {chunk}\r\n\r\n").as_bytes(), &mut events)?;
        }
        reader.finish(&mut events)?;
        Ok(events)
    }

    fn folded(events: &[Event]) -> Reply {
        let mut fold = Fold::default();
        events.iter().for_each(|event| fold.push(event));
        fold.reply()
    }

    fn piece(parts: Value, finish: Value) -> Value {
        json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish, "index": 0}], "responseId": "r1", "modelVersion": "m"})
    }

    #[test]
    fn trap_29_32_calls_are_counted_over_the_stream_and_a_late_stop_forgets_none() {
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
        assert_eq!(reply.choices[0].finish, Finish::ToolCall);
        assert_eq!(reply.choices[0].parts.len(), 2);
    }

    #[test]
    fn stop_on_every_piece_ends_nothing() {
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
    fn trap_40_errors_and_missing_ends_are_told() {
        let error =
            json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
        assert!(
            matches!(read(&[error]), Err(Garbled::Upstream(words)) if words.status == Some(503) && words.message == "overloaded")
        );
        assert_eq!(
            read(&[piece(json!([{"text": "a"}]), Value::Null)]),
            Err(Garbled::BrokeOff)
        );
        assert_eq!(read(&[]), Err(Garbled::BrokeOff));
        assert!(matches!(read(&[json!("x")]), Err(Garbled::Malformed(_))));
    }

    #[test]
    fn a_fault_stays_one() {
        let (mut reader, mut events) = (Reader::default(), Vec::new());
        let bytes = "data: {\"error\":{\"code\":500,\"message\":\"m\"}}\n\n";
        let fault = reader.push(bytes.as_bytes(), &mut events).unwrap_err();
        let good = format!("data: {}\n\n", piece(json!([{"text": "a"}]), json!("STOP")));
        assert_eq!(
            reader.push(good.as_bytes(), &mut events),
            Err(fault.clone())
        );
        assert_eq!(reader.finish(&mut events), Err(fault));
        assert!(events.is_empty());
    }

    #[test]
    fn thoughts_signatures_and_blocks_are_events() {
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
            matches!(&parts[0].kind, Kind::Reasoning { text, summary: true, .. } if text == "Let me see")
        );
        assert!(
            matches!(&parts[1].kind, Kind::Text { text, signature: Some(s), .. } if text == "Hi" && s.data == "c2ln")
        );
        let blocked = read(&[json!({"promptFeedback": {"blockReason": "SAFETY"}})]).unwrap();
        assert!(matches!(
            blocked[1],
            Event::Finish {
                finish: Finish::PromptBlocked,
                ..
            }
        ));
    }

    #[test]
    fn citations_come_before_the_text_ends() {
        let mut last = piece(json!([{"text": "Zürich."}]), json!("STOP"));
        last["candidates"][0]["groundingMetadata"] = json!({
            "groundingChunks": [{"web": {"uri": "https://a.example"}}],
            "groundingSupports": [{"segment": {"startIndex": 3, "endIndex": 11}, "groundingChunkIndices": [0]}],
        });
        let reply = folded(&read(&[piece(json!([{"text": "In "}]), Value::Null), last]).unwrap());
        let Kind::Text {
            text, citations, ..
        } = &reply.choices[0].parts[0].kind
        else {
            panic!()
        };
        assert_eq!(text, "In Zürich.");
        assert_eq!((citations[0].start, citations[0].end), (Some(3), Some(10)));
    }
}
