//! A complete response and its token usage.

use super::extra_fields::ExtraFields;
use super::finish_reason::FinishReason;
use super::part::Part;

/// A complete response of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// The upstream's id.
    pub id: String,
    /// The upstream's name of the model.
    pub model: String,
    /// Unix time in seconds. `None` if the format has none.
    pub created: Option<i64>,
    /// The choices, by index. If the prompt was blocked, one choice without parts and with
    /// [`FinishReason::PromptBlocked`]; writers treat an empty list the same.
    pub choices: Vec<Choice>,
    /// Token counts. `None` if the upstream reported none.
    pub usage: Option<Usage>,
    /// The service tier in which the provider processed the request.
    pub service_tier: Option<String>,
    /// Members that only its format has.
    pub extra: ExtraFields,
}

/// One of the alternative outputs of a response.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Number of the choice, from 0.
    pub index: u32,
    /// Its content in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub finish: FinishReason,
    /// The stop sequence that ended the choice. `None` if no stop sequence ended it or the format does not report it.
    pub stop_sequence: Option<String>,
    /// Log probabilities in the shape of chat-completions.
    pub logprobs: Option<serde_json::Value>,
    /// Members that only its format has.
    pub extra: ExtraFields,
}

/// Token counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The complete prompt, including tokens read from and written to the cache and tool prompts.
    pub input: u64,
    /// Part of `input` that came from the prompt cache.
    pub cache_read: u64,
    /// Part of `input` that was written to the prompt cache.
    pub cache_write: u64,
    /// Part of `cache_write` with a ttl of one hour; 0 if the upstream does not report it separately.
    pub cache_write_1h: u64,
    /// Part of `input` that the vendor's own tools added.
    pub tool_prompt: u64,
    /// Everything generated, reasoning included.
    pub output: u64,
    /// Part of `output` that is reasoning.
    pub reasoning: u64,
    /// Part of `input` that is images; 0 if the upstream does not report it.
    pub input_image: u64,
    /// Part of `input` that is audio; 0 if the upstream does not report it.
    pub input_audio: u64,
    /// Part of `output` that is images; 0 if the upstream does not report it.
    pub output_image: u64,
    /// Part of `output` that is audio; 0 if the upstream does not report it.
    pub output_audio: u64,
    /// Web searches that the provider ran; 0 if the upstream does not report them.
    pub web_searches: u64,
    /// Pages that the provider fetched; 0 if the upstream does not report them.
    pub web_fetches: u64,
}

impl Choice {
    /// A choice without content.
    pub fn empty(index: u32) -> Self {
        Self {
            index,
            parts: Vec::new(),
            finish: FinishReason::EndTurn,
            stop_sequence: None,
            logprobs: None,
            extra: ExtraFields::NONE,
        }
    }
}

impl Usage {
    /// Input and output tokens together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Input tokens that were neither read from nor written to the cache.
    pub fn uncached(&self) -> u64 {
        self.input
            .saturating_sub(self.cache_read)
            .saturating_sub(self.cache_write)
    }
}
