//! The format's words.

use crate::hub::Finish;

/// The format's name.
pub(super) const NAME: &str = "chat-completions";

/// Note of form: the member that named the end user, where it is not `user`.
pub(super) const USER_SPELLING: &str = ".user";

/// At most this many stop sequences (SPEC.md's limit and OpenAI's).
pub(super) const STOPS_MAX: usize = 4;

/// The longest id of a tool call that OpenAI takes.
pub(super) const CALL_ID_MAX: usize = 40;

/// The roles of messages.
pub(super) const ROLES: &[&str] = &[
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// Roles and parts in words, for errors.
pub(super) const ROLES_IN_WORDS: &str =
    "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"";

/// Members of a request that OpenAI documents and the hub has no field for.
pub(super) const DOCUMENTED_OWN: &[&str] = &[
    "audio",
    "logit_bias",
    "modalities",
    "moderation",
    "prediction",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "store",
    "stream_options",
];

/// Members that mean the same in OpenAI's other format.
pub(super) const OPENAIS_OWN: &[&str] = &[
    "moderation",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
];

/// Members of a request that OpenAI documents and the hub has fields for.
const DOCUMENTED: &[&str] = &[
    "frequency_penalty",
    "function_call",
    "functions",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "metadata",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "response_format",
    "seed",
    "service_tier",
    "stop",
    "stream",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

/// Whether OpenAI documents that member of a request.
pub(super) fn is_documented(name: &str) -> bool {
    DOCUMENTED.contains(&name) || DOCUMENTED_OWN.contains(&name)
}

/// `finish_reason` and what it means. The first row of a meaning is the one that is written.
const FINISHES: &[(&str, Finish)] = &[
    ("stop", Finish::End),
    ("stop", Finish::StopSequence),
    ("stop", Finish::Other),
    ("stop", Finish::BadToolCall),
    ("length", Finish::Length),
    ("length", Finish::ContextFull),
    ("length", Finish::Pause),
    ("tool_calls", Finish::ToolCall),
    ("function_call", Finish::ToolCall),
    ("content_filter", Finish::Refusal),
    ("content_filter", Finish::PromptBlocked),
    // DeepSeek's and other vendors' words.
    ("insufficient_system_resource", Finish::Other),
    ("sensitive", Finish::Refusal),
    ("model_length", Finish::Length),
    ("max_tokens", Finish::Length),
    ("end_turn", Finish::End),
    ("eos", Finish::End),
];

/// What a `finish_reason` means; `other` for what nobody knows.
pub(super) fn finish_of(reason: &str) -> Finish {
    FINISHES
        .iter()
        .find(|row| row.0 == reason)
        .map_or(Finish::Other, |row| row.1)
}

/// The `finish_reason` of a meaning.
pub(super) fn reason_of(finish: Finish) -> &'static str {
    FINISHES
        .iter()
        .find(|row| row.1 == finish)
        .map_or("stop", |row| row.0)
}
