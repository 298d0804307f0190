//! Token usage of responses and streams, in the spellings of OpenAI and of compatible vendors.

use serde::de::{DeserializeSeed as _, IgnoredAny, MapAccess};
use serde_json::{Map, Value, json};

use crate::hub::Usage;
use crate::lazy_json::{LazyVisitor, Scalar, VisitWith, next_key};

/// Reads `usage`, including vendors' own spellings of cached tokens. `None` if it is not an object with counts.
pub(super) fn read_usage(usage: &Value) -> Option<Usage> {
    let mut counts = Counts::default();
    // Cannot fail: a parsed value is valid JSON.
    VisitWith(UsageVisitor(&mut counts))
        .deserialize(usage)
        .ok()?;
    counts.usage()
}

/// The counts in an upstream's `usage`. Read lazily, because every response and every last chunk has them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    prompt: Option<u64>,
    completion: Option<u64>,
    total: Option<u64>,
    reasoning: Option<u64>,
    /// Tokens read from the cache, in the fields of OpenAI, of DeepSeek and of other vendors.
    cached: [Option<u64>; 3],
    /// Tokens written to the cache, in the fields of OpenAI and of other vendors.
    written: [Option<u64>; 2],
    image: Option<u64>,
    audio: Option<u64>,
    output_image: Option<u64>,
    output_audio: Option<u64>,
}

impl Counts {
    /// The hub's usage. `None` if there is neither a prompt nor a completion count.
    pub(super) fn usage(&self) -> Option<Usage> {
        if self.prompt.is_none() && self.completion.is_none() {
            return None;
        }
        let (input, mut output) = (self.prompt.unwrap_or(0), self.completion.unwrap_or(0));
        let reasoning = self.reasoning.unwrap_or(0);
        // Some vendors (xAI, Google) do not include reasoning in the completion count; the total reveals it.
        let total = self.total.unwrap_or(0);
        if reasoning > 0 && total == input.saturating_add(output).saturating_add(reasoning) {
            output = output.saturating_add(reasoning);
        }
        let first = |counts: &[Option<u64>]| counts.iter().find_map(|count| *count).unwrap_or(0);
        Some(Usage {
            input,
            output,
            reasoning: reasoning.min(output),
            cache_read: first(&self.cached).min(input),
            cache_write: first(&self.written).min(input),
            input_image: self.image.unwrap_or(0),
            input_audio: self.audio.unwrap_or(0),
            output_image: self.output_image.unwrap_or(0),
            output_audio: self.output_audio.unwrap_or(0),
            ..Usage::default()
        })
    }

    /// The count with the name `name` in `usage`.
    fn count_in_usage(&mut self, name: &str) -> Option<&mut Option<u64>> {
        Some(match name {
            "prompt_tokens" => &mut self.prompt,
            "completion_tokens" => &mut self.completion,
            "total_tokens" => &mut self.total,
            "prompt_cache_hit_tokens" => &mut self.cached[1],
            "cached_tokens" => &mut self.cached[2],
            "cache_creation_input_tokens" => &mut self.written[1],
            _ => return None,
        })
    }

    /// The count with the name `name` in `prompt_tokens_details`.
    fn count_in_prompt_details(&mut self, name: &str) -> Option<&mut Option<u64>> {
        Some(match name {
            "cached_tokens" => &mut self.cached[0],
            "cache_write_tokens" => &mut self.written[0],
            "image_tokens" => &mut self.image,
            "audio_tokens" => &mut self.audio,
            _ => return None,
        })
    }

    /// The count with the name `name` in `completion_tokens_details`.
    fn count_in_completion_details(&mut self, name: &str) -> Option<&mut Option<u64>> {
        Some(match name {
            "reasoning_tokens" => &mut self.reasoning,
            "image_tokens" => &mut self.output_image,
            "audio_tokens" => &mut self.output_audio,
            _ => return None,
        })
    }
}

/// Visits the `usage` object.
pub(super) struct UsageVisitor<'c>(pub(super) &'c mut Counts);

impl<'de> LazyVisitor<'de> for UsageVisitor<'_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let counts = self.0;
        while let Some(name) = next_key(&mut object)? {
            let find_count: FindCount = match &*name {
                "prompt_tokens_details" => Counts::count_in_prompt_details,
                "completion_tokens_details" => Counts::count_in_completion_details,
                name => {
                    match counts.count_in_usage(name) {
                        Some(count) => object.next_value_seed(VisitWith(Count(count)))?,
                        None => drop(object.next_value::<IgnoredAny>()?),
                    }
                    continue;
                }
            };
            object.next_value_seed(VisitWith(Details { counts, find_count }))?;
        }
        Ok(())
    }
}

type FindCount = for<'a> fn(&'a mut Counts, &str) -> Option<&'a mut Option<u64>>;

struct Details<'c> {
    counts: &'c mut Counts,
    find_count: FindCount,
}

impl<'de> LazyVisitor<'de> for Details<'_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(name) = next_key(&mut object)? {
            match (self.find_count)(self.counts, &name) {
                Some(count) => object.next_value_seed(VisitWith(Count(count)))?,
                None => drop(object.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

struct Count<'c>(&'c mut Option<u64>);

impl<'de> LazyVisitor<'de> for Count<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        *self.0 = match value {
            Scalar::Integer(count) => u64::try_from(count).ok(),
            Scalar::Float(count) if count >= 0.0 => Some(count as u64),
            _ => None,
        };
    }
}

/// Writes `usage`.
pub(super) fn write(usage: &Usage) -> Value {
    let mut prompt = Map::from_iter([("cached_tokens".to_owned(), Value::from(usage.cache_read))]);
    let optional = [
        ("cache_write_tokens", usage.cache_write),
        ("audio_tokens", usage.input_audio),
        ("image_tokens", usage.input_image),
    ];
    for (name, count) in optional {
        if count > 0 {
            prompt.insert(name.to_owned(), count.into());
        }
    }
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": prompt,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    })
}
