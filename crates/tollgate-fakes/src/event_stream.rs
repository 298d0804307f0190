//! Chat responses before they are sent: JSON or events, and the changes that a scenario applies to them.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::rng::Rng;
use crate::scenario::Scenario;

/// A response with status 200.
pub(crate) enum ChatResponse {
    Json(Value),
    Events(EventStream),
}

/// One event of a stream.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Json(Value),
    /// Text that is sent unchanged: the end marker of a stream that has one, or text that clients skip.
    Raw(String),
}

/// How events are written into a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Form {
    Sse,
    /// Server-sent events, each with its type in a line before the data.
    NamedSse,
    /// As [`Self::NamedSse`], with `\r\n` as line ends.
    SseCrlf,
    /// One JSON array that is sent piece by piece.
    Array,
}

/// Creates an additional event with text; the number counts these events from 0.
pub(crate) type Filler = Arc<dyn Fn(u64) -> Event + Send + Sync>;

/// A stream.
pub(crate) struct EventStream {
    pub(crate) form: Form,
    pub(crate) events: Vec<Event>,
    /// The number of events at the end of `events` that form the end of the stream.
    pub(crate) tail: usize,
    /// The number of events before the position where events of [`EventStream::filler`] may be inserted.
    pub(crate) filler_at: usize,
    pub(crate) filler: Filler,
    /// The event of an error at the beginning of the stream.
    pub(crate) error_first: Event,
    /// The event of an error in the middle of the stream.
    pub(crate) error_mid: Event,
}

impl EventStream {
    /// Applies `scenario` to the events.
    pub(crate) fn apply_scenario(&mut self, scenario: &Scenario) {
        match scenario {
            Scenario::NoEnd => {
                let keep = self.events.len().saturating_sub(self.tail);
                self.events.truncate(keep);
            }
            Scenario::ErrorEvent => {
                self.events.truncate(self.filler_at);
                self.events.push(self.error_mid.clone());
            }
            Scenario::ErrorFirst => self.events = vec![self.error_first.clone()],
            _ => {}
        }
        for event in &mut self.events {
            if let Event::Json(data) = event {
                change_usage(data, scenario);
            }
        }
    }

    /// The number of entries of `events` before JSON event number `count`, counted from 0; all of them if there are no more than `count`.
    pub(crate) fn entries_before(&self, count: usize) -> usize {
        let events = self.events.iter().enumerate();
        let mut events = events.filter(|(_, event)| matches!(event, Event::Json(_)));
        let next = events.nth(count);
        next.map_or(self.events.len(), |(at, _)| at)
    }

    /// Every event as bytes.
    pub(crate) fn write(&self) -> Vec<Bytes> {
        let last = self.events.len().saturating_sub(1);
        let events = self.events.iter().enumerate();
        events
            .map(|(at, event)| self.form.write(event, at == 0, at == last))
            .collect()
    }
}

impl Form {
    /// Bytes between two events that clients skip.
    pub(crate) fn comment(self) -> &'static [u8] {
        match self {
            Self::Array => b" ",
            _ => b": ping\n\n",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Sse | Self::NamedSse => "text/event-stream; charset=utf-8",
            Self::SseCrlf => "text/event-stream",
            Self::Array => "application/json; charset=UTF-8",
        }
    }

    pub(crate) fn write(self, event: &Event, first: bool, last: bool) -> Bytes {
        let text = match (self, event) {
            (Self::Array, Event::Raw(_)) => String::new(),
            (_, Event::Raw(text)) => text.clone(),
            (Self::Array, Event::Json(data)) => {
                let begin = if first { "[" } else { ",\r\n" };
                let end = if last { "]" } else { "" };
                format!("{begin}{data}{end}")
            }
            (Self::SseCrlf, Event::Json(data)) => format!("data: {data}\r\n\r\n"),
            (Self::Sse, Event::Json(data)) => format!("data: {data}\n\n"),
            (Self::NamedSse, Event::Json(data)) => {
                let name = data["type"].as_str().unwrap_or_default();
                format!("event: {name}\ndata: {data}\n\n")
            }
        };
        Bytes::from(text)
    }
}

/// Removes the usage or changes its numbers as the scenario requires, at any depth of the value.
pub(crate) fn change_usage(value: &mut Value, scenario: &Scenario) {
    let change: fn(&mut Value) = match scenario {
        Scenario::NoUsage => |usage| *usage = Value::Null,
        Scenario::NegativeUsage => |usage| change_numbers(usage, |n| -1 - n),
        Scenario::AbsurdUsage => |usage| change_numbers(usage, |n| i64::MAX - n),
        _ => return,
    };
    apply_to_usage(value, change);
}

/// Applies `change` to each usage in the value, and removes each that is null afterwards.
fn apply_to_usage(value: &mut Value, change: fn(&mut Value)) {
    match value {
        Value::Object(object) => {
            for (name, value) in object.iter_mut() {
                if name == "usage" || name == "usageMetadata" {
                    change(value);
                } else {
                    apply_to_usage(value, change);
                }
            }
            object.retain(|name, value| !(name.starts_with("usage") && value.is_null()));
        }
        Value::Array(list) => list
            .iter_mut()
            .for_each(|value| apply_to_usage(value, change)),
        _ => {}
    }
}

fn change_numbers(value: &mut Value, change: fn(i64) -> i64) {
    match value {
        Value::Number(number) => *value = json!(change(number.as_i64().unwrap_or(0))),
        Value::Object(object) => object.values_mut().for_each(|v| change_numbers(v, change)),
        Value::Array(list) => list.iter_mut().for_each(|v| change_numbers(v, change)),
        _ => {}
    }
}

/// Inserts bytes that are not UTF-8 into the first string value.
pub(crate) fn insert_invalid_utf8(bytes: &Bytes) -> Bytes {
    let Some(at) = memchr::memmem::find(bytes, b":\"") else {
        return Bytes::from_static(b"\xff\xfe");
    };
    let (before, after) = bytes.split_at(at + 2);
    Bytes::from([before, b"\xff\xfe\xc3", after].concat())
}

/// Splits and joins the bytes of events as a network may do: some events arrive together, some in two pieces.
pub(crate) fn shuffle(events: Vec<Bytes>, rng: &mut Rng) -> Vec<Bytes> {
    let mut sent: Vec<Bytes> = Vec::with_capacity(events.len());
    for event in events {
        match (rng.below(4), sent.last_mut()) {
            (0, Some(last)) => *last = Bytes::from([&last[..], &event[..]].concat()),
            (1, _) if event.len() > 1 => {
                let at = 1 + rng.below(event.len() - 1);
                sent.push(event.slice(..at));
                sent.push(event.slice(at..));
            }
            _ => sent.push(event),
        }
    }
    sent
}
