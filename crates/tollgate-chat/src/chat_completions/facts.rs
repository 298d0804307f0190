//! What must be known of a reply or a chunk that is only passed on.

use serde::de::{MapAccess, SeqAccess};
use serde_json::Value;

use super::reply::is_truthy;
use super::{error, usage};
use crate::error::Garbled;
use crate::hub::Usage;
use crate::scan::{At, Look, Raw, Scalar, next_key, scan};

/// The facts of one reply or chunk.
#[derive(Default)]
pub(super) struct Facts<'a> {
    is_object: bool,
    /// The model's name as it stands in the text, quotes included.
    pub(super) model: Option<&'a str>,
    pub(super) usage: Option<Usage>,
    /// How many choices there are; none where the member is missing.
    pub(super) choices: Option<usize>,
    /// Bytes of text, thinking and arguments.
    pub(super) text_bytes: u64,
    /// Choices that are in it and choices that finish in it, as bits by index.
    pub(super) begun: u128,
    pub(super) finished: u128,
    error: Option<Value>,
}

/// Looks at a reply or chunk. An error in its place is [`Garbled::Upstream`].
pub(super) fn look(data: &[u8]) -> Result<Facts<'_>, Garbled> {
    let mut facts = Facts::default();
    scan(data, Root(&mut facts)).map_err(|bad| Garbled::Malformed(bad.message))?;
    if !facts.is_object {
        return Err(Garbled::Malformed("it is no JSON object".to_owned()));
    }
    match facts.error.take() {
        Some(error) => Err(error::upstream(&error)),
        None => Ok(facts),
    }
}

struct Root<'f, 'a>(&'f mut Facts<'a>);

impl<'de> Look<'de> for Root<'_, 'de> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let facts = self.0;
        facts.is_object = true;
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "model" => facts.model = Some(object.next_value_seed(Raw)?),
                "usage" => {
                    let mut counts = usage::Counts::default();
                    object.next_value_seed(At(usage::Members(&mut counts)))?;
                    facts.usage = counts.usage();
                }
                "error" => facts.error = Some(object.next_value()?).filter(is_truthy),
                "choices" => object.next_value_seed(At(Choices(facts)))?,
                _ => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Choices<'f, 'a>(&'f mut Facts<'a>);

impl<'de> Look<'de> for Choices<'_, 'de> {
    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let facts = self.0;
        let mut count = 0;
        while list
            .next_element_seed(At(Choice { facts, at: count }))?
            .is_some()
        {
            count += 1;
        }
        facts.choices = Some(count);
        Ok(())
    }
}

struct Choice<'f, 'a> {
    facts: &'f mut Facts<'a>,
    at: usize,
}

impl<'de> Look<'de> for Choice<'_, 'de> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let facts = self.facts;
        let mut index = self.at as i64;
        let mut finishes = false;
        while let Some(key) = next_key(&mut object)? {
            match &*key {
                "index" => object.next_value_seed(At(Index(&mut index)))?,
                "finish_reason" => object.next_value_seed(At(IsText(&mut finishes)))?,
                "delta" | "message" => object.next_value_seed(At(Delta(&mut facts.text_bytes)))?,
                _ => drop(object.next_value::<serde::de::IgnoredAny>()?),
            }
        }
        let bit = 1_u128 << index.clamp(0, 127);
        facts.begun |= bit;
        if finishes {
            facts.finished |= bit;
        }
        Ok(())
    }
}

struct Index<'f>(&'f mut i64);

impl<'de> Look<'de> for Index<'_> {
    fn scalar(self, value: Scalar<'de>) {
        if let Scalar::Whole(index) = value {
            *self.0 = index;
        }
    }
}

struct IsText<'f>(&'f mut bool);

impl<'de> Look<'de> for IsText<'_> {
    fn scalar(self, value: Scalar<'de>) {
        *self.0 = matches!(value, Scalar::Text(text) if !text.is_empty());
    }
}

/// Counts the bytes of a delta or message.
struct Delta<'f>(&'f mut u64);

impl<'de> Look<'de> for Delta<'_> {
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        // Some vendors say the same thought under both names.
        let mut thoughts = [0, 0];
        while let Some(key) = next_key(&mut object)? {
            let (bytes, is_text) = match &*key {
                "content" | "refusal" => (&mut *self.0, true),
                "reasoning_content" => (&mut thoughts[0], true),
                "reasoning" => (&mut thoughts[1], true),
                "tool_calls" | "function_call" => (&mut *self.0, false),
                _ => {
                    object.next_value::<serde::de::IgnoredAny>()?;
                    continue;
                }
            };
            object.next_value_seed(At(Text { bytes, is_text }))?;
        }
        *self.0 += thoughts[0].max(thoughts[1]);
        Ok(())
    }
}

/// Counts strings: the one that stands there, and in objects those under the names that hold text.
struct Text<'f> {
    bytes: &'f mut u64,
    is_text: bool,
}

impl<'de> Look<'de> for Text<'_> {
    fn scalar(self, value: Scalar<'de>) {
        if let (true, Scalar::Text(text)) = (self.is_text, value) {
            *self.bytes += text.len() as u64;
        }
    }

    fn list<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { bytes, is_text } = self;
        while list
            .next_element_seed(At(Text { bytes, is_text }))?
            .is_some()
        {}
        Ok(())
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let bytes = self.bytes;
        while let Some(key) = next_key(&mut object)? {
            let is_text = matches!(&*key, "text" | "thinking" | "arguments" | "input");
            object.next_value_seed(At(Text { bytes, is_text }))?;
        }
        Ok(())
    }
}
