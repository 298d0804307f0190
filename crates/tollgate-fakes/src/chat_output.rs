//! The prompt of a chat model and its output, independent of the format.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sample::sample;
use crate::scenario::Scenario;
use crate::tables::values::plain;
use crate::tokens::{Tokens, tokens};

/// Bytes of text that have as many tokens as a generated image: 1,290 tokens, as Gemini counts.
pub(crate) const IMAGE_BYTES: u64 = 4 * 1_290;

/// A tool that the model may call.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Tool {
    name: String,
    #[serde(default)]
    schema: Value,
    /// Whether the tool accepts a text instead of arguments.
    #[serde(default)]
    custom: bool,
}

/// Whether the model must, may or must not call tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Choice {
    Auto,
    Never,
    /// The model calls the tool [`ChatPrompt::tool`], or any tool if that is not set.
    Any,
}

/// The prompt of the model, independent of the format.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChatPrompt {
    /// The last user text.
    pub(crate) text: String,
    /// The attachments of the last user turn: type and size, or URL.
    media: Vec<String>,
    /// The tool results at the end of the history; `None` if there are none.
    results: Option<String>,
    tools: Vec<Tool>,
    choice: Choice,
    tool: Option<String>,
    /// Whether several calls in one output are allowed.
    parallel: bool,
    /// Whether thinking is enabled.
    thinking: bool,
    /// The schema of the output.
    schema: Option<Value>,
    stops: Vec<String>,
    /// The maximum number of output tokens.
    limit: Option<u64>,
    /// The number of requested outputs.
    count: Option<usize>,
    /// Whether the output includes an image.
    #[serde(default)]
    draws: bool,
}

/// How an output ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "ending", content = "stop")]
enum Ending {
    Natural,
    /// The output ends at this stop sequence.
    Stopped(String),
    Length,
    Refused,
    Filtered,
    Blocked,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize)]
struct Call {
    name: String,
    arguments: Value,
    /// The arguments as JSON text; for a custom tool, its input unchanged.
    text: String,
    custom: bool,
}

/// The output of the model.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ChatOutput {
    /// The thoughts, split into pieces.
    thoughts: Vec<String>,
    thought: String,
    /// The text, split into pieces; empty if there is no text.
    pieces: Vec<String>,
    text: String,
    calls: Vec<Call>,
    /// Whether an image follows the text.
    draws: bool,
    #[serde(flatten)]
    ending: Ending,
    tokens: Tokens,
    /// A number that is unique among the requests of the process.
    #[serde(skip)]
    pub(crate) number: u64,
}

impl ChatOutput {
    /// Decides on the output for request `number`; a text is split into at most `chunks` pieces.
    pub(crate) fn decide(
        prompt: &ChatPrompt,
        scenario: &Scenario,
        number: u64,
        chunks: usize,
    ) -> Self {
        let calls = match scenario {
            Scenario::Endless
            | Scenario::HugeEvent { .. }
            | Scenario::Refusal
            | Scenario::Blocked => Vec::new(),
            _ => tool_calls(prompt),
        };
        let has_text = calls.is_empty() || prompt.text.contains("aloud");
        let text = if has_text {
            reply_text(prompt)
        } else {
            String::new()
        };
        let (text, ending) = end_text(prompt, scenario, text, !calls.is_empty());
        let thinks = prompt.thinking && prompt.text.contains("think");
        let thought = if thinks {
            format!("I am asked: {}", prompt.text)
        } else {
            String::new()
        };
        let input = prompt.results.as_deref().unwrap_or(&prompt.text);
        let draws = prompt.draws && ending == Ending::Natural && calls.is_empty();
        let image_bytes = if draws { IMAGE_BYTES } else { 0 };
        let call_bytes = calls.iter().map(|call| call.text.len()).sum::<usize>();
        let bytes = text.len() + call_bytes + image_bytes as usize;
        let count = prompt.count.unwrap_or(1).max(1);
        let tokens = tokens(input, bytes * count, thinks);
        let pieces_of_text = match scenario {
            Scenario::HugeEvent { bytes } => vec!["a".repeat(*bytes)],
            _ => pieces(&text, chunks),
        };
        Self {
            thoughts: pieces(&thought, chunks),
            thought,
            text: pieces_of_text.concat(),
            pieces: pieces_of_text,
            calls,
            draws,
            ending,
            tokens,
            number,
        }
    }

