//! Custom (free-text) tools on upstreams that only have functions: converts calls in the response back.
//!
//! The request writers of messages and generate-content send a function with one string argument, `input`, instead of the tool. The
//! value of that argument is the free text for the client's tool.

use std::collections::HashSet;

use serde_json::Value;

use crate::hub::{Event, PartKind, Request, Response, ToolKind, namespaced_custom_tools};
use crate::sse::MAX_EVENT_BYTES;

/// The client's names of the custom tools in a request.
pub fn custom_tool_names(request: &Request) -> HashSet<String> {
    let custom = request.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Custom { name, .. } => Some(name.clone()),
        _ => None,
    });
    custom.chain(namespaced_custom_tools(request)).collect()
}

/// Converts calls of the functions `names` in a complete response back into calls of custom tools. Tool names must already be the
/// client's.
pub fn restore_in_response(response: &mut Response, names: &HashSet<String>) {
    let parts = response
        .choices
        .iter_mut()
        .flat_map(|choice| &mut choice.parts);
    for part in parts {
        if let PartKind::ToolCall {
            name,
            arguments,
            custom,
            ..
        } = &mut part.kind
            && !*custom
            && names.contains(name)
        {
            *custom = true;
            *arguments = input_text(std::mem::take(arguments));
        }
    }
}

/// Converts the calls in a stream. The text of a call is passed on at its end.
#[derive(Debug)]
pub struct StreamRestorer {
    names: HashSet<String>,
    /// Calls that have not ended: choice, call, arguments so far.
    open: Vec<(u32, u32, String)>,
}

impl StreamRestorer {
    /// Converts calls of the functions `names`.
    pub fn new(names: HashSet<String>) -> Self {
        Self {
            names,
            open: Vec::new(),
        }
    }

    /// Converts `events` in place.
    pub fn restore_events(&mut self, events: &mut Vec<Event>) {
        for event in std::mem::take(events) {
            self.restore_event(event, events);
        }
    }

    fn restore_event(&mut self, mut event: Event, out: &mut Vec<Event>) {
        match &mut event {
            Event::ToolStart {
                choice,
                call,
                name,
                custom,
                ..
            } if !*custom && self.names.contains(name) => {
                *custom = true;
                self.open.push((*choice, *call, String::new()));
            }
            Event::ToolArguments { choice, call, json } => {
                if let Some(at) = self.find(*choice, *call) {
                    let arguments = &mut self.open[at].2;
                    arguments.push_str(json);
                    if arguments.len() <= MAX_EVENT_BYTES {
                        return;
                    }
                    // Memory is bounded: such long arguments are passed on unchanged.
                    *json = self.open.swap_remove(at).2;
                }
            }
            Event::ToolEnd { choice, call, .. } => {
                if let Some(at) = self.find(*choice, *call) {
                    let (choice, call, arguments) = self.open.swap_remove(at);
                    let json = input_text(arguments);
                    if !json.is_empty() {
                        out.push(Event::ToolArguments { choice, call, json });
                    }
                }
            }
            _ => {}
        }
        out.push(event);
    }

    fn find(&self, choice: u32, call: u32) -> Option<usize> {
        let mut open = self.open.iter();
        open.position(|one| (one.0, one.1) == (choice, call))
    }
}

/// The string `input` in the function's arguments. The arguments themselves if the model did not follow the function's schema.
fn input_text(arguments: String) -> String {
    match serde_json::from_str::<Value>(&arguments) {
        Ok(Value::Object(mut members)) => match members.remove("input") {
            Some(Value::String(text)) => text,
            _ => arguments,
        },
        _ => arguments,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::ResponseBuilder;

    fn call(call: u32, name: &str, pieces: &[&str]) -> Vec<Event> {
        let choice = 0;
        let mut out = vec![Event::ToolStart {
            choice,
            call,
            id: format!("id_{call}"),
            name: name.to_owned(),
            custom: false,
        }];
        out.extend(pieces.iter().map(|json| Event::ToolArguments {
            choice,
            call,
            json: (*json).to_owned(),
        }));
        out.push(Event::ToolEnd {
            choice,
            call,
            signature: None,
        });
        out
    }

    fn build(events: &[Event]) -> Response {
        let mut builder = ResponseBuilder::default();
        events.iter().for_each(|event| builder.push(event));
        builder.build()
    }

    #[test]
    fn complete_responses_and_streams_restore_the_same_text() {
        let names = HashSet::from(["shell".to_owned()]);
        let mut events = call(0, "shell", &["{\"inp", "ut\":\"ls\\n\"}"]);
        events.extend(call(1, "f", &["{\"input\":\"x\"}"]));
        events.extend(call(2, "shell", &["no object"]));
        events.extend(call(3, "shell", &[]));
        let mut complete = build(&events);
        restore_in_response(&mut complete, &names);
        StreamRestorer::new(names).restore_events(&mut events);
        assert_eq!(build(&events), complete);
        let calls: Vec<(bool, &str)> = complete.choices[0]
            .parts
            .iter()
            .filter_map(|part| match &part.kind {
                PartKind::ToolCall {
                    custom, arguments, ..
                } => Some((*custom, arguments.as_str())),
                _ => None,
            })
            .collect();
        let expected = [
            (true, "ls\n"),
            (false, "{\"input\":\"x\"}"),
            (true, "no object"),
            (true, ""),
        ];
        assert_eq!(calls, expected);
    }
}
