//! An upstream's stream, read.
//!
//! Upstreams of this format differ most in tool calls: index 0 for every call, empty ids, names sent again or as `""`, whole calls in
//! one chunk, chunks without an index. What the finish is, is told at the end of the stream: usage may come
//! before or after it, and some chunks say `stop` behind a call.

use serde_json::Value;

use super::reply::{content_parts, is_truthy, minted_id, read_citations, read_images};
use super::wire::finish_of;
use super::{error, usage};
use crate::error::Garbled;
use crate::format::StreamReader;
use crate::hub::{Event, Finish, Kind, Usage};
use crate::sse::Decoder;

/// More choices than anybody asks for.
const CHOICES_MAX: u64 = 128;

/// Reads one stream.
#[derive(Default)]
pub(super) struct Reader {
    decoder: Decoder,
    state: State,
}

#[derive(Default)]
struct State {
    started: bool,
    id: String,
    choices: Vec<Choice>,
    usage: Option<Usage>,
    done: bool,
}

struct Choice {
    index: u32,
    calls: Vec<Call>,
    /// Thinking was the last that came.
    thinks: bool,
    refuses: bool,
    finish: Option<Finish>,
}

/// A tool call as far as it has come.
struct Call {
    /// The upstream's own number; not always a good one.
    index: u64,
    id: String,
    name: String,
    arguments: String,
    ended: bool,
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), Garbled> {
        let state = &mut self.state;
        self.decoder
            .push(bytes, |event| state.chunk(event.data, out))
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), Garbled> {
        let state = &mut self.state;
        self.decoder.finish(|event| state.chunk(event.data, out))?;
        state.end(out)
    }
}

impl State {
    fn chunk(&mut self, data: &str, out: &mut Vec<Event>) -> Result<(), Garbled> {
        if self.done {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            return self.end(out);
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|_| Garbled::Malformed("an event is not JSON".to_owned()))?;
        if !chunk.is_object() {
            return Err(Garbled::Malformed("an event is no object".to_owned()));
        }
        if is_truthy(&chunk["error"]) {
            return Err(error::upstream(&chunk));
        }
        self.start(&chunk, out);
        for (at, choice) in chunk["choices"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            self.choice(at as u64, choice, out)?;
        }
        let counts = usage::read(&chunk["usage"]);
        if counts.is_some() && counts != self.usage {
            self.usage = counts;
            out.extend(counts.map(Event::Usage));
        }
        Ok(())
    }

    fn start(&mut self, chunk: &Value, out: &mut Vec<Event>) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        let word = |name: &str| chunk[name].as_str().unwrap_or_default().to_owned();
        self.id = word("id");
        out.push(Event::Start {
            id: self.id.clone(),
            model: word("model"),
            created: chunk["created"].as_f64().map(|at| at as i64),
            usage: None,
        });
    }

    fn choice(&mut self, at: u64, value: &Value, out: &mut Vec<Event>) -> Result<(), Garbled> {
        let index = value["index"].as_u64().unwrap_or(at);
        if index >= CHOICES_MAX {
            return Err(Garbled::Malformed(
                "a choice has an impossible index".to_owned(),
            ));
        }
        let index = index as u32;
        let place = match self.choices.iter().position(|choice| choice.index == index) {
            Some(place) => place,
            None => {
                self.choices.push(Choice {
                    index,
                    calls: Vec::new(),
                    thinks: false,
                    refuses: false,
                    finish: None,
                });
                self.choices.len() - 1
            }
        };
        let choice = &mut self.choices[place];
        choice.delta(&value["delta"], &self.id, out)?;
        if !value["logprobs"].is_null() {
            out.push(Event::Logprobs {
                choice: index,
                value: value["logprobs"].clone(),
            });
        }
        if let Some(reason) = value["finish_reason"]
            .as_str()
            .filter(|reason| !reason.is_empty())
        {
            choice.finish = Some(finish_of(reason));
        }
        Ok(())
    }

    /// The stream's end: `[DONE]`, or the body's.
    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), Garbled> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(());
        }
        let finished = self.choices.iter().all(|choice| choice.finish.is_some());
        if !finished || self.choices.is_empty() {
            return Err(Garbled::BrokeOff);
        }
        self.choices
            .iter_mut()
            .try_for_each(|choice| choice.end(out))
    }
}

