//! [`Event`]: one event of a chat stream.

use super::finish_reason::FinishReason;
use super::part::{Citation, Opaque, Part};
use super::response::Usage;

/// One event of a stream. Readers guarantee: [`Event::Start`] first and once; a tool call's `ToolStart` before its arguments and
/// its `ToolEnd` after them; one [`Event::Finish`] per choice; the last [`Event::Usage`] is complete. `call` counts the tool calls
/// of a choice from 0, without gaps. Writers accept any order.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The response begins.
    Start {
        /// The upstream's id; may be empty.
        id: String,
        /// The upstream's name of the model; may be empty.
        model: String,
        /// Unix time in seconds. `None` if the format has none.
        created: Option<i64>,
        /// The counts that are known at the start (messages). `None` if none are known yet.
        usage: Option<Usage>,
    },
    /// A piece of visible text.
    Text {
        /// Index of the choice.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// The current text part ends; text that follows belongs to another part.
    TextEnd {
        /// Index of the choice.
        choice: u32,
        /// A signature on the part that ends.
        signature: Option<Opaque>,
    },
    /// A piece of reasoning.
    Reasoning {
        /// Index of the choice.
        choice: u32,
        /// The piece.
        text: String,
        /// Whether it is a summary rather than raw reasoning.
        summary: bool,
    },
    /// The current reasoning part ends.
    ReasoningEnd {
        /// Index of the choice.
        choice: u32,
        /// The signature with which the vendor verifies that the reasoning is unchanged.
        signature: Option<Opaque>,
        /// The item's id (responses).
        id: Option<String>,
    },
    /// Reasoning that is encrypted by its vendor.
    RedactedReasoning {
        /// Index of the choice.
        choice: u32,
        /// The encrypted reasoning.
        data: Opaque,
    },
    /// A piece of a refusal.
    Refusal {
        /// Index of the choice.
        choice: u32,
        /// The piece.
        text: String,
    },
    /// A tool call begins.
    ToolStart {
        /// Index of the choice.
        choice: u32,
        /// Number of the call in the choice, from 0.
        call: u32,
        /// The call's id, never empty.
        id: String,
        /// Name of the tool, never empty.
        name: String,
        /// Whether it is a custom (free-text) tool.
        custom: bool,
    },
    /// A piece of a tool call's arguments.
    ToolArguments {
        /// Index of the choice.
        choice: u32,
        /// Number of the call in the choice.
        call: u32,
        /// A piece of the JSON text, or of the free text of a custom tool.
        json: String,
    },
    /// A tool call's arguments are complete.
    ToolEnd {
        /// Index of the choice.
        choice: u32,
        /// Number of the call in the choice.
        call: u32,
        /// The signature on the call (generate-content).
        signature: Option<Opaque>,
    },
    /// A source of the current text part, or of the last one if none is open.
    Citation {
        /// Index of the choice.
        choice: u32,
        /// The source.
        citation: Citation,
    },
    /// A complete part that is not streamed in pieces: an image, or a part that only one format has.
    Part {
        /// Index of the choice.
        choice: u32,
        /// The part.
        part: Part,
    },
    /// Log probabilities of the preceding text, in the shape of chat-completions.
    Logprobs {
        /// Index of the choice.
        choice: u32,
        /// `{content: […], refusal: […]}`.
        value: serde_json::Value,
    },
    /// Token counts so far; replaces earlier counts.
    Usage(Usage),
    /// A choice is complete.
    Finish {
        /// Index of the choice.
        choice: u32,
        /// Why it ended.
        finish: FinishReason,
        /// The stop sequence that ended the choice. `None` if no stop sequence ended it or the format does not report it.
        stop_sequence: Option<String>,
    },
}
