//! Reads model, usage, finish reasons and text length from a response or chunk that is passed on.

use serde::de::{MapAccess, SeqAccess};
use serde_json::Value;

use crate::chat_completions::error::{self, is_truthy};
use crate::chat_completions::usage;
use crate::error::MalformedResponse;
use crate::hub::Usage;
use crate::lazy_json::{LazyVisitor, RawJson, Scalar, VisitWith, next_key, visit_json};
use crate::tokens::generated_media_bytes;

/// What is read from one response or chunk.
#[derive(Default)]
pub(in crate::chat_completions) struct ResponseSummary<'a> {
    is_object: bool,
    /// The model's name as written in the JSON text, with quotes.
    pub(in crate::chat_completions) model: Option<&'a str>,
    pub(in crate::chat_completions) usage: Option<Usage>,
    /// Number of choices. `None` if there is no `choices`.
    pub(in crate::chat_completions) choices: Option<usize>,
    /// Bytes of text, reasoning and tool calls; images and audio count as [`generated_media_bytes`] estimates.
    pub(in crate::chat_completions) text_bytes: u64,
    /// Choices that it contains, as a bit per index.
    pub(in crate::chat_completions) present: u128,
    /// Choices that have a `finish_reason` in it, as a bit per index.
    pub(in crate::chat_completions) finished: u128,
    error: Option<Value>,
}

/// Summarizes a response or chunk. An error object instead of it is [`MalformedResponse::Upstream`].
pub(in crate::chat_completions) fn summarize_response(
    data: &[u8],
) -> Result<ResponseSummary<'_>, MalformedResponse> {
    let mut summary = ResponseSummary::default();
    visit_json(data, Root(&mut summary))
        .map_err(|error| MalformedResponse::Invalid(error.message))?;
    if !summary.is_object {
        return Err(MalformedResponse::Invalid(
            "it is not a JSON object".to_owned(),
        ));
    }
    match summary.error.take() {
        Some(error) => Err(error::read_inline_error(&error)),
        None => Ok(summary),
    }
}

/// The `usage` of a chunk as written in the JSON text.
pub(super) fn find_usage_text(data: &[u8]) -> Option<&str> {
    let mut found = None;
    visit_json(data, UsageText(&mut found)).ok()?;
    found
}

struct UsageText<'f, 'a>(&'f mut Option<&'a str>);

impl<'de> LazyVisitor<'de> for UsageText<'_, 'de> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "usage" => *self.0 = Some(object.next_value_seed(RawJson)?),
                _ => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Root<'f, 'a>(&'f mut ResponseSummary<'a>);

impl<'de> LazyVisitor<'de> for Root<'_, 'de> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let summary = self.0;
        summary.is_object = true;
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "model" => summary.model = Some(object.next_value_seed(RawJson)?),
                "usage" => {
                    let mut counts = usage::Counts::default();
                    object.next_value_seed(VisitWith(usage::UsageVisitor(&mut counts)))?;
                    summary.usage = counts.usage();
                }
                "error" => summary.error = Some(object.next_value()?).filter(is_truthy),
                "choices" => object.next_value_seed(VisitWith(Choices(summary)))?,
                _ => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Choices<'f, 'a>(&'f mut ResponseSummary<'a>);

impl<'de> LazyVisitor<'de> for Choices<'_, 'de> {
    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let summary = self.0;
        let mut count = 0;
        while list
            .next_element_seed(VisitWith(Choice { summary, at: count }))?
            .is_some()
        {
            count += 1;
        }
        summary.choices = Some(count);
        Ok(())
    }
}

struct Choice<'f, 'a> {
    summary: &'f mut ResponseSummary<'a>,
    at: usize,
}

