//! JSON output for models that do not support it: a forced tool is sent instead, and its call in the response is converted back to text.
//!
//! The request writer puts the tool's name in [`crate::WrittenRequest::json_tool`]; the arguments of the call are the text that the
//! client requested.

use crate::hub::{Event, FinishReason, Part, PartKind, Response};

/// Converts calls of `tool` in a complete response back into text.
pub fn restore_in_response(response: &mut Response, tool: &str) {
    for choice in &mut response.choices {
        let mut has_other_calls = false;
        for part in &mut choice.parts {
            match &mut part.kind {
                PartKind::ToolCall {
                    name, arguments, ..
                } if name == tool => *part = Part::text(std::mem::take(arguments)),
                PartKind::ToolCall { .. } => has_other_calls = true,
                _ => {}
            }
        }
        if choice.finish == FinishReason::ToolCall && !has_other_calls {
            choice.finish = FinishReason::EndTurn;
        }
    }
}

/// Converts calls of a tool in a stream back into text.
#[derive(Debug)]
pub struct StreamRestorer {
    tool: String,
    /// By index of the choice.
    choices: Vec<CallNumbers>,
}

#[derive(Debug, Default)]
struct CallNumbers {
    /// For each call of the upstream: its number for the client. `None` if it becomes text.
    numbers: Vec<Option<u32>>,
    /// The number of calls that are not converted.
    kept: u32,
}

impl StreamRestorer {
    /// Converts calls of `tool`.
    pub fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            choices: Vec::new(),
        }
    }

    /// Converts `events` in place.
    pub fn restore_events(&mut self, events: &mut Vec<Event>) {
        let before = std::mem::take(events);
        events.extend(
            before
                .into_iter()
                .filter_map(|event| self.restore_event(event)),
        );
    }

    fn restore_event(&mut self, event: Event) -> Option<Event> {
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
                let number = (!is_text).then_some(calls.kept);
                calls.kept += u32::from(!is_text);
                // Readers number calls without gaps; calls out of order keep their number.
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
                finish: FinishReason::ToolCall,
                stop_sequence,
            } if self.calls(choice).kept == 0 => Some(Event::Finish {
                choice,
                finish: FinishReason::EndTurn,
                stop_sequence,
            }),
            other => Some(other),
        }
    }

    fn calls(&mut self, choice: u32) -> &mut CallNumbers {
        let at = choice.min(127) as usize;
        if self.choices.len() <= at {
            self.choices.resize_with(at + 1, CallNumbers::default);
        }
        &mut self.choices[at]
    }
}

impl CallNumbers {
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
    use crate::hub::ResponseBuilder;

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
    fn the_json_tool_becomes_text_and_other_calls_are_renumbered() {
        for other in [false, true] {
            let mut events = call(0, "json_output", "{\"a\":1}");
            if other {
                events.extend(call(1, "f", "{}"));
            }
            events.push(Event::Finish {
                choice: 0,
                finish: FinishReason::ToolCall,
                stop_sequence: None,
            });
            let build = |events: &[Event]| {
                let mut builder = ResponseBuilder::default();
                events.iter().for_each(|event| builder.push(event));
                builder.build()
            };
            let mut complete = build(&events);
            restore_in_response(&mut complete, "json_output");
            StreamRestorer::new("json_output").restore_events(&mut events);
            assert_eq!(build(&events), complete);
            assert_eq!(complete.choices[0].parts[0], Part::text("{\"a\":1}"));
            let finish = if other {
                FinishReason::ToolCall
            } else {
                FinishReason::EndTurn
            };
            assert_eq!(complete.choices[0].finish, finish);
        }
    }
}
