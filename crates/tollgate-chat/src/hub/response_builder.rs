//! Builds a complete [`Response`] from stream events, and converts a [`Response`] into the events of an equivalent stream.

use super::event::Event;
use super::part::{Opaque, Part, PartKind};
use super::response::{Choice, Response, Usage};

/// Builds the response that a stream's events describe.
#[derive(Debug, Default)]
pub struct ResponseBuilder {
    response: Response,
    /// The choices that have begun, by their index.
    open: Vec<OpenChoice>,
}

#[derive(Debug, Default, Clone)]
struct OpenChoice {
    /// Whether text or reasoning that follows is appended to the last part.
    appends: bool,
    /// The index of each tool call in the choice's parts.
    calls: Vec<usize>,
    finished: bool,
}

impl ResponseBuilder {
    /// Applies the next event.
    pub fn push(&mut self, event: &Event) {
        match event {
            Event::Start {
                id,
                model,
                created,
                usage,
            } => {
                self.response.id.clone_from(id);
                self.response.model.clone_from(model);
                self.response.created = *created;
                self.response.usage = usage.or(self.response.usage);
            }
            Event::Usage(usage) => self.response.usage = Some(*usage),
            Event::Text { choice, text } => self.append_text(*choice, text, Appended::Text),
            Event::Reasoning {
                choice,
                text,
                summary,
            } => {
                self.append_text(*choice, text, Appended::Reasoning { summary: *summary });
            }
            Event::Refusal { choice, text } => self.append_text(*choice, text, Appended::Refusal),
            Event::TextEnd { choice, signature } => self.text_end(*choice, signature.as_ref()),
            Event::ReasoningEnd {
                choice,
                signature,
                id,
            } => self.reasoning_end(*choice, signature.as_ref(), id.as_ref()),
            Event::RedactedReasoning { choice, data } => self.add_part(
                *choice,
                Part::new(PartKind::RedactedReasoning(data.clone())),
            ),
            Event::Part { choice, part } => self.add_part(*choice, part.clone()),
            Event::Citation { choice, citation } => {
                let (choice, _) = self.choice(*choice);
                let mut parts = choice.parts.iter_mut().rev();
                let citations = parts.find_map(|part| match &mut part.kind {
                    PartKind::Text {
                        text, citations, ..
                    } if !text.is_empty() => Some(citations),
                    _ => None,
                });
                if let Some(citations) = citations {
                    citations.push(citation.clone());
                }
            }
            Event::ToolStart {
                choice,
                call,
                id,
                name,
                custom,
            } => self.tool_start(*choice, *call, (id, name), *custom),
            Event::ToolArguments { choice, call, json } => {
                if let Some(PartKind::ToolCall { arguments, .. }) = self.call(*choice, *call) {
                    arguments.push_str(json);
                }
            }
            Event::ToolEnd {
                choice,
                call,
                signature,
            } => {
                if let Some(PartKind::ToolCall {
                    signature: current, ..
                }) = self.call(*choice, *call)
                {
                    current.clone_from(signature);
                }
            }
            Event::Logprobs { choice, value } => merge_logprobs(self.choice(*choice).0, value),
            Event::Finish {
                choice,
                finish,
                stop_sequence,
            } => {
                let (choice, open) = self.choice(*choice);
                (choice.finish, open.finished) = (*finish, true);
                choice.stop_sequence.clone_from(stop_sequence);
            }
        }
    }

    fn text_end(&mut self, choice: u32, signature: Option<&Opaque>) {
        let (choice, open) = self.choice(choice);
        let open_part = last_part(choice).filter(|_| open.appends);
        if let Some(PartKind::Text {
            signature: current, ..
        }) = open_part
        {
            *current = signature.cloned();
        } else if signature.is_some() {
            choice.parts.push(Part::new(PartKind::Text {
                text: String::new(),
                citations: Vec::new(),
                signature: signature.cloned(),
            }));
        }
        open.appends = false;
    }

    fn reasoning_end(&mut self, choice: u32, signature: Option<&Opaque>, id: Option<&String>) {
        let (choice, open) = self.choice(choice);
        let open_part = last_part(choice).filter(|_| open.appends);
        if let Some(PartKind::Reasoning {
            signature: current,
            id: current_id,
            ..
        }) = open_part
        {
            (*current, *current_id) = (signature.cloned(), id.cloned());
        } else if signature.is_some() {
            choice.parts.push(Part::new(PartKind::Reasoning {
                text: String::new(),
                signature: signature.cloned(),
                id: id.cloned(),
                summary: false,
            }));
        }
        open.appends = false;
    }

