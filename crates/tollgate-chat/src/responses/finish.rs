//! Converts the `status` and `incomplete_details` of a response to and from the hub's [`FinishReason`].

use crate::hub::FinishReason;

/// The `status` of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseStatus {
    /// `completed`.
    Completed,
    /// `incomplete`, with `incomplete_details.reason`.
    Incomplete(&'static str),
    /// `failed`, with `error.code` and `error.message`.
    Failed(&'static str, &'static str),
}

impl ResponseStatus {
    /// The status for a finish reason. A response whose text is a refusal is complete.
    pub(super) fn from_finish(finish: FinishReason, has_refusal: bool) -> Self {
        match finish {
            FinishReason::Refusal if has_refusal => Self::Completed,
            FinishReason::Refusal | FinishReason::PromptBlocked => {
                Self::Incomplete("content_filter")
            }
            FinishReason::Length | FinishReason::ContextFull | FinishReason::Pause => {
                Self::Incomplete("max_output_tokens")
            }
            FinishReason::InvalidToolCall => {
                Self::Failed("server_error", "the model made a malformed tool call")
            }
            FinishReason::EndTurn
            | FinishReason::StopSequence
            | FinishReason::ToolCall
            | FinishReason::Other => Self::Completed,
        }
    }

    /// The value of `status`.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete(_) => "incomplete",
            Self::Failed(..) => "failed",
        }
    }
}

/// The finish reason for a response's status and `incomplete_details.reason`.
pub(super) fn read_finish(
    is_incomplete: bool,
    reason: Option<&str>,
    has_refusal: bool,
) -> FinishReason {
    match (is_incomplete, reason) {
        (false, _) if has_refusal => FinishReason::Refusal,
        (false, _) => FinishReason::EndTurn,
        (true, Some("content_filter")) => FinishReason::Refusal,
        (true, Some("max_output_tokens") | None) => FinishReason::Length,
        (true, Some(_)) => FinishReason::Pause,
    }
}
