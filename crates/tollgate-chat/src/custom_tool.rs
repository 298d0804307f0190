//! Free-text tools on upstreams that have functions only: undone in the reply.
//!
//! The writers of requests (messages, generate-content) send a function with one text argument, `input`, in the tool's place. What
//! the model calls it with is the text that the client's tool takes.

use std::collections::HashSet;

use serde_json::Value;

use crate::hub::{Event, Kind, Reply, Request, ToolKind};
use crate::sse::EVENT_MAX;

/// The free-text tools of a request, by the client's names.
pub fn names(request: &Request) -> HashSet<String> {
    let custom = request.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Custom { name, .. } => Some(name.clone()),
        _ => None,
    });
    custom.collect()
}

/// Makes calls of the functions that stand in for `names` in a whole reply calls of the tools themselves. Names must be the
/// client's again.
pub fn undo_reply(reply: &mut Reply, names: &HashSet<String>) {
    let parts = reply
        .choices
        .iter_mut()
        .flat_map(|choice| &mut choice.parts);
    for part in parts {
        if let Kind::ToolCall {
            name,
            arguments,
            custom,
            ..
        } = &mut part.kind
            && !*custom
            && names.contains(name)
        {
            *custom = true;
            *arguments = text_of(std::mem::take(arguments));
        }
    }
}

/// The same in a stream, event by event: a call's text is given out at its end.
#[derive(Debug)]
pub struct Undo {
    names: HashSet<String>,
    /// What is kept of the calls that are open: choice, call, arguments.
    open: Vec<(u32, u32, String)>,
}

impl Undo {
    /// Undoes calls of the functions that stand in for `names`.
    pub fn new(names: HashSet<String>) -> Self {
        Self {
            names,
            open: Vec::new(),
        }
    }

    /// Rewrites `events` in place.
    pub fn events(&mut self, events: &mut Vec<Event>) {
        for event in std::mem::take(events) {
            self.event(event, events);
        }
    }

    fn event(&mut self, mut event: Event, out: &mut Vec<Event>) {
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
                    let kept = &mut self.open[at].2;
                    kept.push_str(json);
                    if kept.len() <= EVENT_MAX {
                        return;
                    }
                    // Nothing honest is so long: it goes on as it is.
                    *json = self.open.swap_remove(at).2;
                }
            }
            Event::ToolEnd { choice, call, .. } => {
                if let Some(at) = self.find(*choice, *call) {
                    let (choice, call, kept) = self.open.swap_remove(at);
                    let json = text_of(kept);
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

/// The text in the function's arguments; the arguments themselves where they are not as asked for.
fn text_of(arguments: String) -> String {
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
    use crate::hub::Fold;

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

    fn fold(events: &[Event]) -> Reply {
        let mut fold = Fold::default();
        events.iter().for_each(|event| fold.push(event));
        fold.reply()
    }

    #[test]
    fn the_text_comes_back_whole_and_streamed() {
        let names = HashSet::from(["shell".to_owned()]);
        let mut events = call(0, "shell", &["{\"inp", "ut\":\"ls\\n\"}"]);
        events.extend(call(1, "f", &["{\"input\":\"x\"}"]));
        events.extend(call(2, "shell", &["no object"]));
        events.extend(call(3, "shell", &[]));
        let mut whole = fold(&events);
        undo_reply(&mut whole, &names);
        Undo::new(names).events(&mut events);
        assert_eq!(fold(&events), whole);
        let calls: Vec<(bool, &str)> = whole.choices[0]
            .parts
            .iter()
            .filter_map(|part| match &part.kind {
                Kind::ToolCall {
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