    fn tool_start(&mut self, choice: u32, call: u32, (id, name): (&String, &String), custom: bool) {
        let kind = PartKind::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: String::new(),
            custom,
            signature: None,
        };
        self.add_part(choice, Part::new(kind));
        let (choice, open) = self.choice(choice);
        if open.calls.len() == call as usize {
            open.calls.push(choice.parts.len() - 1);
        }
    }

    /// The response built so far.
    pub fn build(self) -> Response {
        self.response
    }

    /// The response built so far.
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Whether at least one choice began and every choice that began has finished.
    pub fn is_finished(&self) -> bool {
        !self.open.is_empty() && self.open.iter().all(|open| open.finished)
    }

    fn choice(&mut self, index: u32) -> (&mut Choice, &mut OpenChoice) {
        // Limits the memory that an upstream's index can allocate.
        let index = index.min(MAX_CHOICE_INDEX);
        while self.response.choices.len() <= index as usize {
            let next = self.response.choices.len() as u32;
            self.response.choices.push(Choice::empty(next));
            self.open.push(OpenChoice::default());
        }
        (
            &mut self.response.choices[index as usize],
            &mut self.open[index as usize],
        )
    }

    fn call(&mut self, choice: u32, call: u32) -> Option<&mut PartKind> {
        let (choice, open) = self.choice(choice);
        let at = *open.calls.get(call as usize)?;
        choice.parts.get_mut(at).map(|part| &mut part.kind)
    }

    fn add_part(&mut self, choice: u32, part: Part) {
        let (choice, open) = self.choice(choice);
        choice.parts.push(part);
        open.appends = false;
    }

    fn append_text(&mut self, choice: u32, piece: &str, kind: Appended) {
        let (choice, open) = self.choice(choice);
        let appends = open.appends;
        match (last_part(choice).filter(|_| appends), &kind) {
            (Some(PartKind::Text { text, .. } | PartKind::Refusal(text)), Appended::Text) => {
                text.push_str(piece)
            }
            (Some(PartKind::Refusal(text)), Appended::Refusal) => text.push_str(piece),
            (Some(PartKind::Reasoning { text, .. }), Appended::Reasoning { .. }) => {
                text.push_str(piece)
            }
            _ => {
                let kind = match kind {
                    Appended::Text => PartKind::Text {
                        text: piece.to_owned(),
                        citations: Vec::new(),
                        signature: None,
                    },
                    Appended::Refusal => PartKind::Refusal(piece.to_owned()),
                    Appended::Reasoning { summary } => PartKind::Reasoning {
                        text: piece.to_owned(),
                        signature: None,
                        id: None,
                        summary,
                    },
                };
                choice.parts.push(Part::new(kind));
                open.appends = true;
            }
        }
    }
}

/// A piece of text that is appended to the last part or begins a new one.
enum Appended {
    Text,
    Reasoning { summary: bool },
    Refusal,
}

/// Higher indices of choices are treated as this one.
const MAX_CHOICE_INDEX: u32 = 127;

fn last_part(choice: &mut Choice) -> Option<&mut PartKind> {
    choice.parts.last_mut().map(|part| &mut part.kind)
}

fn merge_logprobs(choice: &mut Choice, value: &serde_json::Value) {
    let Some(merged) = &mut choice.logprobs else {
        choice.logprobs = Some(value.clone());
        return;
    };
    for list in ["content", "refusal"] {
        if let (Some(merged), Some(more)) = (merged[list].as_array_mut(), value[list].as_array()) {
            merged.extend(more.iter().cloned());
        }
    }
}

/// The events of a stream with the content of `response`.
pub fn events_from_response(response: &Response) -> Vec<Event> {
    let usage: Option<Usage> = response.usage;
    let mut out = vec![Event::Start {
        id: response.id.clone(),
        model: response.model.clone(),
        created: response.created,
        usage,
    }];
    for choice in &response.choices {
        let mut calls = 0;
        for part in &choice.parts {
            push_part_events(choice.index, part, &mut calls, &mut out);
        }
        if let Some(value) = &choice.logprobs {
            out.push(Event::Logprobs {
                choice: choice.index,
                value: value.clone(),
            });
        }
        out.push(Event::Finish {
            choice: choice.index,
            finish: choice.finish,
            stop_sequence: choice.stop_sequence.clone(),
        });
    }
    out.extend(usage.map(Event::Usage));
    out
}

fn push_part_events(choice: u32, part: &Part, calls: &mut u32, out: &mut Vec<Event>) {
    match &part.kind {
        PartKind::Text {
            text,
            citations,
            signature,
        } => {
            if !text.is_empty() {
                out.push(Event::Text {
                    choice,
                    text: text.clone(),
                });
            }
            out.extend(citations.iter().map(|c| Event::Citation {
                choice,
                citation: c.clone(),
            }));
            out.push(Event::TextEnd {
                choice,
                signature: signature.clone(),
            });
        }
        PartKind::Reasoning {
            text,
            signature,
            id,
            summary,
        } => {
            if !text.is_empty() {
                out.push(Event::Reasoning {
                    choice,
                    text: text.clone(),
                    summary: *summary,
                });
            }
            out.push(Event::ReasoningEnd {
                choice,
                signature: signature.clone(),
                id: id.clone(),
            });
        }
        PartKind::RedactedReasoning(data) => out.push(Event::RedactedReasoning {
            choice,
            data: data.clone(),
        }),
        PartKind::Refusal(text) => out.push(Event::Refusal {
            choice,
            text: text.clone(),
        }),
        PartKind::ToolCall {
            id,
            name,
            arguments,
            custom,
            signature,
        } => {
            let call = *calls;
            *calls += 1;
            out.push(Event::ToolStart {
                choice,
                call,
                id: id.clone(),
                name: name.clone(),
                custom: *custom,
            });
            if !arguments.is_empty() {
                out.push(Event::ToolArguments {
                    choice,
                    call,
                    json: arguments.clone(),
                });
            }
            out.push(Event::ToolEnd {
                choice,
                call,
                signature: signature.clone(),
            });
        }
        _ => out.push(Event::Part {
            choice,
            part: part.clone(),
        }),
    }
}