impl<'de> LazyVisitor<'de> for Choice<'_, 'de> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let summary = self.summary;
        let mut index = self.at as i64;
        let mut finishes = false;
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "index" => object.next_value_seed(VisitWith(Index(&mut index)))?,
                "finish_reason" => object.next_value_seed(VisitWith(IsText(&mut finishes)))?,
                "delta" | "message" => {
                    object.next_value_seed(VisitWith(Delta(&mut summary.text_bytes)))?
                }
                _ => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        let bit = 1_u128 << index.clamp(0, 127);
        summary.present |= bit;
        if finishes {
            summary.finished |= bit;
        }
        Ok(())
    }
}

struct Index<'f>(&'f mut i64);

impl<'de> LazyVisitor<'de> for Index<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if let Scalar::Integer(index) = value {
            *self.0 = index;
        }
    }
}

struct IsText<'f>(&'f mut bool);

impl<'de> LazyVisitor<'de> for IsText<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        *self.0 = matches!(value, Scalar::String(text) if !text.is_empty());
    }
}

/// Counts the bytes of a delta or message.
struct Delta<'f>(&'f mut u64);

impl<'de> LazyVisitor<'de> for Delta<'_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        // Some vendors send the same reasoning under both names.
        let mut reasoning = [0, 0];
        while let Some(key) = next_key(&mut object)? {
            let (bytes, is_text) = match &*key {
                "content" | "refusal" => (&mut *self.0, true),
                "reasoning_content" => (&mut reasoning[0], true),
                "reasoning" => (&mut reasoning[1], true),
                "tool_calls" | "function_call" => (&mut *self.0, false),
                "images" => {
                    object.next_value_seed(VisitWith(Images(&mut *self.0)))?;
                    continue;
                }
                "audio" => {
                    object.next_value_seed(VisitWith(Audio(&mut *self.0)))?;
                    continue;
                }
                _ => {
                    object.next_value::<serde::de::IgnoredAny>()?;
                    continue;
                }
            };
            object.next_value_seed(VisitWith(Text { bytes, is_text }))?;
        }
        *self.0 += reasoning[0].max(reasoning[1]);
        Ok(())
    }
}

/// Counts the bytes of a string, and in objects of the strings in fields with text.
struct Text<'f> {
    bytes: &'f mut u64,
    is_text: bool,
}

impl<'de> LazyVisitor<'de> for Text<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if let (true, Scalar::String(text)) = (self.is_text, value) {
            *self.bytes += text.len() as u64;
        }
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { bytes, is_text } = self;
        while list
            .next_element_seed(VisitWith(Text { bytes, is_text }))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let bytes = self.bytes;
        while let Some(key) = next_key(&mut object)? {
            if &*key == "image_url" {
                *bytes += generated_media_bytes("image/", 0);
                object.next_value::<serde::de::IgnoredAny>()?;
                continue;
            }
            let is_text = matches!(&*key, "text" | "thinking" | "arguments" | "input");
            object.next_value_seed(VisitWith(Text { bytes, is_text }))?;
        }
        Ok(())
    }
}

/// Counts generated images in a list, as bytes of text.
struct Images<'f>(&'f mut u64);

impl<'de> LazyVisitor<'de> for Images<'_> {
    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<serde::de::IgnoredAny>()?.is_some() {
            *self.0 += generated_media_bytes("image/", 0);
        }
        Ok(())
    }
}

/// Counts generated audio and its transcript, which are two forms of the same: the longer one counts.
struct Audio<'f>(&'f mut u64);

impl<'de> LazyVisitor<'de> for Audio<'_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut bytes = [0, 0];
        while let Some(key) = next_key(&mut object)? {
            let bytes = match &*key {
                "data" => &mut bytes[0],
                "transcript" => &mut bytes[1],
                _ => {
                    object.next_value::<serde::de::IgnoredAny>()?;
                    continue;
                }
            };
            let is_text = true;
            object.next_value_seed(VisitWith(Text { bytes, is_text }))?;
        }
        *self.0 += generated_media_bytes("audio/", bytes[0]).max(bytes[1]);
        Ok(())
    }
}
