//! What a chat model was asked and what it answers, independent of the format.

use serde_json::Value;

use crate::directive;
use crate::encoding::Attachment;
use crate::rng::hash;
use crate::sample::sample;
use crate::scenario::Scenario;
use crate::tokens::{Tokens, tokens};

/// A tool that the model may call.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
    /// A tool that takes a text instead of arguments.
    pub(crate) custom: bool,
}

/// Whether the model calls tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Choice {
    #[default]
    Auto,
    Never,
    Any,
    One(String),
}

/// What the model was asked, whatever the format.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChatPrompt {
    /// The last user text.
    pub(crate) text: String,
    /// What the last user turn holds beside text.
    pub(crate) media: Vec<Attachment>,
    /// The results of tools that stand at the end of the history.
    pub(crate) results: Option<String>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) choice: Choice,
    /// Whether several calls in one answer are allowed.
    pub(crate) parallel: bool,
    /// Whether thinking is on.
    pub(crate) thinking: bool,
    /// The schema of the answer; anything at all if only JSON is wanted.
    pub(crate) schema: Option<Value>,
    pub(crate) stops: Vec<String>,
    pub(crate) limit: Option<u64>,
    /// How many answers.
    pub(crate) count: usize,
}

/// How an answer ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    Natural,
    /// At a stop sequence: this one.
    Stopped(String),
    Length,
    Refused,
    Filtered,
    Blocked,
}

/// A call of a tool.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) custom: bool,
}

impl Call {
    /// The arguments as JSON text; the input of a custom tool as it is.
    pub(crate) fn text(&self) -> String {
        match (&self.arguments, self.custom) {
            (Value::String(text), true) => text.clone(),
            (arguments, _) => arguments.to_string(),
        }
    }
}

/// What the model says.
#[derive(Debug, Clone)]
pub(crate) struct ChatOutput {
    /// The thoughts, in pieces.
    pub(crate) thoughts: Vec<String>,
    /// The text, in pieces; empty if there is no text.
    pub(crate) pieces: Vec<String>,
    pub(crate) calls: Vec<Call>,
    pub(crate) ending: Ending,
    pub(crate) tokens: Tokens,
    /// A number for the ids of this answer.
    pub(crate) serial: u64,
}

impl ChatOutput {
    /// Decides. `serial` numbers the requests; a text is cut into at most `chunks` pieces.
    pub(crate) fn decide(
        prompt: &ChatPrompt,
        scenario: &Scenario,
        serial: u64,
        chunks: usize,
    ) -> Self {
        let calls = match scenario {
            Scenario::Endless
            | Scenario::HugeEvent { .. }
            | Scenario::Refusal
            | Scenario::Blocked => Vec::new(),
            _ => calls(prompt),
        };
        let speaks = calls.is_empty() || prompt.text.contains("aloud");
        let text = if speaks {
            answer(prompt)
        } else {
            String::new()
        };
        let (text, ending) = end(prompt, scenario, text, !calls.is_empty());
        let thinks = prompt.thinking && directive::thinks(&prompt.text);
        let thoughts = if thinks {
            pieces(&format!("I am asked: {}", prompt.text), chunks)
        } else {
            Vec::new()
        };
        let asked = prompt.results.as_deref().unwrap_or(&prompt.text);
        let found = text.len() + calls.iter().map(|call| call.text().len()).sum::<usize>();
        let count = prompt.count.max(1);
        Self {
            thoughts,
            pieces: match scenario {
                Scenario::HugeEvent { bytes } => vec!["a".repeat(*bytes)],
                _ => pieces(&text, chunks),
            },
            calls,
            ending,
            tokens: tokens(asked, found * count, thinks),
            serial,
        }
    }

    pub(crate) fn text(&self) -> String {
        self.pieces.concat()
    }

    pub(crate) fn thought(&self) -> String {
        self.thoughts.concat()
    }

    /// An id of this answer: the prefix and letters that depend on the number and the use.
    pub(crate) fn id(&self, prefix: &str, of: &str, index: usize) -> String {
        let first = hash(&format!("{of} {index} of {}", self.serial));
        let second = hash(&format!("{first}"));
        format!("{prefix}{first:016x}{:08x}", second >> 32)
    }
}

/// The text of an answer that runs to its end.
fn answer(prompt: &ChatPrompt) -> String {
    if let Some(schema) = &prompt.schema {
        return sample(schema, 0).to_string();
    }
    let media: String = prompt.media.iter().map(Attachment::acknowledge).collect();
    let heard = prompt.results.as_ref().unwrap_or(&prompt.text);
    format!("echo: {heard}{media}")
}

/// Where the text ends, and why.
fn end(prompt: &ChatPrompt, scenario: &Scenario, text: String, calls: bool) -> (String, Ending) {
    let half = |text: &str| head(text, text.len() / 2).to_owned();
    match scenario {
        Scenario::Refusal => (text, Ending::Refused),
        Scenario::Blocked => (String::new(), Ending::Blocked),
        Scenario::ContentFilter => (half(&text), Ending::Filtered),
        Scenario::LengthStop => (half(&text), Ending::Length),
        Scenario::HugeEvent { .. } | Scenario::Endless => (text, Ending::Natural),
        _ => {
            let found = prompt.stops.iter().filter(|stop| !stop.is_empty());
            let found = found.filter_map(|stop| Some((text.find(stop.as_str())?, stop)));
            if let Some((at, stop)) = found.min_by_key(|(at, _)| *at) {
                return (text[..at].to_owned(), Ending::Stopped(stop.clone()));
            }
            let max = prompt.limit.map_or(usize::MAX, |limit| 4 * limit as usize);
            if text.len() > max && !calls {
                return (head(&text, max).to_owned(), Ending::Length);
            }
            (text, Ending::Natural)
        }
    }
}

/// At most the first `bytes` bytes, whole characters only.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn calls(prompt: &ChatPrompt) -> Vec<Call> {
    let named = |name: &str| prompt.tools.iter().find(|tool| tool.name == name);
    let wanted = directive::tool(&prompt.text).and_then(named);
    let tool = match &prompt.choice {
        Choice::Never => None,
        Choice::One(name) => named(name),
        Choice::Any => wanted.or(prompt.tools.first()),
        Choice::Auto if prompt.results.is_some() => None,
        Choice::Auto => wanted,
    };
    let twice = prompt.parallel && prompt.text.contains("twice");
    let turns = 0..if twice { 2 } else { 1 };
    let call = |(tool, turn): (&Tool, usize)| Call {
        name: tool.name.clone(),
        arguments: if tool.custom {
            Value::String(format!("input {}", turn + 1))
        } else {
            sample(&tool.schema, turn)
        },
        custom: tool.custom,
    };
    tool.into_iter()
        .flat_map(|tool| turns.clone().map(move |turn| (tool, turn)))
        .map(call)
        .collect()
}

/// The text in at most `count` pieces of about the same length.
pub(crate) fn pieces(text: &str, count: usize) -> Vec<String> {
    let size = text.len().div_ceil(count.max(1)).max(1);
    let mut pieces = Vec::new();
    let mut piece = String::new();
    for c in text.chars() {
        piece.push(c);
        if piece.len() >= size {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}
