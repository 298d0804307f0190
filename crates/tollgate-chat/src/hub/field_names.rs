//! The name of each field of the hub's request in each format, for error messages and lists of dropped fields in the client's terms.

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
