//! Counts the bytes of generated text in a JSON value while it is parsed, keeping nothing.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::tokens::generated_media_bytes;

/// The number of bytes of visible text, reasoning and call arguments in a JSON value of any shape.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TextBytes(pub(crate) u64);

/// Members that hold such text, directly or in nested values.
const TEXT_MEMBERS: [&str; 7] = [
    "text",
    "refusal",
    "arguments",
    "input",
    "content",
    "summary",
    "delta",
];

/// The number of bytes of text that a complete output item of the provider's own tools is counted as: a generated image, the results of code. The
/// bytes of any other item were counted in its deltas.
pub(crate) fn hosted_output_bytes(item: &RawValue) -> u64 {
    #[derive(Deserialize)]
    struct Item {
        result: Option<IgnoredAny>,
        outputs: Option<Vec<Output>>,
    }
    #[derive(Deserialize)]
    struct Output {
        logs: Option<TextBytes>,
    }
    let Ok(item) = serde_json::from_str::<Item>(item.get()) else {
        return 0;
    };
    let image = item
        .result
        .map_or(0, |_| generated_media_bytes("image/", 0));
    let outputs = item.outputs.unwrap_or_default();
    let logs = outputs.iter().filter_map(|output| output.logs.as_ref());
    image + logs.map(|logs| logs.0).sum::<u64>()
}

impl<'de> Deserialize<'de> for TextBytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(TextBytes)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<u64, E> {
        Ok(text.len() as u64)
    }

    fn visit_unit<E>(self) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<u64, E> {
        Ok(0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
        let mut sum = 0;
        while let Some(TextBytes(more)) = list.next_element()? {
            sum += more;
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
        let mut sum = 0;
        while let Some(IsText(is_text)) = map.next_key()? {
            if is_text {
                sum += map.next_value::<TextBytes>()?.0;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(sum)
    }
}

/// Whether a member's name is one of [`TEXT_MEMBERS`].
struct IsText(bool);

impl<'de> Deserialize<'de> for IsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = IsText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E>(self, name: &str) -> Result<IsText, E> {
                Ok(IsText(TEXT_MEMBERS.contains(&name)))
            }
        }
        deserializer.deserialize_str(Name)
    }
}
