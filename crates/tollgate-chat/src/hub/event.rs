//! What happens in a stream.

use super::{Citation, Opaque, Part, Usage};

/// One thing that happens in a stream. Readers promise: [`Event::Start`] first and once; a tool call's `ToolStart` before its
/// arguments and its `ToolEnd` after; one [`Event::Finish`] per choice; the last [`Event::Usage`] is complete. `call` counts tool
/// calls over the whole choice from 0, without gaps. Writers survive any order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The reply begins.
    Start {
        /// The upstream's id; may be empty.
        id: String,
        /// The upstream's name of the model; may be empty.
        model: String,
        /// Unix seconds.
        created: Option<i64>,
        /// The counts that are known already (messages).
        usage: Option<Usage>,
    },
    /// A piece of visible text.
    Text {
        /// Which reply.
        choice: u32,
        /// The piece; whole characters.
        text: String,
    },
    /// The text so far is a part of its own; text that follows is another part.
    TextEnd {
        /// Which reply.
        choice: u32,
        /// A signature on the part that ends.
        signature: Option<Opaque>,
    },
    /// A piece of thinking.
    Reasoning {
        /// Which reply.
        choice: u32,
        /// The piece.
        text: String,
        /// Whether it is a summary rather than raw reasoning.
        summary: bool,
    },
    /// The thinking so far is a part of its own.
    ReasoningEnd {
        /// Which reply.
        choice: u32,
        /// What proves it.
        signature: Option<Opaque>,
        /// The item's id (responses).
        id: Option<String>,
    },
    /// Thinking that only its vendor can read.
    Redacted {
        /// Which reply.
        choice: u32,
        /// It.
        data: Opaque,
    },
    /// A piece of a refusal.
    Refusal {
        /// Which reply.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// A tool call begins.
    ToolStart {
        /// Which reply.
        choice: u32,
        /// Which call of it, from 0.
        call: u32,
        /// Its id, never empty.
        id: String,
        /// The tool, never empty.
        name: String,
        /// A free-text tool.
        custom: bool,
    },
    /// A piece of its arguments.
    ToolArguments {
        /// Which reply.
        choice: u32,
        /// Which call of it.
        call: u32,
        /// A piece of the JSON text (custom: of the text).
        json: String,
    },
    /// Its arguments are complete.
    ToolEnd {
        /// Which reply.
        choice: u32,
        /// Which call of it.
        call: u32,
        /// The signature on it.
        signature: Option<Opaque>,
    },
    /// A source of the text so far.
    Citation {
        /// Which reply.
        choice: u32,
        /// The source.
        citation: Citation,
    },
    /// A whole part that has no pieces: a picture, or one that only one format knows.
    Part {
        /// Which reply.
        choice: u32,
        /// The part.
        part: Part,
    },
    /// Log probabilities of the text just before, in chat-completions' shape.
    Logprobs {
        /// Which reply.
        choice: u32,
        /// `{content: […], refusal: […]}`.
        value: serde_json::Value,
    },
    /// Counts so far; replaces what was said before.
    Usage(Usage),
    /// A reply is complete.
    Finish {
        /// Which reply.
        choice: u32,
        /// Why.
        finish: Finish,
        /// The stop sequence that ended it, where the format says which.
        stop_sequence: Option<String>,
    },
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Finish {
    /// It was done.
    #[default]
    End,
    /// A stop sequence came.
    StopSequence,
    /// The cap on tokens.
    Length,
    /// The model's context is full.
    ContextFull,
    /// It calls tools.
    ToolCall,
    /// A filter or the model itself refused.
    Refusal,
    /// The prompt was blocked: there is no reply.
    PromptBlocked,
    /// Cut by the vendor, could go on (`pause_turn`, `CONTINUATION`).
    Pause,
    /// The model made a call that is none.
    BadToolCall,
    /// Something else.
    Other,
}

impl Finish {
    /// The finish of a reply in which a tool call was seen: calls are told from having seen one, but a cut or refused reply is
    /// not a complete call.
    #[must_use]
    pub fn with_calls(self, any: bool) -> Self {
        match self {
            Self::End | Self::Other | Self::StopSequence if any => Self::ToolCall,
            other => other,
        }
    }
}
