//! The names of request fields in this format, for error messages.

use super::constants::NAME;
use super::extra_fields::{NOTE_INSTRUCTIONS, has_note};
use super::request_read::tools::read_tool;
use crate::hub::{ClientFormat, RequestField};

/// The properties of a client of this format that other modules use.
pub(crate) const CLIENT_FORMAT: ClientFormat = ClientFormat {
    name: NAME,
    field_name,
    is_separate_system: |turn| has_note(&turn.extra, NOTE_INSTRUCTIONS),
    shows_budgeted_thoughts: false,
    read_namespaced_tool: Some(read_tool),
};

fn field_name(field: RequestField) -> &'static str {
    match field {
        RequestField::MaxTokens => "max_output_tokens",
        RequestField::Temperature => "temperature",
        RequestField::TopP => "top_p",
        RequestField::TopK => "top_k",
        RequestField::Stop => "stop",
        RequestField::N => "n",
        RequestField::Seed => "seed",
        RequestField::FrequencyPenalty => "frequency_penalty",
        RequestField::PresencePenalty => "presence_penalty",
        RequestField::Logprobs => "top_logprobs",
        RequestField::Output => "text.format",
        RequestField::Tools => "tools",
        RequestField::ToolChoice => "tool_choice",
        RequestField::ParallelTools => "parallel_tool_calls",
        RequestField::Reasoning | RequestField::PastReasoning => "reasoning",
        RequestField::Verbosity => "text.verbosity",
        RequestField::User => "user",
        RequestField::CacheKey => "prompt_cache_key",
        RequestField::ServiceTier => "service_tier",
        RequestField::Metadata => "metadata",
        RequestField::Cache => "prompt_cache_breakpoint",
        RequestField::Citations => "annotations",
        RequestField::Turns => "input",
        RequestField::Parts => "content",
        RequestField::FileName => "filename",
    }
}
