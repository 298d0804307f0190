//! The names of request fields in this format, for error messages.

use super::constants::NAME;
use crate::hub::{ClientFormat, RequestField};

/// The properties of a client of this format that other modules use.
pub(crate) const CLIENT_FORMAT: ClientFormat = ClientFormat {
    name: NAME,
    field_name,
    is_separate_system: |_| true,
    shows_budgeted_thoughts: false,
    read_namespaced_tool: None,
};

fn field_name(field: RequestField) -> &'static str {
    match field {
        RequestField::MaxTokens => "generationConfig.maxOutputTokens",
        RequestField::Temperature => "generationConfig.temperature",
        RequestField::TopP => "generationConfig.topP",
        RequestField::TopK => "generationConfig.topK",
        RequestField::Stop => "generationConfig.stopSequences",
        RequestField::N => "generationConfig.candidateCount",
        RequestField::Seed => "generationConfig.seed",
        RequestField::FrequencyPenalty => "generationConfig.frequencyPenalty",
        RequestField::PresencePenalty => "generationConfig.presencePenalty",
        RequestField::Logprobs => "generationConfig.responseLogprobs",
        RequestField::Output => "generationConfig.responseMimeType",
        RequestField::Tools => "tools",
        RequestField::ToolChoice => "toolConfig.functionCallingConfig",
        RequestField::ParallelTools => "toolConfig",
        RequestField::Reasoning => "generationConfig.thinkingConfig",
        RequestField::Verbosity => "verbosity",
        RequestField::User | RequestField::Metadata => "labels",
        RequestField::CacheKey => "prompt_cache_key",
        RequestField::ServiceTier => "serviceTier",
        RequestField::Cache => "cachedContent",
        RequestField::PastReasoning => "thought",
        RequestField::Citations => "groundingMetadata",
        RequestField::Turns => "contents",
        RequestField::Parts => "parts",
        RequestField::FileName => "displayName",
    }
}
