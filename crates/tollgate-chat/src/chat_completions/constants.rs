//! Field names, limits and roles of the chat-completions format.
//! Source: <https://platform.openai.com/docs/api-reference/chat>

/// The format's name.
pub(super) const NAME: &str = "chat-completions";

/// Key in [`crate::hub::ExtraFields`]: the field that named the end user, if it was not `user`.
pub(super) const USER_SPELLING: &str = ".user";

/// Vendors' own fields for reasoning. With a dot before the name, keys in [`crate::hub::ExtraFields`] of the value as the client wrote it.
pub(super) const VENDOR_REASONING: [&str; 3] = ["thinking", "reasoning", "enable_thinking"];

/// Key in [`crate::hub::ExtraFields`]: `reasoning_effort` beside one of [`VENDOR_REASONING`].
pub(super) const EFFORT_BESIDE_VENDOR_REASONING: &str = ".reasoning_effort";

/// Maximum number of stop sequences (OpenAI's limit).
pub(super) const MAX_STOP_SEQUENCES: usize = 4;

/// Maximum number of characters in a tool-call id that OpenAI accepts.
pub(super) const MAX_CALL_ID_LENGTH: usize = 40;

/// The roles of messages.
pub(super) const ROLES: &[&str] = &[
    "system",
    "developer",
    "user",
    "assistant",
    "tool",
    "function",
];

/// The allowed roles, for error messages.
pub(super) const ROLE_RULE: &str =
    "must be \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"";

/// Request fields that OpenAI documents and for which the hub has no field.
pub(super) const DOCUMENTED_EXTRA: &[&str] = &[
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

/// Request fields that mean the same in OpenAI's responses format.
pub(super) const SHARED_WITH_RESPONSES: &[&str] = &[
    "moderation",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
];

/// Request fields that OpenAI documents and for which the hub has fields.
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

/// Whether OpenAI documents the request field `name`.
pub(super) fn is_documented(name: &str) -> bool {
    DOCUMENTED.contains(&name) || DOCUMENTED_EXTRA.contains(&name)
}
