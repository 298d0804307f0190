//! Converts between `finish_reason` values and the hub's finish reasons.

use crate::hub::FinishReason;

/// `finish_reason` values. The first row with a finish reason is the one that is written.
const FINISH_REASONS: &[(&str, FinishReason)] = &[
    ("stop", FinishReason::EndTurn),
    ("stop", FinishReason::StopSequence),
    ("stop", FinishReason::Other),
    ("stop", FinishReason::InvalidToolCall),
    ("length", FinishReason::Length),
    ("length", FinishReason::ContextFull),
    ("length", FinishReason::Pause),
    ("tool_calls", FinishReason::ToolCall),
    ("function_call", FinishReason::ToolCall),
    ("content_filter", FinishReason::Refusal),
    ("content_filter", FinishReason::PromptBlocked),
    // Values of DeepSeek and other vendors.
    ("insufficient_system_resource", FinishReason::Other),
    ("sensitive", FinishReason::Refusal),
    ("model_length", FinishReason::Length),
    ("max_tokens", FinishReason::Length),
    ("end_turn", FinishReason::EndTurn),
    ("eos", FinishReason::EndTurn),
];

/// The hub's finish reason; [`FinishReason::Other`] for unknown values.
pub(super) fn finish_from_reason(reason: &str) -> FinishReason {
    FINISH_REASONS
        .iter()
        .find(|row| row.0 == reason)
        .map_or(FinishReason::Other, |row| row.1)
}

/// The `finish_reason` to write.
pub(super) fn finish_to_reason(finish: FinishReason) -> &'static str {
    FINISH_REASONS
        .iter()
        .find(|row| row.1 == finish)
        .map_or("stop", |row| row.0)
}
