//! Token usage. The format counts uncached, cache-read and cache-write input tokens separately; the hub's input count includes all.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::hub::Usage;

/// The members of `usage` that [`write_usage`] writes. `server_tool_use` is read too, but it is not written, so it stays among the extra fields.
pub(super) const KNOWN_FIELDS: &[&str] = &[
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "output_tokens_details",
];

/// An upstream's counts. In a stream they are cumulative: later ones replace earlier ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
pub(super) struct UsageCounts {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    cache_creation: Option<CacheWrites>,
    output_tokens_details: Option<Details>,
    server_tool_use: Option<ServerToolUse>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
struct ServerToolUse {
    web_search_requests: Option<f64>,
    web_fetch_requests: Option<f64>,
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

impl UsageCounts {
    /// Parses `usage`. Invalid usage counts as none: the response is still delivered.
    pub(super) fn parse(usage: &RawValue) -> Self {
        serde_json::from_str(usage.get()).unwrap_or_default()
    }

    /// The counts of `message_start`, whose output is not final.
    pub(super) fn parse_start(usage: &RawValue) -> Self {
        Self {
            output_tokens: None,
            ..Self::parse(usage)
        }
    }

    /// Replaces the counts that `newer` has.
    pub(super) fn update(&mut self, newer: Self) {
        self.input_tokens = newer.input_tokens.or(self.input_tokens);
        self.output_tokens = newer.output_tokens.or(self.output_tokens);
        self.cache_read_input_tokens = newer
            .cache_read_input_tokens
            .or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = newer
            .cache_creation_input_tokens
            .or(self.cache_creation_input_tokens);
        self.cache_creation = newer.cache_creation.or(self.cache_creation);
        self.server_tool_use = newer.server_tool_use.or(self.server_tool_use);
        self.output_tokens_details = newer.output_tokens_details.or(self.output_tokens_details);
    }

    /// The hub's usage. `None` if neither input nor output tokens are known.
    pub(super) fn to_usage(self) -> Option<Usage> {
        self.input_tokens.or(self.output_tokens)?;
        let split = self.cache_creation.unwrap_or_default();
        let one_hour = to_count(split.ephemeral_1h_input_tokens);
        let in_split = one_hour.saturating_add(to_count(split.ephemeral_5m_input_tokens));
        let cache_write = to_count(self.cache_creation_input_tokens).max(in_split);
        let cache_read = to_count(self.cache_read_input_tokens);
        let details = self.output_tokens_details.unwrap_or_default();
        let tools = self.server_tool_use.unwrap_or_default();
        Some(Usage {
            input: to_count(self.input_tokens)
                .saturating_add(cache_read)
                .saturating_add(cache_write),
            cache_read,
            cache_write,
            cache_write_1h: one_hour,
            output: to_count(self.output_tokens),
            reasoning: to_count(details.thinking_tokens),
            web_searches: to_count(tools.web_search_requests),
            web_fetches: to_count(tools.web_fetch_requests),
            ..Usage::default()
        })
    }
}

/// A count; 0 if it is missing or negative.
fn to_count(count: Option<f64>) -> u64 {
    // The cast saturates.
    count.unwrap_or_default() as u64
}

/// The `usage` object of a response.
pub(super) fn write_usage(usage: &Usage) -> Map<String, Value> {
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