    /// The reported usage.
    pub(crate) fn tokens(&self) -> Tokens {
        self.tokens
    }

    /// The number of bytes of the texts and arguments, plus [`IMAGE_BYTES`] for an image.
    pub(crate) fn visible_bytes(&self) -> u64 {
        let calls = self.calls.iter().map(|call| call.text.len());
        let image = if self.draws { IMAGE_BYTES } else { 0 };
        (self.text.len() + calls.sum::<usize>()) as u64 + image
    }

    /// The output as JSON, in the form that the templates of the tables use.
    pub(crate) fn json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The text of a response that is not ended early.
fn reply_text(prompt: &ChatPrompt) -> String {
    if let Some(schema) = &prompt.schema {
        return sample(schema, 0).to_string();
    }
    let media: String = prompt.media.iter().map(|one| format!(" [{one}]")).collect();
    let input = prompt.results.as_ref().unwrap_or(&prompt.text);
    format!("echo: {input}{media}")
}

/// Truncates the text as the scenario, the stop sequences or the limit of tokens require. Returns it and how it ends.
fn end_text(
    prompt: &ChatPrompt,
    scenario: &Scenario,
    text: String,
    calls: bool,
) -> (String, Ending) {
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

/// The first `bytes` bytes at most, without splitting a character.
fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The calls of tools that the prompt requests.
fn tool_calls(prompt: &ChatPrompt) -> Vec<Call> {
    let named = |name: &str| prompt.tools.iter().find(|tool| tool.name == name);
    let wanted = tool_to_call(&prompt.text);
    let given = wanted.and_then(|(_, rest)| given_arguments(rest));
    let wanted = wanted.and_then(|(name, _)| named(name));
    let tool = match (&prompt.choice, &prompt.tool) {
        (Choice::Never, _) => None,
        (Choice::Any, Some(name)) => named(name),
        (Choice::Any, None) => wanted.or(prompt.tools.first()),
        (Choice::Auto, _) => wanted.filter(|_| prompt.results.is_none()),
    };
    let Some(tool) = tool else {
        return Vec::new();
    };
    let call = |nth: usize| {
        let arguments = match (&given, tool.custom) {
            (Some(given), _) => given.clone(),
            (None, true) => json!(format!("input {}", nth + 1)),
            (None, false) => sample(&tool.schema, nth),
        };
        Call {
            name: tool.name.clone(),
            text: plain(&arguments),
            arguments,
            custom: tool.custom,
        }
    };
    let twice = prompt.parallel && prompt.text.contains("twice");
    (0..if twice { 2 } else { 1 }).map(call).collect()
}

/// The name after `call tool`, and the text after it. `None` if there is no name.
fn tool_to_call(text: &str) -> Option<(&str, &str)> {
    let rest = text.split_once("call tool ")?.1.trim_start();
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let end = rest.find(|c| !legal(c)).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(['.', ':']);
    (!name.is_empty()).then_some((name, &rest[end..]))
}

/// The JSON value after `with`: the arguments, or the text for a custom tool. `None` if there is none.
fn given_arguments(rest: &str) -> Option<Value> {
    let json = rest.strip_prefix(" with ")?;
    let mut values = serde_json::Deserializer::from_str(json).into_iter();
    values.next()?.ok()
}

/// Splits the text into at most `count` pieces of about the same length.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_may_give_the_arguments_of_a_call() {
        for (text, name, arguments) in [
            ("call tool f", "f", None),
            ("call tool f twice", "f", None),
            (
                r#"call tool a.b with {"c": "d"} now"#,
                "a.b",
                Some(json!({"c": "d"})),
            ),
            (r#"call tool f with "text""#, "f", Some(json!("text"))),
            ("call tool f with care", "f", None),
        ] {
            let (found, rest) = tool_to_call(text).unwrap();
            assert_eq!((found, given_arguments(rest)), (name, arguments), "{text}");
        }
    }
}
