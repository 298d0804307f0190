//! Parses only the parts of a response or stream chunk that forwarding needs: usage, finish reasons, length of text, the model's name.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, Visitor};
use serde_json::value::RawValue;

use crate::error::MalformedResponse;
use crate::generate_content::error::{self, malformed};
use crate::generate_content::usage::UsageMetadata;
use crate::tokens::generated_media_bytes;

/// The parts of a response or chunk that forwarding needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChunkSummary<'a> {
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<Feedback>,
    pub(crate) usage_metadata: Option<UsageMetadata>,
    #[serde(borrow)]
    model_version: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    finish_reason: Option<IgnoredAny>,
    index: Option<u32>,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    parts: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    text: Option<TextLength>,
    #[serde(borrow)]
    function_call: Option<Call<'a>>,
    #[serde(borrow, alias = "inline_data")]
    inline_data: Option<InlineData<'a>>,
    #[serde(borrow, alias = "executable_code")]
    executable_code: Option<&'a RawValue>,
    #[serde(borrow, alias = "code_execution_result")]
    code_execution_result: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    #[serde(borrow, alias = "mime_type")]
    mime_type: Option<Cow<'a, str>>,
    data: Option<TextLength>,
}

impl Part<'_> {
    /// The length that the part is counted with, in bytes of text.
    fn bytes(&self) -> u64 {
        let raw = |value: &Option<&RawValue>| value.map_or(0, |raw| raw.get().len() as u64);
        let text = self.text.as_ref().map_or(0, |text| text.0);
        let call = self.function_call.as_ref().map_or(0, Call::bytes);
        let media = self.inline_data.as_ref().map_or(0, |inline| {
            let digits = inline.data.as_ref().map_or(0, |data| data.0);
            generated_media_bytes(inline.mime_type.as_deref().unwrap_or_default(), digits)
        });
        text + call + media + raw(&self.executable_code) + raw(&self.code_execution_result)
    }
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

impl Call<'_> {
    fn bytes(&self) -> u64 {
        self.args.map_or(0, |args| args.get().len() as u64)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<IgnoredAny>,
}

impl<'a> ChunkSummary<'a> {
    /// Parses a response or chunk. An error object in it is returned as [`MalformedResponse::Upstream`].
    pub(crate) fn parse(json: &'a str) -> Result<Self, MalformedResponse> {
        let summary: Self = serde_json::from_str(json).map_err(|error| malformed(&error))?;
        let Some(raw) = summary.error else {
            return Ok(summary);
        };
        let error = serde_json::from_str(raw.get()).map_err(|error| malformed(&error))?;
        Err(MalformedResponse::Upstream(error::parse_error(&error)))
    }

    /// Bytes of visible text, thinking, calls and code; images and audio count as [`generated_media_bytes`] estimates.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.parts().map(Part::bytes).sum()
    }

    /// Whether there is a candidate or a blocked prompt.
    pub(crate) fn has_candidates_or_block(&self) -> bool {
        self.is_prompt_blocked()
            || self
                .candidates
                .as_ref()
                .is_some_and(|list| !list.is_empty())
    }

    /// Whether the prompt was blocked.
    pub(crate) fn is_prompt_blocked(&self) -> bool {
        let feedback = self.prompt_feedback.as_ref();
        feedback.is_some_and(|feedback| feedback.block_reason.is_some())
    }

    /// For each candidate: its index, whether it finishes here, whether it has content.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (u32, bool, bool)> {
        let candidates = self.candidates.iter().flatten();
        candidates.map(|candidate| {
            let content = candidate.content.as_ref();
            let parts = content.and_then(|content| content.parts.as_ref());
            let has_content = parts.is_some_and(|parts| !parts.is_empty());
            (
                candidate.index.unwrap_or(0),
                candidate.finish_reason.is_some(),
                has_content,
            )
        })
    }

    fn parts(&self) -> impl Iterator<Item = &Part<'a>> {
        let contents = self
            .candidates
            .iter()
            .flatten()
            .filter_map(|c| c.content.as_ref());
        contents
            .filter_map(|content| content.parts.as_ref())
            .flatten()
    }
}

/// Splits `json`, from which `summary` was parsed, around its model name: what precedes it, the JSON
/// of `model`, what follows. `None` if it names no model, or has that name already.
pub(crate) fn split_around_model<'j>(
    json: &'j [u8],
    summary: &ChunkSummary<'_>,
    model: &str,
) -> Option<(&'j [u8], Vec<u8>, &'j [u8])> {
    let there = summary.model_version?.get();
    let name = serde_json::to_vec(model).ok()?;
    if there.as_bytes() == name {
        return None;
    }
    // A raw value is a slice of the text that it was parsed from.
    let start = (there.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let (before, rest) = json.split_at_checked(start)?;
    let (_, after) = rest.split_at_checked(there.len())?;
    Some((before, name, after))
}

/// The length of a string, without keeping it.
struct TextLength(u64);

impl<'de> Deserialize<'de> for TextLength {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Length;
        impl Visitor<'_> for Length {
            type Value = TextLength;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text")
            }
            fn visit_str<E>(self, text: &str) -> Result<TextLength, E> {
                Ok(TextLength(text.len() as u64))
            }
        }
        from.deserialize_str(Length)
    }
}

pub(crate) fn as_utf8(json: &[u8]) -> Result<&str, MalformedResponse> {
    std::str::from_utf8(json)
        .map_err(|_| MalformedResponse::Invalid("JSON that is not UTF-8".to_owned()))
}
