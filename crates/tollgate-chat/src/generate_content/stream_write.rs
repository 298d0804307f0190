//! A stream for a client.
//!
//! Every event is one line, `data: ` and a reply object, and an empty line: SDKs take no comments, no event names, no `[DONE]`, and
//! a `data:` without its space is an error. Every object has a candidate with a part, else SDKs forget the turn. Finish and usage stand
//! on the last object, which is written by [`StreamWriter::end`] alone.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::reply::{prompt_feedback, write_part};
use super::{error, finish, grounding, logprobs, sign, usage};
use crate::error::WireError;
use crate::format::{Rendering, StreamWriter};
use crate::hub::{Citation, Event, Finish, Kind, Opaque, Part, Usage};

/// Writes one stream.
pub(super) struct Writer {
    framing: Framing,
    /// `,"modelVersion":…,"responseId":…}`, the end of every object.
    tail: Vec<u8>,
    model: String,
    id: String,
    usage: Usage,
    choices: BTreeMap<u32, Choice>,
    has_content: bool,
}

#[derive(Default)]
struct Choice {
    /// Calls whose arguments are not complete, by number.
    calls: BTreeMap<u32, Call>,
    /// A call that ended with arguments that are no object: if the reply was cut there, it is none.
    doubtful: Option<(Call, Option<Opaque>)>,
    finish: Option<Finish>,
    /// Visible text and what is cited in it: offsets are bytes here.
    text: String,
    citations: Vec<Citation>,
}

struct Call {
    id: String,
    name: String,
    arguments: String,
    custom: bool,
}

/// Choices that nobody asked for are not worth memory.
const MOST_CHOICES: u32 = 127;

impl Writer {
    pub(super) fn new(rendering: &Rendering<'_>) -> Self {
        let mut writer = Self {
            framing: Framing::new(rendering.json_array),
            tail: Vec::new(),
            model: rendering.model.to_owned(),
            id: rendering.seed.to_owned(),
            usage: Usage {
                input: rendering.prompt_estimate,
                ..Usage::default()
            },
            choices: BTreeMap::new(),
            has_content: false,
        };
        writer.make_tail();
        writer
    }

    fn make_tail(&mut self) {
        let rest = json!({"modelVersion": self.model, "responseId": self.id}).to_string();
        self.tail = rest.into_bytes();
        if let Some(brace) = self.tail.first_mut() {
            *brace = b',';
        }
    }

