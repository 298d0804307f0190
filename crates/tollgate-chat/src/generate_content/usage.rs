//! Token counts. `promptTokenCount` includes what came from the cache; thinking stands beside the visible output.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::hub::Usage;

/// `usageMetadata`. Counts that are no numbers count as none.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct UsageMetadata {
    prompt_token_count: Count,
    cached_content_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    tool_use_prompt_token_count: Count,
    total_token_count: Count,
    prompt_tokens_details: Option<Vec<Detail>>,
}

#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", default)]
struct Detail {
    modality: Option<String>,
    token_count: Count,
}

impl UsageMetadata {
    /// In the hub's words.
    pub(super) fn usage(&self) -> Usage {
        let prompt = self.prompt_token_count.0;
        let tool_prompt = self.tool_use_prompt_token_count.0;
        let (visible, reasoning) = (self.candidates_token_count.0, self.thoughts_token_count.0);
        let input = prompt.saturating_add(tool_prompt);
        Usage {
            input,
            cache_read: self.cached_content_token_count.0.min(prompt),
            tool_prompt,
            output: self.output(input, visible, reasoning),
            reasoning,
            input_image: self.of_modality("IMAGE"),
            input_audio: self.of_modality("AUDIO"),
            ..Usage::default()
        }
    }

    /// Thinking counts on top, but for upstreams whose total says that they have it among the candidates' tokens.
    fn output(&self, input: u64, visible: u64, reasoning: u64) -> u64 {
        let total = self.total_token_count.0;
        let within = reasoning <= visible
            && total > 0
            && total == input.saturating_add(visible)
            && reasoning > 0;
        if within {
            visible
        } else {
            visible.saturating_add(reasoning)
        }
    }

    fn of_modality(&self, name: &str) -> u64 {
        let details = self.prompt_tokens_details.iter().flatten();
        details
            .filter(|detail| detail.modality.as_deref() == Some(name))
            .fold(0, |sum, detail| sum.saturating_add(detail.token_count.0))
    }
}

/// Usage on the wire. The two members that SPEC.md shows besides the totals are always there.
pub(super) fn write(usage: &Usage) -> Value {
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

/// A count as upstreams give it: a number of any kind, or something that is none and counts as 0.
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
                // A cast from floats saturates.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: Value) -> Usage {
        serde_json::from_value::<UsageMetadata>(value)
            .unwrap()
            .usage()
    }

    #[test]
    fn trap_50_thinking_is_output_and_the_sums_close() {
        let usage = read(json!({
            "promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 20, "thoughtsTokenCount": 30,
            "toolUsePromptTokenCount": 5, "totalTokenCount": 155,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 90}, {"modality": "IMAGE", "tokenCount": 10}],
        }));
        let expected = Usage {
            input: 105,
            cache_read: 40,
            tool_prompt: 5,
            output: 50,
            reasoning: 30,
            input_image: 10,
            ..Usage::default()
        };
        assert_eq!(usage, expected);
        assert_eq!(usage.total(), 155);
        assert_eq!(read(write(&usage)), usage);
    }

    #[test]
    fn trap_50_the_total_tells_who_has_thinking_within_the_candidates() {
        let usage = read(json!({
            "promptTokenCount": 10, "candidatesTokenCount": 50, "thoughtsTokenCount": 30, "totalTokenCount": 60,
        }));
        assert_eq!((usage.output, usage.reasoning), (50, 30));
        assert_eq!(usage.total(), 60);
    }

    #[test]
    fn odd_counts_are_none() {
        let usage = read(json!({
            "promptTokenCount": "7", "candidatesTokenCount": 2.0, "thoughtsTokenCount": null, "totalTokenCount": -1,
            "cachedContentTokenCount": {"a": [1]}, "promptTokensDetails": null,
        }));
        assert_eq!((usage.input, usage.output, usage.cache_read), (7, 2, 0));
    }
}
