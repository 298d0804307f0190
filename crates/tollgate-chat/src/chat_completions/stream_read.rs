//! Reads an upstream's stream.
//!
//! Upstreams differ most in tool calls: index 0 for every call, empty ids, names repeated or `""`, complete calls in one chunk, chunks
//! without an index. The finish event is emitted only at the end of the stream: usage may come before or after `finish_reason`, and
//! some upstreams report `stop` after a tool call.

use serde_json::Value;

use super::error::{self, is_truthy};
use super::finish::finish_from_reason;
use super::ids::generate_call_id;
use super::images::read_images;
use super::response_read::{read_citations, read_content_parts};
use super::usage;
use crate::error::MalformedResponse;
use crate::format::StreamReader;
use crate::hub::{Event, FinishReason, PartKind, Usage};
use crate::sse::Decoder;

/// Choices with this index or a higher one are rejected.
const MAX_CHOICES: u64 = 128;

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
    ended: bool,
}

struct Choice {
    index: u32,
    calls: Vec<Call>,
    /// Whether the last piece was reasoning.
    in_reasoning: bool,
    has_refusal: bool,
    finish: Option<FinishReason>,
}

/// A tool call, as far as it was received.
struct Call {
    /// The upstream's index of the call; not always unique.
    index: u64,
    id: String,
    name: String,
    arguments: String,
    ended: bool,
}

impl StreamReader for Reader {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let state = &mut self.state;
        self.decoder
            .push(bytes, |event| state.read_chunk(event.data, out))
    }

    fn finish(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        let state = &mut self.state;
        self.decoder
            .finish(|event| state.read_chunk(event.data, out))?;
        state.end(out)
    }
}

impl State {
    fn read_chunk(&mut self, data: &str, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        if self.ended {
            return Ok(());
        }
        if data.trim() == "[DONE]" {
            return self.end(out);
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|_| MalformedResponse::Invalid("an event is not JSON".to_owned()))?;
        if !chunk.is_object() {
            return Err(MalformedResponse::Invalid(
                "an event is not an object".to_owned(),
            ));
        }
        if is_truthy(&chunk["error"]) {
            return Err(error::read_inline_error(&chunk));
        }
        self.start(&chunk, out);
        for (at, choice) in chunk["choices"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            self.read_choice(at as u64, choice, out)?;
        }
        let counts = usage::read_usage(&chunk["usage"]);
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

    fn read_choice(
        &mut self,
        default_index: u64,
        value: &Value,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let index = value["index"].as_u64().unwrap_or(default_index);
        if index >= MAX_CHOICES {
            return Err(MalformedResponse::Invalid(
                "a choice has an impossible index".to_owned(),
            ));
        }
        let index = index as u32;
        let at = match self.choices.iter().position(|choice| choice.index == index) {
            Some(at) => at,
            None => {
                self.choices.push(Choice {
                    index,
                    calls: Vec::new(),
                    in_reasoning: false,
                    has_refusal: false,
                    finish: None,
                });
                self.choices.len() - 1
            }
        };
        let choice = &mut self.choices[at];
        choice.read_delta(&value["delta"], &self.id, out)?;
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
            choice.finish = Some(finish_from_reason(reason));
        }
        Ok(())
    }

    /// Handles the end of the stream, by `[DONE]` or by the end of the body.
    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        let finished = self.choices.iter().all(|choice| choice.finish.is_some());
        if !finished || self.choices.is_empty() {
            return Err(MalformedResponse::Truncated);
        }
        self.choices
            .iter_mut()
            .try_for_each(|choice| choice.end(out))
    }
}