impl Choice {
    fn delta(&mut self, delta: &Value, reply: &str, out: &mut Vec<Event>) -> Result<(), Garbled> {
        let choice = self.index;
        let thought = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|name| said(&delta[name]));
        if let Some(text) = thought {
            self.think(text, out);
        }
        match &delta["content"] {
            Value::String(text) if !text.is_empty() => {
                self.stop_thinking(out);
                out.push(Event::Text {
                    choice,
                    text: text.clone(),
                });
            }
            list @ Value::Array(_) => self.listed(list, out),
            _ => {}
        }
        if let Some(text) = said(&delta["refusal"]) {
            self.stop_thinking(out);
            self.refuses = true;
            out.push(Event::Refusal {
                choice,
                text: text.to_owned(),
            });
        }
        let sources = read_citations(&delta["annotations"]).into_iter();
        out.extend(sources.map(|citation| Event::Citation { choice, citation }));
        let images = read_images(&delta["images"]).into_iter();
        out.extend(images.map(|part| Event::Part { choice, part }));
        for fragment in delta["tool_calls"].as_array().into_iter().flatten() {
            self.stop_thinking(out);
            self.fragment(fragment, reply, out)?;
        }
        if delta["function_call"].is_object() {
            let fragment = serde_json::json!({"index": 0, "function": delta["function_call"]});
            self.fragment(&fragment, reply, out)?;
        }
        Ok(())
    }

    /// Content as a list of parts.
    fn listed(&mut self, list: &Value, out: &mut Vec<Event>) {
        let mut parts = Vec::new();
        content_parts(Some(list.clone()), &mut parts);
        for part in parts {
            match part.kind {
                Kind::Reasoning { text, .. } => self.think(&text, out),
                Kind::Text { text, .. } => {
                    self.stop_thinking(out);
                    let choice = self.index;
                    out.push(Event::Text { choice, text });
                }
                _ => out.push(Event::Part {
                    choice: self.index,
                    part,
                }),
            }
        }
    }

    fn think(&mut self, text: &str, out: &mut Vec<Event>) {
        self.thinks = true;
        out.push(Event::Reasoning {
            choice: self.index,
            text: text.to_owned(),
            summary: false,
        });
    }

    fn stop_thinking(&mut self, out: &mut Vec<Event>) {
        if std::mem::take(&mut self.thinks) {
            out.push(Event::ReasoningEnd {
                choice: self.index,
                signature: None,
                id: None,
            });
        }
    }

    fn fragment(
        &mut self,
        fragment: &Value,
        reply: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), Garbled> {
        let custom = fragment["custom"].is_object();
        let inner = &fragment[if custom { "custom" } else { "function" }];
        let id = fragment["id"].as_str().unwrap_or_default();
        let name = inner["name"].as_str().unwrap_or_default();
        let piece = match &inner[if custom { "input" } else { "arguments" }] {
            Value::String(text) => text.clone(),
            whole @ Value::Object(_) => whole.to_string(),
            _ => String::new(),
        };
        let at = match self.call_of(fragment["index"].as_u64(), id, name, &piece) {
            Some(at) => at,
            None => self.begin(fragment, id, name, custom, reply, out)?,
        };
        let call = &mut self.calls[at];
        if call.ended || piece.is_empty() {
            return Ok(());
        }
        call.arguments.push_str(&piece);
        out.push(Event::ToolArguments {
            choice: self.index,
            call: at as u32,
            json: piece,
        });
        Ok(())
    }

    /// The call that a fragment goes on with; none where it begins one. A new id together with a name begins one whatever
    /// its index says; a name alone does if it is another, or if the call it would go on with is complete.
    fn call_of(&self, index: Option<u64>, id: &str, name: &str, piece: &str) -> Option<usize> {
        let by_id = || {
            self.calls
                .iter()
                .position(|call| !id.is_empty() && call.id == id)
        };
        let by_index = |index: u64| self.calls.iter().rposition(|call| call.index == index);
        let at = match index {
            Some(index) => by_index(index),
            None => by_id().or(self.calls.len().checked_sub(1)),
        };
        let Some(at) = at else {
            // A number nobody began, but no name to begin it with: it belongs to the last.
            return if name.is_empty() {
                by_id().or(self.calls.len().checked_sub(1))
            } else {
                None
            };
        };
        let call = &self.calls[at];
        let begins = match (id.is_empty(), name.is_empty()) {
            (_, true) => false,
            (false, false) => id != call.id,
            (true, false) => name != call.name || (!piece.is_empty() && call.is_complete()),
        };
        (!begins).then_some(at)
    }

    fn begin(
        &mut self,
        fragment: &Value,
        id: &str,
        name: &str,
        custom: bool,
        reply: &str,
        out: &mut Vec<Event>,
    ) -> Result<usize, Garbled> {
        if name.is_empty() {
            return Err(Garbled::Malformed("a tool call has no name".to_owned()));
        }
        self.end_calls(out, Call::is_complete);
        let at = self.calls.len();
        let taken = self.calls.iter().any(|call| call.id == id);
        let id = if id.is_empty() || taken {
            minted_id(reply, self.index, at as u32, name)
        } else {
            id.to_owned()
        };
        out.push(Event::ToolStart {
            choice: self.index,
            call: at as u32,
            id: id.clone(),
            name: name.to_owned(),
            custom,
        });
        self.calls.push(Call {
            index: fragment["index"].as_u64().unwrap_or(at as u64),
            id,
            name: name.to_owned(),
            arguments: String::new(),
            ended: false,
        });
        Ok(at)
    }

    fn end_calls(&mut self, out: &mut Vec<Event>, which: impl Fn(&Call) -> bool) {
        for (at, call) in self.calls.iter_mut().enumerate() {
            if !call.ended && which(call) {
                call.ended = true;
                out.push(Event::ToolEnd {
                    choice: self.index,
                    call: at as u32,
                    signature: None,
                });
            }
        }
    }

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), Garbled> {
        self.stop_thinking(out);
        self.end_calls(out, |_| true);
        let finish = self
            .finish
            .unwrap_or_default()
            .with_calls(!self.calls.is_empty());
        let finish = match finish {
            Finish::End if self.refuses => Finish::Refusal,
            finish => finish,
        };
        out.push(Event::Finish {
            choice: self.index,
            finish,
            stop_sequence: None,
        });
        Ok(())
    }
}

impl Call {
    /// Whether its arguments are a whole object.
    fn is_complete(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

fn said(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
