//! The name of each field of the hub's request in each format, for error messages and lists of dropped fields in the client's terms.

use std::fmt;

use super::request::Turn;

/// A field of [`super::Request`] that has different names in the formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "they are the fields of `Request`")]
pub enum RequestField {
    MaxTokens,
    Temperature,
    TopP,
    TopK,
    Stop,
    N,
    Seed,
    FrequencyPenalty,
    PresencePenalty,
    Logprobs,
    Output,
    Tools,
    ToolChoice,
    ParallelTools,
    Reasoning,
    Verbosity,
    User,
    CacheKey,
    ServiceTier,
    Metadata,
    /// Prompt-cache markers (`cache_control`).
    Cache,
    /// Reasoning in earlier assistant turns.
    PastReasoning,
    /// Citations in earlier turns.
    Citations,
    /// The list of turns.
    Turns,
    /// The list of parts in a turn.
    Parts,
    /// The name of an attached file.
    FileName,
}

/// The properties of a client's format that the gateway needs after reading the request.
#[derive(Clone, Copy)]
pub struct ClientFormat {
    /// [`crate::Format::name`]; empty if unknown.
    pub name: &'static str,
    /// Returns the format's name for a field of the request.
    pub field_name: fn(RequestField) -> &'static str,
    /// Whether a system turn was read from a separate field, so that indices of the list of turns do not count it.
    pub is_separate_system: fn(&Turn) -> bool,
    /// Whether a client that sets a thinking budget but not its display expects to receive the thoughts.
    pub shows_budgeted_thoughts: bool,
}

impl fmt::Debug for ClientFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name, f)
    }
}

/// Formats are equal if their names are equal.
impl PartialEq for ClientFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// An unknown format: errors refer to the complete request.
impl Default for &'static ClientFormat {
    fn default() -> Self {
        &ClientFormat {
            name: "",
            field_name: |_| "request",
            is_separate_system: |_| false,
            shows_budgeted_thoughts: false,
        }
    }
}
