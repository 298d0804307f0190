//! Converts token counts between `usageMetadata` and the hub's [`Usage`]. `promptTokenCount` includes cached tokens; thinking is not part of
//! `candidatesTokenCount`.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::hub::Usage;

/// `usageMetadata`. Counts that are not numbers are 0.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct UsageMetadata {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    tool_use_prompt_token_count: Count,
    total_token_count: Count,
    prompt_tokens_details: Option<Vec<Detail>>,
    candidates_tokens_details: Option<Vec<Detail>>,
}

#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Detail {
    modality: Option<String>,
    token_count: Count,
}

impl UsageMetadata {
    /// Converts the counts to the hub's usage.
    pub(crate) fn to_usage(&self) -> Usage {
        let prompt = self.prompt_token_count.0;
        let tool_prompt = self.tool_use_prompt_token_count.0;
        let (visible, reasoning) = (self.candidates_token_count.0, self.thoughts_token_count.0);
        let input = prompt.saturating_add(tool_prompt);
        Usage {
            input,
            cache_read: self.cached_content_token_count.0.min(prompt),
            tool_prompt,
            output: self.output_tokens(input, visible, reasoning),
            reasoning,
            input_image: modality_tokens(&self.prompt_tokens_details, "IMAGE"),
            input_audio: modality_tokens(&self.prompt_tokens_details, "AUDIO"),
            output_image: modality_tokens(&self.candidates_tokens_details, "IMAGE"),
            output_audio: modality_tokens(&self.candidates_tokens_details, "AUDIO"),
            ..Usage::default()
        }
    }

    /// Output tokens: visible and thinking. Some upstreams include thinking in `candidatesTokenCount`; the total reveals that.
    fn output_tokens(&self, input: u64, visible: u64, reasoning: u64) -> u64 {
        let total = self.total_token_count.0;
        let reasoning_is_included = reasoning <= visible
            && total > 0
            && total == input.saturating_add(visible)
            && reasoning > 0;
        if reasoning_is_included {
            visible
        } else {
            visible.saturating_add(reasoning)
        }
    }
}

fn modality_tokens(details: &Option<Vec<Detail>>, name: &str) -> u64 {
    let details = details.iter().flatten();
    details
        .filter(|detail| detail.modality.as_deref() == Some(name))
        .fold(0, |sum, detail| sum.saturating_add(detail.token_count.0))
}

/// Writes `usageMetadata`. `thoughtsTokenCount` and `promptTokensDetails` are always written.
pub(crate) fn write_usage(usage: &Usage) -> Value {
    let prompt = usage.input.saturating_sub(usage.tool_prompt);
    let text = prompt
        .saturating_sub(usage.input_image)
        .saturating_sub(usage.input_audio);
    let details: Vec<Value> = [
        ("TEXT", text),
        ("IMAGE", usage.input_image),
        ("AUDIO", usage.input_audio),
    ]
    .into_iter()
    .filter(|(modality, count)| *count > 0 || *modality == "TEXT")
    .map(|(modality, count)| json!({"modality": modality, "tokenCount": count}))
    .collect();
    let mut out = Map::new();
    out.insert("promptTokenCount".to_owned(), json!(prompt));
    if usage.cache_read > 0 {
        out.insert(
            "cachedContentTokenCount".to_owned(),
            json!(usage.cache_read),
        );
    }
    let visible = usage.output.saturating_sub(usage.reasoning);
    out.insert("candidatesTokenCount".to_owned(), json!(visible));
    if usage.tool_prompt > 0 {
        out.insert(
            "toolUsePromptTokenCount".to_owned(),
            json!(usage.tool_prompt),
        );
    }
    out.insert(
        "thoughtsTokenCount".to_owned(),
        json!(usage.output - visible),
    );
    out.insert("totalTokenCount".to_owned(), json!(usage.total()));
    out.insert("promptTokensDetails".to_owned(), Value::Array(details));
    Value::Object(out)
}

/// A count: a number of any kind; anything else is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Count(u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = u64;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a count")
            }
            fn visit_u64<E>(self, value: u64) -> Result<u64, E> {
                Ok(value)
            }
            fn visit_i64<E>(self, value: i64) -> Result<u64, E> {
                Ok(u64::try_from(value).unwrap_or(0))
            }
            fn visit_f64<E>(self, value: f64) -> Result<u64, E> {
                // A cast from a float saturates.
                Ok(value as u64)
            }
            fn visit_str<E>(self, value: &str) -> Result<u64, E> {
                Ok(value.parse().unwrap_or(0))
            }
            fn visit_bool<E>(self, _: bool) -> Result<u64, E> {
                Ok(0)
            }
            fn visit_unit<E>(self) -> Result<u64, E> {
                Ok(0)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<u64, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(0)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<u64, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(0)
            }
        }
        from.deserialize_any(Any).map(Self)
    }
}