    /// One object with one part of one choice; `part` writes the part, `beside` what stands beside it.
    fn chunk(
        &mut self,
        choice: u32,
        part: impl FnOnce(&mut Vec<u8>),
        beside: &str,
        out: &mut Vec<u8>,
    ) {
        self.has_content = true;
        self.framing.begin(out);
        out.extend_from_slice(br#"{"candidates":[{"content":{"parts":["#);
        part(out);
        out.extend_from_slice(br#"],"role":"model"},"index":"#);
        out.extend_from_slice(choice.to_string().as_bytes());
        out.extend_from_slice(beside.as_bytes());
        out.extend_from_slice(b"}]");
        out.extend_from_slice(&self.tail);
        self.framing.end(out);
    }

    fn text(&mut self, choice: u32, text: &str, thought: bool, out: &mut Vec<u8>) {
        let part = |out: &mut Vec<u8>| {
            out.extend_from_slice(br#"{"text":"#);
            // Writing text to a Vec does not fail.
            let _ = serde_json::to_writer(&mut *out, text);
            out.extend_from_slice(if thought {
                br#","thought":true}"#
            } else {
                b"}"
            });
        };
        self.chunk(choice, part, "", out);
    }

    fn value(&mut self, choice: u32, value: &Value, out: &mut Vec<u8>) {
        self.chunk(
            choice,
            |out| out.extend_from_slice(value.to_string().as_bytes()),
            "",
            out,
        );
    }

    fn part(&mut self, choice: u32, part: &Part, out: &mut Vec<u8>) {
        if let Some(value) = write_part(part) {
            self.value(choice, &value, out);
        }
    }

    /// A signature alone, in a part without text.
    fn signature(&mut self, choice: u32, thought: bool, signature: &Opaque, out: &mut Vec<u8>) {
        let mut value = json!({"text": "", "thoughtSignature": sign::for_client(signature)});
        if thought {
            value["thought"] = json!(true);
        }
        self.value(choice, &value, out);
    }

    /// A call goes out whole.
    fn call(&mut self, choice: u32, call: Call, signature: Option<Opaque>, out: &mut Vec<u8>) {
        let kind = Kind::ToolCall {
            id: call.id,
            name: call.name,
            arguments: call.arguments,
            custom: call.custom,
            signature,
        };
        self.part(choice, &Part::of(kind), out);
    }

    /// What happens in one choice.
    fn in_choice(&mut self, event: &Event, index: u32, out: &mut Vec<u8>) {
        let choice = self.choices.entry(index).or_default();
        if let Some((call, signature)) = choice.doubtful.take()
            && !is_cut(event)
        {
            self.call(index, call, signature, out);
        }
        let choice = self.choices.entry(index).or_default();
        match event {
            Event::Text { text, .. } | Event::Refusal { text, .. } if !text.is_empty() => {
                choice.text.push_str(text);
                self.text(index, text, false, out);
            }
            Event::Reasoning { text, .. } if !text.is_empty() => self.text(index, text, true, out),
            Event::TextEnd {
                signature: Some(signature),
                ..
            } => self.signature(index, false, signature, out),
            Event::ReasoningEnd {
                signature: Some(signature),
                ..
            } => {
                self.signature(index, true, signature, out);
            }
            Event::Redacted { data, .. } => {
                self.part(index, &Part::of(Kind::Redacted(data.clone())), out);
            }
            Event::Part { part, .. } => self.part(index, part, out),
            Event::Citation { citation, .. } => choice.citations.push(citation.clone()),
            Event::Logprobs { value, .. } => {
                if let Some(tokens) = logprobs::write(value) {
                    let beside = format!(r#","logprobsResult":{tokens}"#);
                    self.chunk(
                        index,
                        |out| out.extend_from_slice(br#"{"text":""}"#),
                        &beside,
                        out,
                    );
                }
            }
            Event::ToolStart { .. } | Event::ToolArguments { .. } | Event::ToolEnd { .. } => {
                self.in_call(event, index, out);
            }
            Event::Finish { finish, .. } => {
                choice.finish = Some(*finish);
                // A call that was cut off is none.
                choice.calls.clear();
            }
            _ => {}
        }
    }

    /// What happens in one call of a choice.
    fn in_call(&mut self, event: &Event, index: u32, out: &mut Vec<u8>) {
        let choice = self.choices.entry(index).or_default();
        match event {
            Event::ToolStart {
                call,
                id,
                name,
                custom,
                ..
            } => {
                let begun = Call {
                    id: id.clone(),
                    name: name.clone(),
                    arguments: String::new(),
                    custom: *custom,
                };
                choice.calls.entry(*call).or_insert(begun);
            }
            Event::ToolArguments { call, json, .. } => {
                if let Some(call) = choice.calls.get_mut(call) {
                    call.arguments.push_str(json);
                }
            }
            Event::ToolEnd {
                call, signature, ..
            } => {
                let Some(call) = choice.calls.remove(call) else {
                    return;
                };
                if call.is_whole() {
                    self.call(index, call, signature.clone(), out);
                } else {
                    choice.doubtful = Some((call, signature.clone()));
                }
            }
            _ => {}
        }
    }

    /// The last object: every choice with its finish, and the usage.
    fn last(&mut self) -> Value {
        let choices = std::mem::take(&mut self.choices);
        let blocked = !self.has_content
            && choices
                .values()
                .any(|choice| choice.finish == Some(Finish::PromptBlocked));
        let mut out = Map::new();
        if blocked {
            out.insert("promptFeedback".to_owned(), prompt_feedback(true));
        } else {
            let mut candidates: Vec<Value> = choices
                .iter()
                .map(|(at, choice)| choice.last(*at))
                .collect();
            if candidates.is_empty() {
                candidates.push(Choice::default().last(0));
            }
            out.insert("candidates".to_owned(), Value::Array(candidates));
        }
        out.insert("usageMetadata".to_owned(), usage::write(&self.usage));
        out.insert("modelVersion".to_owned(), json!(self.model));
        out.insert("responseId".to_owned(), json!(self.id));
        Value::Object(out)
    }
}

impl Choice {
    fn last(&self, index: u32) -> Value {
        let reason = finish::write(self.finish.unwrap_or_default());
        let content = json!({"parts": [{"text": ""}], "role": "model"});
        let mut out = json!({"content": content, "finishReason": reason, "index": index});
        let cited = self
            .citations
            .iter()
            .map(|citation| (0, self.text.as_str(), citation));
        if let Some(grounds) = grounding::write(cited) {
            out["groundingMetadata"] = grounds;
        }
        out
    }
}

impl StreamWriter for Writer {
    fn write(&mut self, event: &Event, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        if let Some(index) = choice_of(event) {
            let finished = self
                .choices
                .get(&index)
                .is_some_and(|choice| choice.finish.is_some());
            if !finished && index <= MOST_CHOICES {
                self.in_choice(event, index, out);
            }
            return;
        }
        match event {
            Event::Usage(usage) => self.usage = *usage,
            // The id is the same on every object, so it is too late once one is out.
            Event::Start { id, usage, .. } if !self.has_content => {
                self.usage = usage.unwrap_or(self.usage);
                if !id.is_empty() {
                    self.id.clone_from(id);
                    self.make_tail();
                }
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, out: &mut Vec<u8>) {
        if !self.framing.closed {
            // An empty line, or a space between two items: the only filler that every SDK takes.
            out.push(b'\n');
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        let last = self.last();
        self.framing.whole(last.to_string().as_bytes(), out);
        self.framing.close(out);
    }

    fn error(&mut self, wire: &WireError, out: &mut Vec<u8>) {
        if self.framing.closed {
            return;
        }
        self.framing
            .whole(error::body(wire).to_string().as_bytes(), out);
        self.framing.close(out);
    }
}

impl Call {
    fn is_whole(&self) -> bool {
        let arguments = self.arguments.trim();
        self.custom
            || arguments.is_empty()
            || serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
    }
}

/// Whether the reply ends here without being done.
fn is_cut(event: &Event) -> bool {
    matches!(event, Event::Finish { finish, .. } if finish::is_cut(*finish))
}

fn choice_of(event: &Event) -> Option<u32> {
    match event {
        Event::Start { .. } | Event::Usage(_) => None,
        Event::Text { choice, .. }
        | Event::TextEnd { choice, .. }
        | Event::Reasoning { choice, .. }
        | Event::ReasoningEnd { choice, .. }
        | Event::Redacted { choice, .. }
        | Event::Refusal { choice, .. }
        | Event::ToolStart { choice, .. }
        | Event::ToolArguments { choice, .. }
        | Event::ToolEnd { choice, .. }
        | Event::Citation { choice, .. }
        | Event::Part { choice, .. }
        | Event::Logprobs { choice, .. }
        | Event::Finish { choice, .. } => Some(*choice),
    }
}

/// What stands around the objects: events, or the items of one list.
pub(super) struct Framing {
    array: bool,
    begun: bool,
    /// Nothing comes any more.
    pub(super) closed: bool,
}

impl Framing {
    pub(super) fn new(array: bool) -> Self {
        Self {
            array,
            begun: false,
            closed: false,
        }
    }

    /// What stands before an object.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        let before: &[u8] = match (self.array, self.begun) {
            (false, _) => b"data: ",
            (true, false) => b"[",
            (true, true) => b",\n",
        };
        self.begun = true;
        out.extend_from_slice(before);
    }

    /// What stands behind it.
    pub(super) fn end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.array { b"\n" } else { b"\n\n" });
    }

    /// An object and what stands around it.
    pub(super) fn whole(&mut self, json: &[u8], out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(json);
        self.end(out);
    }

    /// The end of everything.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        if self.array && !self.closed {
            out.extend_from_slice(if self.begun { b"]" } else { b"[]" });
        }
        self.closed = true;
    }
}
