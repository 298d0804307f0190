//! A borrowed look at a piece of a reply that is passed on: no more than money and the end need.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, Visitor};
use serde_json::value::RawValue;

use super::super::error;
use super::super::usage::UsageMetadata;
use super::chunk::malformed;
use crate::error::Garbled;

/// What is seen of a reply or a piece of one.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct Scan<'a> {
    candidates: Option<Vec<Candidate<'a>>>,
    prompt_feedback: Option<Feedback>,
    pub(in super::super) usage_metadata: Option<UsageMetadata>,
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
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<IgnoredAny>,
}

impl<'a> Scan<'a> {
    /// Looks at one. An error in it is the upstream's.
    pub(in super::super) fn of(json: &'a str) -> Result<Self, Garbled> {
        let scan: Self = serde_json::from_str(json).map_err(|fault| malformed(&fault))?;
        let Some(raw) = scan.error else {
            return Ok(scan);
        };
        let error = serde_json::from_str(raw.get()).map_err(|fault| malformed(&fault))?;
        Err(Garbled::Upstream(error::words_of(&error)))
    }

    /// Bytes of visible text, thinking and arguments.
    pub(in super::super) fn text_bytes(&self) -> u64 {
        self.parts()
            .map(|part| {
                let args = part.function_call.as_ref().and_then(|call| call.args);
                let text = part.text.as_ref().map_or(0, |text| text.0);
                text + args.map_or(0, |args| args.get().len() as u64)
            })
            .sum()
    }

    /// Whether there is a reply in it, or the word that there is none.
    pub(in super::super) fn is_reply(&self) -> bool {
        self.is_blocked()
            || self
                .candidates
                .as_ref()
                .is_some_and(|list| !list.is_empty())
    }

    /// Whether it says that the prompt was refused.
    pub(in super::super) fn is_blocked(&self) -> bool {
        let feedback = self.prompt_feedback.as_ref();
        feedback.is_some_and(|feedback| feedback.block_reason.is_some())
    }

    /// Each reply in it: its index, whether it ends here, whether it has content.
    pub(in super::super) fn candidates(&self) -> impl Iterator<Item = (u32, bool, bool)> {
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

/// `json`, which `scan` looked at, in three pieces where its model is to be called `model`: what stands before, the name, what
/// stands after. None where it is called so already.
pub(in super::super) fn splice_model<'j>(
    json: &'j [u8],
    scan: &Scan<'_>,
    model: &str,
) -> Option<(&'j [u8], Vec<u8>, &'j [u8])> {
    let there = scan.model_version?.get();
    let name = serde_json::to_vec(model).ok()?;
    if there.as_bytes() == name {
        return None;
    }
    // A raw value is a slice of the text it was read from.
    let start = (there.as_ptr() as usize).checked_sub(json.as_ptr() as usize)?;
    let (before, rest) = json.split_at_checked(start)?;
    let (_, after) = rest.split_at_checked(there.len())?;
    Some((before, name, after))
}

/// The length of a text without keeping it.
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
