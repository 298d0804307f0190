//! From events to a whole reply and back.

use super::{Choice, Event, Finish, Kind, Opaque, Own, Part, Reply, Usage};

/// Gathers a stream's events into the reply that they tell.
#[derive(Debug, Default)]
pub struct Fold {
    reply: Reply,
    /// By choice index: whether text and thinking of the last part may still grow.
    open: Vec<Open>,
}

#[derive(Debug, Default, Clone)]
struct Open {
    grows: bool,
    /// Position of each call's part.
    calls: Vec<usize>,
    finished: bool,
}

impl Fold {
    /// Takes the next event.
    pub fn push(&mut self, event: &Event) {
        match event {
            Event::Start {
                id,
                model,
                created,
                usage,
            } => {
                self.reply.id.clone_from(id);
                self.reply.model.clone_from(model);
                self.reply.created = *created;
                self.reply.usage = usage.or(self.reply.usage);
            }
            Event::Usage(usage) => self.reply.usage = Some(*usage),
            Event::Text { choice, text } => self.grow(*choice, text, Growing::Text),
            Event::Reasoning {
                choice,
                text,
                summary,
            } => {
                self.grow(*choice, text, Growing::Reasoning { summary: *summary });
            }
            Event::Refusal { choice, text } => self.grow(*choice, text, Growing::Refusal),
            Event::TextEnd { choice, signature } => self.text_end(*choice, signature.as_ref()),
            Event::ReasoningEnd {
                choice,
                signature,
                id,
            } => self.reasoning_end(*choice, signature.as_ref(), id.as_ref()),
            Event::Redacted { choice, data } => {
                self.whole(*choice, Part::of(Kind::Redacted(data.clone())))
            }
            Event::Part { choice, part } => self.whole(*choice, part.clone()),
            Event::Citation { choice, citation } => {
                let (choice, _) = self.choice(*choice);
                if let Some(Kind::Text { citations, .. }) = last(choice) {
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
                if let Some(Kind::ToolCall { arguments, .. }) = self.call(*choice, *call) {
                    arguments.push_str(json);
                }
            }
            Event::ToolEnd {
                choice,
                call,
                signature,
            } => {
                if let Some(Kind::ToolCall {
                    signature: there, ..
                }) = self.call(*choice, *call)
                {
                    there.clone_from(signature);
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
        let grown = last(choice).filter(|_| open.grows);
        if let Some(Kind::Text {
            signature: there, ..
        }) = grown
        {
            *there = signature.cloned();
        } else if signature.is_some() {
            choice.parts.push(Part::of(Kind::Text {
                text: String::new(),
                citations: Vec::new(),
                signature: signature.cloned(),
            }));
        }
        open.grows = false;
    }

    fn reasoning_end(&mut self, choice: u32, signature: Option<&Opaque>, id: Option<&String>) {
        let (choice, open) = self.choice(choice);
        let grown = last(choice).filter(|_| open.grows);
        if let Some(Kind::Reasoning {
            signature: there,
            id: named,
            ..
        }) = grown
        {
            (*there, *named) = (signature.cloned(), id.cloned());
        } else if signature.is_some() {
            choice.parts.push(Part::of(Kind::Reasoning {
                text: String::new(),
                signature: signature.cloned(),
                id: id.cloned(),
                summary: false,
            }));
        }
        open.grows = false;
    }

    fn tool_start(&mut self, choice: u32, call: u32, (id, name): (&String, &String), custom: bool) {
        let kind = Kind::ToolCall {
            id: id.clone(),
            name: name.clone(),
            arguments: String::new(),
            custom,
            signature: None,
        };
        self.whole(choice, Part::of(kind));
        let (choice, open) = self.choice(choice);
        if open.calls.len() == call as usize {
            open.calls.push(choice.parts.len() - 1);
        }
    }

    /// The reply so far.
    pub fn reply(self) -> Reply {
        self.reply
    }

    /// Looks at the reply so far.
    pub fn so_far(&self) -> &Reply {
        &self.reply
    }

    /// Whether every choice that began has finished, and one has.
    pub fn is_finished(&self) -> bool {
        !self.open.is_empty() && self.open.iter().all(|open| open.finished)
    }

    fn choice(&mut self, index: u32) -> (&mut Choice, &mut Open) {
        // A choice that nobody asked for is not worth memory.
        let index = index.min(MOST_CHOICES);
        while self.reply.choices.len() <= index as usize {
            let next = self.reply.choices.len() as u32;
            self.reply.choices.push(Choice::empty(next));
            self.open.push(Open::default());
        }
        (
            &mut self.reply.choices[index as usize],
            &mut self.open[index as usize],
        )
    }

    fn call(&mut self, choice: u32, call: u32) -> Option<&mut Kind> {
        let (choice, open) = self.choice(choice);
        let at = *open.calls.get(call as usize)?;
        choice.parts.get_mut(at).map(|part| &mut part.kind)
    }

    fn whole(&mut self, choice: u32, part: Part) {
        let (choice, open) = self.choice(choice);
        choice.parts.push(part);
        open.grows = false;
    }

    fn grow(&mut self, choice: u32, piece: &str, what: Growing) {
        let (choice, open) = self.choice(choice);
        let grows = open.grows;
        match (last(choice).filter(|_| grows), &what) {
            (Some(Kind::Text { text, .. } | Kind::Refusal(text)), Growing::Text) => {
                text.push_str(piece)
            }
            (Some(Kind::Refusal(text)), Growing::Refusal) => text.push_str(piece),
            (Some(Kind::Reasoning { text, .. }), Growing::Reasoning { .. }) => text.push_str(piece),
            _ => {
                let kind = match what {
                    Growing::Text => Kind::Text {
                        text: piece.to_owned(),
                        citations: Vec::new(),
                        signature: None,
                    },
                    Growing::Refusal => Kind::Refusal(piece.to_owned()),
                    Growing::Reasoning { summary } => Kind::Reasoning {
                        text: piece.to_owned(),
                        signature: None,
                        id: None,
                        summary,
                    },
                };
                choice.parts.push(Part::of(kind));
                open.grows = true;
            }
        }
    }
}

enum Growing {
    Text,
    Reasoning { summary: bool },
    Refusal,
}

const MOST_CHOICES: u32 = 127;

impl Choice {
    /// A choice that has not begun.
    pub fn empty(index: u32) -> Self {
        Self {
            index,
            parts: Vec::new(),
            finish: Finish::End,
            stop_sequence: None,
            logprobs: None,
            own: Own::NONE,
        }
    }
}

fn last(choice: &mut Choice) -> Option<&mut Kind> {
    choice.parts.last_mut().map(|part| &mut part.kind)
}

fn merge_logprobs(choice: &mut Choice, value: &serde_json::Value) {
    let Some(there) = &mut choice.logprobs else {
        choice.logprobs = Some(value.clone());
        return;
    };
    for list in ["content", "refusal"] {
        if let (Some(there), Some(more)) = (there[list].as_array_mut(), value[list].as_array()) {
            there.extend(more.iter().cloned());
        }
    }
}

/// The events that would have told `reply` as a stream.
pub fn events_of(reply: &Reply) -> Vec<Event> {
    let usage: Option<Usage> = reply.usage;
    let mut out = vec![Event::Start {
        id: reply.id.clone(),
        model: reply.model.clone(),
        created: reply.created,
        usage,
    }];
    for choice in &reply.choices {
        let mut calls = 0;
        for part in &choice.parts {
            part_events(choice.index, part, &mut calls, &mut out);
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

fn part_events(choice: u32, part: &Part, calls: &mut u32, out: &mut Vec<Event>) {
    match &part.kind {
        Kind::Text {
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
        Kind::Reasoning {
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
        Kind::Redacted(data) => out.push(Event::Redacted {
            choice,
            data: data.clone(),
        }),
        Kind::Refusal(text) => out.push(Event::Refusal {
            choice,
            text: text.clone(),
        }),
        Kind::ToolCall {
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
