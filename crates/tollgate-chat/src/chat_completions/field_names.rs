//! The names of request fields in this format, for error messages.

use super::constants::NAME;
use crate::hub::{ClientFormat, RequestField};

/// The properties of a client of this format that other modules use.
pub(crate) const CLIENT_FORMAT: ClientFormat = ClientFormat {
    name: NAME,
    field_name,
    is_separate_system: |_| false,
    shows_budgeted_thoughts: false,
    read_namespaced_tool: None,
};

fn field_name(field: RequestField) -> &'static str {
    match field {
        RequestField::MaxTokens => "max_tokens",
        RequestField::Temperature => "temperature",
        RequestField::TopP => "top_p",
        RequestField::TopK => "top_k",
        RequestField::Stop => "stop",
        RequestField::N => "n",
        RequestField::Seed => "seed",
        RequestField::FrequencyPenalty => "frequency_penalty",
        RequestField::PresencePenalty => "presence_penalty",
        RequestField::Logprobs => "logprobs",
        RequestField::Output => "response_format",
        RequestField::Tools => "tools",
        RequestField::ToolChoice => "tool_choice",
        RequestField::ParallelTools => "parallel_tool_calls",
        RequestField::Reasoning => "reasoning_effort",
        RequestField::Verbosity => "verbosity",
        RequestField::User => "user",
        RequestField::CacheKey => "prompt_cache_key",
        RequestField::ServiceTier => "service_tier",
        RequestField::Metadata => "metadata",
        RequestField::Cache => "cache_control",
        RequestField::PastReasoning => "reasoning_content",
        RequestField::Citations => "annotations",
        RequestField::Turns => "messages",
        RequestField::Parts => "content",
        RequestField::FileName => "filename",
    }
}
