//! Keys in [`crate::hub::ExtraFields`] that record how the client wrote something. They begin with a dot and are never sent.

use super::constants::NAME;
use crate::hub::{ExtraFields, Turn};

/// On a turn: it is a system message in `messages`, not the field `system`.
pub(super) const NOTE_AMONG_MESSAGES: &str = ".among_messages";

/// On a tool: its `type`.
pub(super) const NOTE_TOOL_TYPE: &str = ".type";

/// On reasoning: a `thinking.type` for which the hub has no field (`between_tools`).
pub(super) const NOTE_THINKING_TYPE: &str = ".type";

/// On reasoning: the effort that was requested with disabled thinking.
pub(super) const NOTE_EFFORT: &str = ".effort";

/// Whether `turn` was a system message in `messages`.
pub(super) fn is_among_messages(turn: &Turn) -> bool {
    has_note(&turn.extra, NOTE_AMONG_MESSAGES)
}

/// Whether `extra` has this note.
pub(super) fn has_note(extra: &ExtraFields, note: &str) -> bool {
    extra
        .for_format(NAME)
        .is_some_and(|members| members.contains_key(note))
}
