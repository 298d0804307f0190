//! An honest count of tokens where no upstream gives one.
//!
//! No vendor's tokenizer is here. The count goes by what texts of each script take on average in today's vocabularies: about four
//! ASCII characters a token in words, one token for a character of Chinese, Japanese or Korean, two characters of other alphabets.
//! It is deterministic, additive enough for streams, and marked as an estimate wherever it is charged.

use crate::hub::{Kind, OutputFormat, Part, Request, Source, ToolKind};

/// What a turn's or a tool's framing takes.
const TURN_TOKENS: u64 = 3;

/// What a picture of unknown size counts.
pub const IMAGE_TOKENS: u64 = 1_000;

/// Counts text as it comes, piece by piece, in any cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counter {
    /// Quarters of a token.
    quarters: u64,
}

impl Counter {
    /// Takes a piece of text.
    pub fn add(&mut self, text: &str) {
        self.quarters += if text.is_ascii() {
            text.len() as u64
        } else {
            text.chars().map(quarters_of).sum()
        };
    }

    /// Tokens so far, rounded up.
    pub fn tokens(&self) -> u64 {
        self.quarters.div_ceil(4)
    }
}

/// The tokens of `text`.
pub fn count(text: &str) -> u64 {
    let mut counter = Counter::default();
    counter.add(text);
    counter.tokens()
}

/// The tokens of text of which only the number of bytes is known.
pub fn of_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}

/// The tokens of a whole conversation: texts, tool definitions and calls, a few per turn for its framing, [`IMAGE_TOKENS`] per
/// picture, and other attachments by their size.
pub fn of_request(request: &Request) -> u64 {
    let mut counter = Counter::default();
    let mut extra = 0;
    for turn in &request.turns {
        extra += TURN_TOKENS;
        for part in &turn.parts {
            extra += of_part(part, &mut counter);
        }
    }
    for tool in &request.tools {
        extra += TURN_TOKENS;
        match &tool.kind {
            ToolKind::Function {
                name,
                description,
                parameters,
                ..
            } => {
                counter.add(name);
                counter.add(description.as_deref().unwrap_or_default());
                counter.add(
                    &parameters
                        .as_ref()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                );
            }
            ToolKind::Custom {
                name, description, ..
            } => {
                counter.add(name);
                counter.add(description.as_deref().unwrap_or_default());
            }
            ToolKind::WebSearch { .. } => {}
            ToolKind::Foreign { value, .. } => counter.add(&value.to_string()),
        }
    }
    if let Some(OutputFormat::Schema { schema, .. }) = &request.output {
        counter.add(&schema.to_string());
    }
    counter.tokens() + extra
}

/// Adds a part's texts to `counter`; returns what it counts beyond them.
fn of_part(part: &Part, counter: &mut Counter) -> u64 {
    let by_size = |source: &Source| match source {
        Source::Text(text) => count(text),
        // Base64 is 4/3 of the bytes; a token of a document or of sound is some tens of bytes.
        Source::Base64 { data, .. } => (data.len() as u64) / 40,
        Source::Url { .. } | Source::FileId(_) => IMAGE_TOKENS,
    };
    match &part.kind {
        Kind::Text { text, .. } | Kind::Reasoning { text, .. } | Kind::Refusal(text) => {
            counter.add(text)
        }
        Kind::ToolCall {
            name, arguments, ..
        } => {
            counter.add(name);
            counter.add(arguments);
        }
        Kind::ToolResult { content, .. } => {
            return content.iter().map(|part| of_part(part, counter)).sum();
        }
        Kind::Image { .. } => return IMAGE_TOKENS,
        Kind::Audio { source } | Kind::Video { source } | Kind::File { source, .. } => {
            return by_size(source);
        }
        Kind::Redacted(opaque) => counter.add(&opaque.data),
        Kind::Foreign { value, .. } => counter.add(&value.to_string()),
    }
    0
}

fn quarters_of(c: char) -> u64 {
    match u32::from(c) {
        0..=0x7f => 1,
        0x80..=0x2fff => 2,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_do_not_depend_on_the_cut() {
        assert_eq!(count(""), 0);
        assert_eq!(count("a"), 1);
        assert_eq!(count("The quick brown fox."), 5);
        assert_eq!(count("猫が好き"), 4);
        let mut counter = Counter::default();
        for c in "The quick 猫 fox.".chars() {
            counter.add(c.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(counter.tokens(), count("The quick 猫 fox."));
    }
}
