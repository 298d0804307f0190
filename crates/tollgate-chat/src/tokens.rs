//! Token estimates, for upstreams that report no usage.
//!
//! No vendor's tokenizer is used, but averages of current vocabularies: a token is about four ASCII characters, two characters of other
//! alphabets, or one Chinese, Japanese or Korean character. Charges based on an estimate are marked as such.

use crate::hub::{OutputFormat, Part, PartKind, Request, Source, ToolKind};

/// Tokens for the markers around a turn or tool.
const TURN_TOKENS: u64 = 3;

/// Tokens counted for an image of unknown size.
pub const IMAGE_TOKENS: u64 = 1_000;

/// Tokens counted for a generated image. Providers charge 1,120 to 1,300 for one of about 1024 × 1024.
pub const GENERATED_IMAGE_TOKENS: u64 = 1_300;

/// Bytes of text that [`estimate_bytes`] counts as one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The number of bytes of text that a generated part is counted as: media count as a text with the same number of tokens.
pub fn generated_bytes(part: &PartKind) -> u64 {
    match part {
        PartKind::Text { text, .. }
        | PartKind::Reasoning { text, .. }
        | PartKind::Refusal(text) => text.len() as u64,
        PartKind::ToolCall {
            name, arguments, ..
        } => (name.len() + arguments.len()) as u64,
        PartKind::ToolResult { content, .. } => {
            content.iter().map(|part| generated_bytes(&part.kind)).sum()
        }
        PartKind::RedactedReasoning(opaque) => opaque.data.len() as u64,
        PartKind::Image { .. } => GENERATED_IMAGE_TOKENS * BYTES_PER_TOKEN,
        PartKind::Audio { source } | PartKind::Video { source } | PartKind::File { source, .. } => {
            match source {
                Source::Base64 { media_type, data } => {
                    generated_media_bytes(media_type, data.len() as u64)
                }
                Source::Text(text) => text.len() as u64,
                Source::Url { .. } | Source::FileId(_) => IMAGE_TOKENS * BYTES_PER_TOKEN,
            }
        }
        PartKind::FormatSpecific { value, .. } => value.to_string().len() as u64,
    }
}

/// The number of bytes of text that generated media with that number of base64 digits are counted as. Speech has 25 tokens a second (Gemini; OpenAI
/// has 20); a second has 64,000 digits as uncompressed 24 kHz audio and about 20,000 as MP3.
pub fn generated_media_bytes(media_type: &str, digits: u64) -> u64 {
    const PCM_DIGITS_PER_TOKEN: u64 = 2_560;
    const AUDIO_DIGITS_PER_TOKEN: u64 = 800;
    let is = |kind: &str| {
        media_type
            .get(..kind.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(kind))
    };
    match () {
        () if is("image/") => GENERATED_IMAGE_TOKENS * BYTES_PER_TOKEN,
        () if is("audio/L16") || is("audio/pcm") => digits * BYTES_PER_TOKEN / PCM_DIGITS_PER_TOKEN,
        () if is("audio/") => digits * BYTES_PER_TOKEN / AUDIO_DIGITS_PER_TOKEN,
        () => digits,
    }
}

/// Estimates the tokens of text that arrives in pieces. The sum does not depend on where pieces are cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenEstimator {
    /// Quarters of a token.
    quarters: u64,
}

impl TokenEstimator {
    /// Adds a piece of text.
    pub fn add(&mut self, text: &str) {
        self.quarters += if text.is_ascii() {
            text.len() as u64
        } else {
            text.chars().map(char_quarters).sum()
        };
    }

    /// Tokens so far, rounded up.
    pub fn tokens(&self) -> u64 {
        self.quarters.div_ceil(4)
    }
}

/// Estimated tokens of `text`.
pub fn estimate_text(text: &str) -> u64 {
    let mut counter = TokenEstimator::default();
    counter.add(text);
    counter.tokens()
}

/// Estimated tokens of text of which only the length in bytes is known.
pub fn estimate_bytes(bytes: u64) -> u64 {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// Estimated tokens of a JSON body of which `payload` bytes are base64 data: one token for four ASCII bytes, or for three bytes of other alphabets.
pub fn estimate_body(body: &[u8], payload: u64) -> u64 {
    let text = (body.len() as u64).saturating_sub(payload);
    if body.is_ascii() {
        return estimate_bytes(text);
    }
    let other = body.iter().filter(|byte| !byte.is_ascii()).count() as u64;
    estimate_bytes(text.saturating_sub(other)) + other.div_ceil(3)
}

/// Estimated tokens of a request: texts, tool definitions and calls, 3 tokens per turn and tool, [`IMAGE_TOKENS`] per image, other
/// attachments by their size.
pub fn estimate_request(request: &Request) -> u64 {
    let mut counter = TokenEstimator::default();
    let mut extra = 0;
    for turn in &request.turns {
        extra += TURN_TOKENS;
        for part in &turn.parts {
            extra += estimate_part(part, &mut counter);
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
            ToolKind::FormatSpecific { value, .. } => counter.add(&value.to_string()),
        }
    }
    if let Some(OutputFormat::Schema { schema, .. }) = &request.output {
        counter.add(&schema.to_string());
    }
    counter.tokens() + extra
}

/// Adds a part's texts to `counter`. Returns the tokens of its attachments.
fn estimate_part(part: &Part, counter: &mut TokenEstimator) -> u64 {
    let by_size = |source: &Source| match source {
        Source::Text(text) => estimate_text(text),
        // Base64 has 4/3 of the length of the bytes; documents and audio have some tens of bytes per token.
        Source::Base64 { data, .. } => (data.len() as u64) / 40,
        Source::Url { .. } | Source::FileId(_) => IMAGE_TOKENS,
    };
    match &part.kind {
        PartKind::Text { text, .. }
        | PartKind::Reasoning { text, .. }
        | PartKind::Refusal(text) => counter.add(text),
        PartKind::ToolCall {
            name, arguments, ..
        } => {
            counter.add(name);
            counter.add(arguments);
        }
        PartKind::ToolResult { content, .. } => {
            return content
                .iter()
                .map(|part| estimate_part(part, counter))
                .sum();
        }
        PartKind::Image { .. } => return IMAGE_TOKENS,
        PartKind::Audio { source } | PartKind::Video { source } | PartKind::File { source, .. } => {
            return by_size(source);
        }
        PartKind::RedactedReasoning(opaque) => counter.add(&opaque.data),
        PartKind::FormatSpecific { value, .. } => counter.add(&value.to_string()),
    }
    0
}

/// Estimated size of a character in quarters of a token.
fn char_quarters(c: char) -> u64 {
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
    fn estimates_do_not_depend_on_chunk_borders() {
        assert_eq!(estimate_text(""), 0);
        assert_eq!(estimate_text("a"), 1);
        assert_eq!(estimate_text("The quick brown fox."), 5);
        assert_eq!(estimate_text("猫が好き"), 4);
        let mut counter = TokenEstimator::default();
        for c in "The quick 猫 fox.".chars() {
            counter.add(c.encode_utf8(&mut [0; 4]));
        }
        assert_eq!(counter.tokens(), estimate_text("The quick 猫 fox."));
    }
}
