//! Streams a response: as hub events, and as the bytes that a format's writer creates for each event.

use bytes::Bytes;
use tollgate_chat::StreamWriter;
use tollgate_chat::hub::Event;

use super::response::{Choice, Response, ToolCall};
use tollgate_upstream::egress::EgressError;

/// The longest text of one event, in characters.
const MAX_PIECE_CHARS: usize = 16;

/// The events of `response`. Lazy: a response may have a million words.
pub(super) fn events(
    response: Response,
    model: &str,
) -> impl Iterator<Item = Event> + Send + use<> {
    let start = Event::Start {
        id: String::new(),
        model: model.to_owned(),
        created: None,
        usage: None,
    };
    let usage = Event::Usage(response.usage);
    let choices = response.choices.into_iter().enumerate();
    let events = choices.flat_map(|(index, message)| choice_events(index as u32, message));
    std::iter::once(start)
        .chain(events)
        .chain(std::iter::once(usage))
}

fn choice_events(choice: u32, message: Choice) -> impl Iterator<Item = Event> + Send {
    let thinks = !message.reasoning.is_empty();
    let thinking = split_words(message.reasoning).map(move |text| Event::Reasoning {
        choice,
        text,
        summary: true,
    });
    let thought = thinks.then_some(Event::ReasoningEnd {
        choice,
        signature: None,
        id: None,
    });
    let text = split_words(message.text).map(move |text| Event::Text { choice, text });
    let calls = message.calls.into_iter().enumerate();
    let calls = calls.flat_map(move |(at, call)| tool_call_events(choice, at as u32, call));
    let finish = Event::Finish {
        choice,
        finish: message.finish,
        stop_sequence: message.stop_sequence,
    };
    thinking
        .chain(thought)
        .chain(text)
        .chain(calls)
        .chain(std::iter::once(finish))
}

fn tool_call_events(
    choice: u32,
    call: u32,
    tool_call: ToolCall,
) -> impl Iterator<Item = Event> + Send {
    let start = Event::ToolStart {
        choice,
        call,
        id: tool_call.id,
        name: tool_call.name,
        custom: tool_call.custom,
    };
    let arguments = split_words(tool_call.arguments);
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

/// Splits a text after each word; spaces stay with the word before them.
fn split_words(text: String) -> impl Iterator<Item = String> + Send {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let mut spaces = false;
        let end = rest.char_indices().enumerate().find(|(n, (_, c))| {
            let ends = (spaces && !c.is_whitespace()) || *n == MAX_PIECE_CHARS;
            spaces = c.is_whitespace();
            ends
        });
        let end = end.map_or(rest.len(), |(_, (end, _))| end);
        at += end;
        Some(rest[..end].to_owned())
    })
}

/// The bytes of a stream. An item is the output of one event that has any, or the error of a stream that breaks off.
pub(super) struct EventStream<E> {
    /// `None` after the last event.
    events: Option<E>,
    writer: Box<dyn StreamWriter>,
    /// The number of content events before the stream breaks off (`cut=N`). `None` if it does not break off.
    remaining: Option<u32>,
}

impl<E: Iterator<Item = Event>> EventStream<E> {
    pub(super) fn new(events: E, writer: Box<dyn StreamWriter>, cut: Option<u32>) -> Self {
        Self {
            events: Some(events),
            writer,
            remaining: cut,
        }
    }
}

impl<E: Iterator<Item = Event>> Iterator for EventStream<E> {
    type Item = Result<Bytes, EgressError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut out = Vec::new();
        while out.is_empty() {
            if self.remaining == Some(0) && self.events.take().is_some() {
                return Some(Err(EgressError::Broken));
            }
            let Some(event) = self.events.as_mut()?.next() else {
                self.events = None;
                self.writer.end(&mut out);
                break;
            };
            self.writer.write(&event, &mut out);
            if is_content(&event) {
                self.remaining = self.remaining.map(|remaining| remaining - 1);
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
    fn texts_are_split_into_words_without_loss() {
        let check = |text: &str, expected: &[&str]| {
            let all: Vec<_> = split_words(text.to_owned()).collect();
            assert_eq!(all, expected, "{text:?}");
            assert_eq!(all.concat(), text);
        };
        check("", &[]);
        check("one", &["one"]);
        check(" one  two\n\nthree ", &[" ", "one  ", "two\n\n", "three "]);
        check("猫", &["猫"]);
        let long = "猫".repeat(MAX_PIECE_CHARS + 1);
        check(&long, &[&long[..MAX_PIECE_CHARS * 3], "猫"]);
    }
}
