//! The format's words: member values, limits, and the tables between them and the hub's.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

use crate::hub::{Effort, FinishReason};

/// The format's name.
pub(super) const NAME: &str = "messages";

/// Whose signatures these are.
pub(super) const VENDOR: &str = "anthropic";

/// Maximum of stop sequences (docs/chat/messages.md).
pub(super) const MOST_STOPS: usize = 4;

/// The smallest budget of tokens for thinking.
pub(super) const SMALLEST_BUDGET: u64 = 1024;

/// The most prompt-cache markers in one request.
pub(super) const MOST_MARKERS: usize = 4;

/// The kinds of `thinking`.
pub(super) const THINKING_TYPES: &[&str] = &["enabled", "adaptive", "between_tools", "disabled"];

/// The kinds of `tool_choice`.
pub(super) const CHOICE_TYPES: &[&str] = &["auto", "any", "tool", "none"];

/// The words of `output_config.effort`.
pub(super) const EFFORTS: &[Effort] = &[
    Effort::Low,
    Effort::Medium,
    Effort::High,
    Effort::XHigh,
    Effort::Max,
];

/// The pictures that the format takes.
pub(super) const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A redacted-thinking block whose data begins so is the signature on the block before it: this format has no place for the
/// signatures that generate-content puts on calls and texts, but its clients send such blocks back as they are.
pub(super) const CARRIED: &str = "tgs.";

/// Every finish with its `stop_reason`. What several finishes share is read as the first of them.
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

/// The finish that a `stop_reason` means.
pub(super) fn finish_of(stop_reason: &str) -> FinishReason {
    let row = STOP_REASONS.iter().find(|row| row.1 == stop_reason);
    row.map_or(FinishReason::Other, |row| row.0)
}

/// The `stop_reason` of a finish. Without the sequence that was hit nobody can say that one was.
pub(super) fn stop_reason(finish: FinishReason, has_sequence: bool) -> &'static str {
    let finish = match finish {
        FinishReason::StopSequence if !has_sequence => FinishReason::EndTurn,
        other => other,
    };
    let row = STOP_REASONS.iter().find(|row| row.0 == finish);
    row.map_or("end_turn", |row| row.1)
}

/// Whether a tool name or a call's id may hold `c`.
pub(super) fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// `one`, `two` or `three`: what a member may be, for an error.
pub(super) fn one_of(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

/// A JSON string, borrowed where it holds no escapes (which serde does for a plain [`Cow`] member only).
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trap_30_every_stop_reason_has_its_finish() {
        for (reason, finish) in [
            ("end_turn", FinishReason::EndTurn),
            ("max_tokens", FinishReason::Length),
            ("stop_sequence", FinishReason::StopSequence),
            ("tool_use", FinishReason::ToolCall),
            ("pause_turn", FinishReason::Pause),
            ("refusal", FinishReason::Refusal),
            ("model_context_window_exceeded", FinishReason::ContextFull),
            ("compaction", FinishReason::Other),
        ] {
            assert_eq!(finish_of(reason), finish);
        }
        for (finish, reason) in STOP_REASONS {
            assert_eq!(stop_reason(*finish, true), *reason);
        }
        assert_eq!(stop_reason(FinishReason::StopSequence, false), "end_turn");
    }

    #[test]
    fn choices_read_as_a_sentence() {
        assert_eq!(one_of(&["a"]), "`a`");
        assert_eq!(one_of(&["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
