//! The `status` and `incomplete_details` of a response, to and from the hub's [`FinishReason`].

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finish_reason_has_a_status_and_reads_back() {
        for (finish, status, back) in [
            (
                FinishReason::EndTurn,
                ResponseStatus::Completed,
                FinishReason::EndTurn,
            ),
            (
                FinishReason::StopSequence,
                ResponseStatus::Completed,
                FinishReason::EndTurn,
            ),
            (
                FinishReason::ToolCall,
                ResponseStatus::Completed,
                FinishReason::EndTurn,
            ),
            (
                FinishReason::Other,
                ResponseStatus::Completed,
                FinishReason::EndTurn,
            ),
            (
                FinishReason::Length,
                ResponseStatus::Incomplete("max_output_tokens"),
                FinishReason::Length,
            ),
            (
                FinishReason::ContextFull,
                ResponseStatus::Incomplete("max_output_tokens"),
                FinishReason::Length,
            ),
            (
                FinishReason::Pause,
                ResponseStatus::Incomplete("max_output_tokens"),
                FinishReason::Length,
            ),
            (
                FinishReason::Refusal,
                ResponseStatus::Incomplete("content_filter"),
                FinishReason::Refusal,
            ),
            (
                FinishReason::PromptBlocked,
                ResponseStatus::Incomplete("content_filter"),
                FinishReason::Refusal,
            ),
        ] {
            assert_eq!(ResponseStatus::from_finish(finish, false), status);
            let reason = match status {
                ResponseStatus::Incomplete(reason) => Some(reason),
                _ => None,
            };
            assert_eq!(read_finish(reason.is_some(), reason, false), back);
        }
        assert_eq!(
            ResponseStatus::from_finish(FinishReason::Refusal, true),
            ResponseStatus::Completed
        );
        assert_eq!(read_finish(false, None, true), FinishReason::Refusal);
        assert_eq!(
            read_finish(true, Some("steered"), false),
            FinishReason::Pause
        );
        assert_eq!(
            ResponseStatus::from_finish(FinishReason::InvalidToolCall, false).as_str(),
            "failed"
        );
    }
}
