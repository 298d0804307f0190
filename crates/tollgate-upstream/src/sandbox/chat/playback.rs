//! From a script to events, and from events to the pieces of a stream.

use bytes::Bytes;
use tollgate_chat::StreamWriter;
use tollgate_chat::hub::Event;

use super::answer::{Call, Script, Spoken};
use crate::egress::EgressError;

/// Longest piece of a text without spaces, in characters.
const PIECE: usize = 16;

/// The events that tell `script`, made as they are asked for: a reply may have a million words.
pub(super) fn events(script: Script, model: &str) -> impl Iterator<Item = Event> + Send + use<> {
    let start = Event::Start {
        id: String::new(),
        model: model.to_owned(),
        created: None,
        usage: None,
    };
    let usage = Event::Usage(script.usage);
    let choices = script.choices.into_iter().enumerate();
    let told = choices.flat_map(|(index, spoken)| choice(index as u32, spoken));
    std::iter::once(start)
        .chain(told)
        .chain(std::iter::once(usage))
}

fn choice(choice: u32, spoken: Spoken) -> impl Iterator<Item = Event> + Send {
    let thinks = !spoken.reasoning.is_empty();
    let thinking = pieces(spoken.reasoning).map(move |text| Event::Reasoning {
        choice,
        text,
        summary: true,
    });
    let thought = thinks.then_some(Event::ReasoningEnd {
        choice,
        signature: None,
        id: None,
    });
    let text = pieces(spoken.text).map(move |text| Event::Text { choice, text });
    let calls = spoken.calls.into_iter().enumerate();
    let calls = calls.flat_map(move |(at, call)| called(choice, at as u32, call));
    let finish = Event::Finish {
        choice,
        finish: spoken.finish,
        stop_sequence: spoken.stop_sequence,
    };
    thinking
        .chain(thought)
        .chain(text)
        .chain(calls)
        .chain(std::iter::once(finish))
}

fn called(choice: u32, call: u32, made: Call) -> impl Iterator<Item = Event> + Send {
    let start = Event::ToolStart {
        choice,
        call,
        id: made.id,
        name: made.name,
        custom: made.custom,
    };
    let arguments = pieces(made.arguments);
    let arguments = arguments.map(move |json| Event::ToolArguments { choice, call, json });
    let end = Event::ToolEnd {
        choice,
        call,
        signature: None,
    };
    std::iter::once(start)
        .chain(arguments)
        .chain(std::iter::once(end))
}

/// A text word by word, spaces with the word before them.
fn pieces(text: String) -> impl Iterator<Item = String> + Send {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let mut spaces = false;
        let end = rest.char_indices().enumerate().find(|(n, (_, c))| {
            let ends = (spaces && !c.is_whitespace()) || *n == PIECE;
            spaces = c.is_whitespace();
            ends
        });
        let end = end.map_or(rest.len(), |(_, (end, _))| end);
        at += end;
        Some(rest[..end].to_owned())
    })
}

/// The pieces of a stream, each one event's bytes.
pub(super) struct Playback<E> {
    /// None once all was said.
    events: Option<E>,
    writer: Box<dyn StreamWriter>,
    /// Pieces of content that may still go out before the stream breaks off; none for all.
    left: Option<u32>,
}

impl<E: Iterator<Item = Event>> Playback<E> {
    pub(super) fn new(events: E, writer: Box<dyn StreamWriter>, cut: Option<u32>) -> Self {
        Self {
            events: Some(events),
            writer,
            left: cut,
        }
    }
}

impl<E: Iterator<Item = Event>> Iterator for Playback<E> {
    type Item = Result<Bytes, EgressError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut out = Vec::new();
        while out.is_empty() {
            if self.left == Some(0) && self.events.take().is_some() {
                return Some(Err(EgressError::Broken));
            }
            let Some(event) = self.events.as_mut()?.next() else {
                self.events = None;
                self.writer.end(&mut out);
                break;
            };
            self.writer.write(&event, &mut out);
            if is_content(&event) {
                self.left = self.left.map(|left| left - 1);
            }
        }
        (!out.is_empty()).then(|| Ok(Bytes::from(out)))
    }
}

fn is_content(event: &Event) -> bool {
    matches!(
        event,
        Event::Text { .. } | Event::Reasoning { .. } | Event::ToolArguments { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_word_by_word_and_whole() {
        let check = |text: &str, expected: &[&str]| {
            let all: Vec<_> = pieces(text.to_owned()).collect();
            assert_eq!(all, expected, "{text:?}");
            assert_eq!(all.concat(), text);
        };
        check("", &[]);
        check("one", &["one"]);
        check(" one  two\n\nthree ", &[" ", "one  ", "two\n\n", "three "]);
        check("猫", &["猫"]);
        let long = "猫".repeat(PIECE + 1);
        check(&long, &[&long[..PIECE * 3], "猫"]);
    }
}
