//! A forced tool that stands in for JSON output on models without it: undone in the reply.
//!
//! The writer of a request names the tool in `Written::json_tool`; what the model "calls" it with is the text that the client
//! asked for.

use crate::hub::{Event, Finish, Kind, Part, Reply};

/// Turns calls of `tool` in a whole reply back into text.
pub fn undo_reply(reply: &mut Reply, tool: &str) {
    for choice in &mut reply.choices {
        let mut others = false;
        for part in &mut choice.parts {
            match &mut part.kind {
                Kind::ToolCall {
                    name, arguments, ..
                } if name == tool => *part = Part::text(std::mem::take(arguments)),
                Kind::ToolCall { .. } => others = true,
                _ => {}
            }
        }
        if choice.finish == Finish::ToolCall && !others {
            choice.finish = Finish::End;
        }
    }
}

/// Turns calls of a tool in a stream back into text, event by event.
#[derive(Debug)]
pub struct Undo {
    tool: String,
    /// By choice.
    choices: Vec<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// For each call of the upstream: its number for the client, none where it is text.
    numbers: Vec<Option<u32>>,
    passed: u32,
}

impl Undo {
    /// Undoes calls of `tool`.
    pub fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            choices: Vec::new(),
        }
    }

    /// Rewrites `events` in place.
    pub fn events(&mut self, events: &mut Vec<Event>) {
        let before = std::mem::take(events);
        events.extend(before.into_iter().filter_map(|event| self.event(event)));
    }

    fn event(&mut self, event: Event) -> Option<Event> {
        match event {
            Event::ToolStart {
                choice,
                call,
                id,
                name,
                custom,
            } => {
                let is_text = name == self.tool;
                let calls = self.calls(choice);
                let number = (!is_text).then_some(calls.passed);
                calls.passed += u32::from(!is_text);
                // Readers count without gaps; what comes out of order is left as it is.
                if calls.numbers.len() == call as usize {
                    calls.numbers.push(number);
                }
                number.map(|call| Event::ToolStart {
                    choice,
                    call,
                    id,
                    name,
                    custom,
                })
            }
            Event::ToolArguments { choice, call, json } => {
                Some(match self.calls(choice).number(call) {
                    Some(call) => Event::ToolArguments { choice, call, json },
                    None => Event::Text { choice, text: json },
                })
            }
            Event::ToolEnd {
                choice,
                call,
                signature,
            } => Some(match self.calls(choice).number(call) {
                Some(call) => Event::ToolEnd {
                    choice,
                    call,
                    signature,
                },
                None => Event::TextEnd {
                    choice,
                    signature: None,
                },
            }),
            Event::Finish {
                choice,
                finish: Finish::ToolCall,
                stop_sequence,
            } if self.calls(choice).passed == 0 => Some(Event::Finish {
                choice,
                finish: Finish::End,
                stop_sequence,
            }),
            other => Some(other),
        }
    }

    fn calls(&mut self, choice: u32) -> &mut Calls {
        let at = choice.min(127) as usize;
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, Calls::default);
        }
        &mut self.choices[at]
    }
}

impl Calls {
    fn number(&self, call: u32) -> Option<u32> {
        self.numbers
            .get(call as usize)
            .copied()
            .unwrap_or(Some(call))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::Fold;

    fn call(call: u32, name: &str, json: &str) -> Vec<Event> {
        vec![
            Event::ToolStart {
                choice: 0,
                call,
                id: format!("id_{call}"),
                name: name.to_owned(),
                custom: false,
            },
            Event::ToolArguments {
                choice: 0,
                call,
                json: json.to_owned(),
            },
            Event::ToolEnd {
                choice: 0,
                call,
                signature: None,
            },
        ]
    }

    #[test]
    fn the_stand_in_is_text_and_other_calls_move_up() {
        for other in [false, true] {
            let mut events = call(0, "answer", "{\"a\":1}");
            if other {
                events.extend(call(1, "f", "{}"));
            }
            events.push(Event::Finish {
                choice: 0,
                finish: Finish::ToolCall,
                stop_sequence: None,
            });
            let fold = |events: &[Event]| {
                let mut fold = Fold::default();
                events.iter().for_each(|event| fold.push(event));
                fold.reply()
            };
            let mut whole = fold(&events);
            undo_reply(&mut whole, "answer");
            Undo::new("answer").events(&mut events);
            assert_eq!(fold(&events), whole);
            assert_eq!(whole.choices[0].parts[0], Part::text("{\"a\":1}"));
            let finish = if other { Finish::ToolCall } else { Finish::End };
            assert_eq!(whole.choices[0].finish, finish);
        }
    }
}
