//! A whole reply.

use super::{Finish, Own, Part};

/// What the model answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The upstream's id.
    pub id: String,
    /// The upstream's name of the model.
    pub model: String,
    /// Unix seconds, where the format has it.
    pub created: Option<i64>,
    /// One per reply asked for, by index. Where the prompt was blocked: one without parts that ends so; writers take none
    /// at all for the same.
    pub choices: Vec<Choice>,
    /// What it took.
    pub usage: Option<Usage>,
    /// The tier that served it.
    pub service_tier: Option<String>,
    /// What only its format knows of it.
    pub own: Own,
}

/// One of the replies.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// From 0.
    pub index: u32,
    /// Its content in order.
    pub parts: Vec<Part>,
    /// Why it ended.
    pub finish: Finish,
    /// The stop sequence that ended it, where the format says which.
    pub stop_sequence: Option<String>,
    /// Log probabilities in chat-completions' shape.
    pub logprobs: Option<serde_json::Value>,
    /// What only its format knows of it.
    pub own: Own,
}

/// Tokens. Every count is a part of a total where noted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The whole prompt, cached and cache-written tokens and tool prompts included.
    pub input: u64,
    /// Part of `input` that came from the prompt cache.
    pub cache_read: u64,
    /// Part of `input` that was written to the prompt cache.
    pub cache_write: u64,
    /// Part of `cache_write` with an hour's life, where told apart.
    pub cache_write_1h: u64,
    /// Part of `input` that tools of the vendor added.
    pub tool_prompt: u64,
    /// Everything generated, reasoning included.
    pub output: u64,
    /// Part of `output`.
    pub reasoning: u64,
    /// Part of `input` that is pictures, where told.
    pub input_image: u64,
    /// Part of `input` that is sound, where told.
    pub input_audio: u64,
}

impl Usage {
    /// Prompt and output together.
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Input that was neither read from nor written to the cache.
    pub fn uncached(&self) -> u64 {
        self.input
            .saturating_sub(self.cache_read)
            .saturating_sub(self.cache_write)
    }
}
