//! [`FinishReason`]: why a choice ended.

/// Why a choice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FinishReason {
    /// The model ended its turn.
    #[default]
    EndTurn,
    /// A stop sequence was generated.
    StopSequence,
    /// The limit of generated tokens was reached.
    Length,
    /// The model's context is full.
    ContextFull,
    /// The model calls tools.
    ToolCall,
    /// A content filter blocked the output, or the model refused.
    Refusal,
    /// The prompt was blocked; there is no content.
    PromptBlocked,
    /// The vendor paused a long turn, which may be continued (`pause_turn`, `CONTINUATION`).
    Pause,
    /// The model generated a malformed tool call.
    InvalidToolCall,
    /// Any other reason.
    Other,
}

impl FinishReason {
    /// The finish reason of a choice; `any` is whether it has tool calls. Returns [`FinishReason::ToolCall`] if it has, unless the choice was cut off
    /// or refused, because its last call may then be incomplete. Upstreams do not always report tool calls as the reason.
    #[must_use]
    pub fn with_tool_calls(self, any: bool) -> Self {
        match self {
            Self::EndTurn | Self::Other | Self::StopSequence if any => Self::ToolCall,
            other => other,
        }
    }
}
