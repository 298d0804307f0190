//! Converts between `stop_reason` values and the hub's finish reasons.

use crate::hub::FinishReason;

/// Every finish reason with its `stop_reason`. A value in several rows is read as the first one.
const STOP_REASONS: &[(FinishReason, &str)] = &[
    (FinishReason::EndTurn, "end_turn"),
    (FinishReason::Length, "max_tokens"),
    (FinishReason::StopSequence, "stop_sequence"),
    (FinishReason::ToolCall, "tool_use"),
    (FinishReason::Pause, "pause_turn"),
    (FinishReason::Refusal, "refusal"),
    (FinishReason::ContextFull, "model_context_window_exceeded"),
    (FinishReason::PromptBlocked, "refusal"),
    (FinishReason::InvalidToolCall, "end_turn"),
    (FinishReason::Other, "end_turn"),
];

/// The hub's finish reason; [`FinishReason::Other`] for unknown values.
pub(super) fn finish_from_reason(stop_reason: &str) -> FinishReason {
    let row = STOP_REASONS.iter().find(|row| row.1 == stop_reason);
    row.map_or(FinishReason::Other, |row| row.0)
}

/// The `stop_reason` to write. `stop_sequence` is only written together with the sequence.
pub(super) fn finish_to_reason(finish: FinishReason, has_sequence: bool) -> &'static str {
    let finish = match finish {
        FinishReason::StopSequence if !has_sequence => FinishReason::EndTurn,
        other => other,
    };
    let row = STOP_REASONS.iter().find(|row| row.0 == finish);
    row.map_or("end_turn", |row| row.1)
}
