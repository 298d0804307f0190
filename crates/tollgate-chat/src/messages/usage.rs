//! Usage: the format counts the uncached prompt apart from what the cache gave and took; the hub counts the whole.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::hub::Usage;

/// The members that are read here.
pub(super) const KNOWN: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "output_tokens_details",
];

/// Counts as an upstream says them. In a stream they are cumulative: a later one replaces an earlier one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct Counts {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    cache_creation: Option<CacheWrites>,
    output_tokens_details: Option<Details>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct CacheWrites {
    ephemeral_5m_input_tokens: Option<f64>,
    ephemeral_1h_input_tokens: Option<f64>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct Details {
    thinking_tokens: Option<f64>,
}

impl Counts {
    /// What `usage` says. Counts that are none are as good as no usage, never a reason to lose the reply.
    pub(super) fn of(usage: &RawValue) -> Self {
        serde_json::from_str(usage.get()).unwrap_or_default()
    }

    /// Takes what `newer` says over what was said before.
    pub(super) fn overwrite(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = newer
            .cache_read_input_tokens
            .or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = newer
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_creation = newer.cache_creation.or(self.cache_creation);
        self.output_tokens_details = newer.output_tokens_details.or(self.output_tokens_details);
    }

    /// The hub's counts; none where neither the prompt nor the output is known.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.input_tokens.or(self.output_tokens)?;
        let split = self.cache_creation.unwrap_or_default();
        let for_an_hour = whole(split.ephemeral_1h_input_tokens);
        let in_split = for_an_hour.saturating_add(whole(split.ephemeral_5m_input_tokens));
        let cache_write = whole(self.cache_creation_input_tokens).max(in_split);
        let cache_read = whole(self.cache_read_input_tokens);
        let details = self.output_tokens_details.unwrap_or_default();
        Some(Usage {
            input: whole(self.input_tokens)
                .saturating_add(cache_read)
                .saturating_add(cache_write),
            cache_read,
            cache_write,
            cache_write_1h: for_an_hour,
            output: whole(self.output_tokens),
            reasoning: whole(details.thinking_tokens),
            ..Usage::default()
        })
    }
}

/// A count; what is negative or no number counts nothing.
fn whole(count: Option<f64>) -> u64 {
    // A cast from f64 saturates.
    count.unwrap_or_default() as u64
}

/// The `usage` object of a reply.
pub(super) fn write(usage: &Usage) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("input_tokens".to_owned(), json!(usage.uncached()));
    out.insert(
        "cache_creation_input_tokens".to_owned(),
        json!(usage.cache_write),
    );
    out.insert(
        "cache_read_input_tokens".to_owned(),
        json!(usage.cache_read),
    );
    if usage.cache_write_1h > 0 {
        let short = usage.cache_write.saturating_sub(usage.cache_write_1h);
        out.insert(
            "cache_creation".to_owned(),
            json!({"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": usage.cache_write_1h}),
        );
    }
    out.insert("output_tokens".to_owned(), json!(usage.output));
    if usage.reasoning > 0 {
        out.insert(
            "output_tokens_details".to_owned(),
            json!({"thinking_tokens": usage.reasoning}),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Counts {
        Counts::of(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn trap_49_the_cache_is_part_of_the_prompt_and_written_beside_it() {
        let read = counts(
            r#"{"input_tokens": 10, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30,
                "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
                "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}"#,
        );
        let usage = read.usage().unwrap();
        assert_eq!((usage.input, usage.uncached()), (240, 10));
        assert_eq!((usage.cache_write, usage.cache_write_1h), (30, 20));
        assert_eq!((usage.output, usage.reasoning), (7, 3));
        let again = counts(&Value::Object(write(&usage)).to_string());
        assert_eq!(again.usage(), Some(usage));
    }

    #[test]
    fn trap_48_later_counts_replace_earlier_ones() {
        let mut all = counts(r#"{"input_tokens": 25, "output_tokens": 1}"#);
        all.overwrite(counts(r#"{"output_tokens": 15}"#));
        let usage = all.usage().unwrap();
        assert_eq!((usage.input, usage.output), (25, 15));
    }

    #[test]
    fn counts_that_are_none_are_no_usage() {
        assert_eq!(counts("{}").usage(), None);
        assert_eq!(counts(r#"{"input_tokens": "many"}"#).usage(), None);
        let odd = counts(r#"{"input_tokens": -5, "output_tokens": 2}"#);
        assert_eq!(odd.usage().unwrap().total(), 2);
    }
}
