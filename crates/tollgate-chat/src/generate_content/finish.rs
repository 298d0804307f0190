//! Converts between `finishReason` and the hub's [`FinishReason`].

use crate::hub::FinishReason;

/// All values of `finishReason`. The first row for a hub value is the one that is written for it.
const FINISH_REASONS: &[(&str, FinishReason)] = &[
    ("STOP", FinishReason::EndTurn),
    ("MAX_TOKENS", FinishReason::Length),
    ("SAFETY", FinishReason::Refusal),
    ("RECITATION", FinishReason::Refusal),
    ("BLOCKLIST", FinishReason::Refusal),
    ("PROHIBITED_CONTENT", FinishReason::Refusal),
    ("SPII", FinishReason::Refusal),
    ("IMAGE_SAFETY", FinishReason::Refusal),
    ("IMAGE_PROHIBITED_CONTENT", FinishReason::Refusal),
    ("IMAGE_RECITATION", FinishReason::Refusal),
    ("MODEL_ARMOR", FinishReason::Refusal),
    ("MALFORMED_FUNCTION_CALL", FinishReason::InvalidToolCall),
    ("UNEXPECTED_TOOL_CALL", FinishReason::InvalidToolCall),
    ("TOO_MANY_TOOL_CALLS", FinishReason::InvalidToolCall),
    ("CONTINUATION", FinishReason::Pause),
    ("OTHER", FinishReason::Other),
];

/// The hub's value for a `finishReason`; [`FinishReason::Other`] if it is unknown.
pub(crate) fn read_finish_reason(name: &str) -> FinishReason {
    FINISH_REASONS
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(FinishReason::Other, |(_, finish)| *finish)
}

/// The `finishReason` for a hub value. A tool call ends with `STOP`. A pause becomes `MAX_TOKENS`,
/// because clients of this format have no way to resume it.
pub(crate) fn finish_reason_name(finish: FinishReason) -> &'static str {
    match finish {
        FinishReason::StopSequence | FinishReason::ToolCall => "STOP",
        FinishReason::ContextFull | FinishReason::Pause => "MAX_TOKENS",
        FinishReason::PromptBlocked => "SAFETY",
        finish => FINISH_REASONS
            .iter()
            .find(|(_, known)| *known == finish)
            .map_or("OTHER", |(name, _)| name),
    }
}

/// Whether the response was cut off, so that a call at its end may be incomplete.
pub(crate) fn is_truncated(finish: FinishReason) -> bool {
    matches!(
        finish,
        FinishReason::Length
            | FinishReason::ContextFull
            | FinishReason::Refusal
            | FinishReason::Pause
            | FinishReason::InvalidToolCall
    )
}

/// Combines two finish reasons of one response: a later `STOP` does not replace another reason.
pub(crate) fn combine(before: FinishReason, after: FinishReason) -> FinishReason {
    if after == FinishReason::EndTurn {
        before
    } else {
        after
    }
}
