//! The names of request fields in this format, for error messages.

use super::constants::NAME;
use super::notes::is_among_messages;
use crate::hub::{ClientFormat, RequestField};

/// The properties of a client of this format that other modules use.
pub(crate) const CLIENT_FORMAT: ClientFormat = ClientFormat {
    name: NAME,
    field_name,
    is_separate_system: |turn| !is_among_messages(turn),
    shows_budgeted_thoughts: true,
    read_namespaced_tool: None,
};

fn field_name(field: RequestField) -> &'static str {
    match field {
        RequestField::MaxTokens => "max_tokens",
        RequestField::Temperature => "temperature",
        RequestField::TopP => "top_p",
        RequestField::TopK => "top_k",
        RequestField::Stop => "stop_sequences",
        RequestField::N => "n",
        RequestField::Seed => "seed",
        RequestField::FrequencyPenalty => "frequency_penalty",
        RequestField::PresencePenalty => "presence_penalty",
        RequestField::Logprobs => "logprobs",
        RequestField::Output => "output_config.format",
        RequestField::Tools => "tools",
        RequestField::ToolChoice => "tool_choice",
        RequestField::ParallelTools => "tool_choice.disable_parallel_tool_use",
        RequestField::Reasoning | RequestField::PastReasoning => "thinking",
        RequestField::Verbosity => "verbosity",
        RequestField::User => "metadata.user_id",
        RequestField::CacheKey => "prompt_cache_key",
        RequestField::ServiceTier => "service_tier",
        RequestField::Metadata => "metadata",
        RequestField::Cache => "cache_control",
        RequestField::Citations => "citations",
        RequestField::Turns => "messages",
        RequestField::Parts => "content",
        RequestField::FileName => "title",
    }
}
