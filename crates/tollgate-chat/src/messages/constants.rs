//! Field values and limits of the Messages format.
//! Source: <https://docs.anthropic.com/en/api/messages>

use crate::hub::Effort;

/// The format's name.
pub(super) const NAME: &str = "messages";

/// The vendor that generates this format's signatures.
pub(super) const VENDOR: &str = "anthropic";

/// Maximum number of stop sequences (docs/chat/messages.md).
pub(super) const MAX_STOP_SEQUENCES: usize = 4;

/// Minimum of `thinking.budget_tokens`.
pub(super) const MIN_THINKING_BUDGET: u64 = 1024;

/// Maximum number of `cache_control` markers in one request.
pub(super) const MAX_CACHE_MARKERS: usize = 4;

/// The values of `thinking.type`.
pub(super) const THINKING_TYPES: &[&str] = &["enabled", "adaptive", "between_tools", "disabled"];

/// The values of `tool_choice.type`.
pub(super) const TOOL_CHOICE_TYPES: &[&str] = &["auto", "any", "tool", "none"];

/// The values of `output_config.effort`.
pub(super) const EFFORTS: &[Effort] = &[
    Effort::Low,
    Effort::Medium,
    Effort::High,
    Effort::XHigh,
    Effort::Max,
];

/// Media types of images that the format supports.
pub(super) const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

/// A `redacted_thinking` block whose data starts with this contains the signature of the block before it. The format has no field for
/// the signatures that generate-content puts on calls and texts, but its clients send such blocks back unchanged.
pub(super) const SIGNATURE_PREFIX: &str = "tgs.";

/// Whether a tool name or a call's id may contain `c`.
pub(super) fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The allowed values for an error message, such as "`one`, `two` or `three`".
pub(super) fn list_alternatives(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}