impl Choice {
    fn read_delta(
        &mut self,
        delta: &Value,
        response_id: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let choice = self.index;
        let reasoning = ["reasoning_content", "reasoning"]
            .into_iter()
            .find_map(|name| non_empty_text(&delta[name]));
        if let Some(text) = reasoning {
            self.push_reasoning(text, out);
        }
        match &delta["content"] {
            Value::String(text) if !text.is_empty() => {
                self.end_reasoning(out);
                out.push(Event::Text {
                    choice,
                    text: text.clone(),
                });
            }
            list @ Value::Array(_) => self.read_content_list(list, out),
            _ => {}
        }
        if let Some(text) = non_empty_text(&delta["refusal"]) {
            self.end_reasoning(out);
            self.has_refusal = true;
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
            self.end_reasoning(out);
            self.read_call_fragment(fragment, response_id, out)?;
        }
        if delta["function_call"].is_object() {
            let fragment = serde_json::json!({"index": 0, "function": delta["function_call"]});
            self.read_call_fragment(&fragment, response_id, out)?;
        }
        Ok(())
    }

    /// Reads content that is a list of parts.
    fn read_content_list(&mut self, list: &Value, out: &mut Vec<Event>) {
        let mut parts = Vec::new();
        read_content_parts(Some(list.clone()), &mut parts);
        for part in parts {
            match part.kind {
                PartKind::Reasoning { text, .. } => self.push_reasoning(&text, out),
                PartKind::Text { text, .. } => {
                    self.end_reasoning(out);
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

    fn push_reasoning(&mut self, text: &str, out: &mut Vec<Event>) {
        self.in_reasoning = true;
        out.push(Event::Reasoning {
            choice: self.index,
            text: text.to_owned(),
            summary: false,
        });
    }

    fn end_reasoning(&mut self, out: &mut Vec<Event>) {
        if std::mem::take(&mut self.in_reasoning) {
            out.push(Event::ReasoningEnd {
                choice: self.index,
                signature: None,
                id: None,
            });
        }
    }

    fn read_call_fragment(
        &mut self,
        fragment: &Value,
        response_id: &str,
        out: &mut Vec<Event>,
    ) -> Result<(), MalformedResponse> {
        let custom = fragment["custom"].is_object();
        let inner = &fragment[if custom { "custom" } else { "function" }];
        let id = fragment["id"].as_str().unwrap_or_default();
        let name = inner["name"].as_str().unwrap_or_default();
        let piece = match &inner[if custom { "input" } else { "arguments" }] {
            Value::String(text) => text.clone(),
            object @ Value::Object(_) => object.to_string(),
            _ => String::new(),
        };
        let at = match self.find_call(fragment["index"].as_u64(), id, name, &piece) {
            Some(at) => at,
            None => self.begin_call(fragment, id, name, custom, response_id, out)?,
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

    /// The call that a fragment continues. `None` if the fragment begins a call: a new id with a name always begins one, whatever the index; a name
    /// without a new id does if it differs from the call's name or if that call is complete.
    fn find_call(&self, index: Option<u64>, id: &str, name: &str, piece: &str) -> Option<usize> {
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
            // The index is unknown, and there is no name to begin a call with: the fragment continues the last call.
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

    fn begin_call(
        &mut self,
        fragment: &Value,
        id: &str,
        name: &str,
        custom: bool,
        response_id: &str,
        out: &mut Vec<Event>,
    ) -> Result<usize, MalformedResponse> {
        if name.is_empty() {
            return Err(MalformedResponse::Invalid(
                "a tool call has no name".to_owned(),
            ));
        }
        self.end_calls(out, Call::is_complete);
        let at = self.calls.len();
        let is_used = self.calls.iter().any(|call| call.id == id);
        let id = if id.is_empty() || is_used {
            generate_call_id(response_id, self.index, at as u32, name)
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

    fn end(&mut self, out: &mut Vec<Event>) -> Result<(), MalformedResponse> {
        self.end_reasoning(out);
        self.end_calls(out, |_| true);
        let finish = self
            .finish
            .unwrap_or_default()
            .with_tool_calls(!self.calls.is_empty());
        let finish = match finish {
            FinishReason::EndTurn if self.has_refusal => FinishReason::Refusal,
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
    /// Whether its arguments are a complete JSON object.
    fn is_complete(&self) -> bool {
        self.arguments.trim_end().ends_with('}')
            && serde_json::from_str::<serde::de::IgnoredAny>(&self.arguments).is_ok()
    }
}

fn non_empty_text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}
