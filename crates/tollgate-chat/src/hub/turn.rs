//! A turn of a conversation, and its author.

use super::extra_fields::ExtraFields;
use super::part::Part;

/// The author of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The application: system, developer, instructions.
    System,
    /// The user. Tool results are in user turns too.
    User,
    /// The model.
    Assistant,
}

/// One turn. Tool results of chat-completions (role `tool`) and responses (items) become parts of user turns. Consecutive turns of
/// one role may stay separate; writers merge them if their format requires it.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The author of the turn.
    pub role: Role,
    /// The content of the turn.
    pub parts: Vec<Part>,
    /// Whether the content was one string rather than a list.
    pub plain: bool,
    /// The `name` of a chat-completions message.
    pub name: Option<String>,
    /// Members that only the turn's format has, including the spellings `developer` and `instructions`, item types and ids.
    pub extra: ExtraFields,
}

impl Turn {
    /// A turn with `parts` as a list.
    pub fn new(role: Role, parts: Vec<Part>) -> Self {
        Self {
            role,
            parts,
            plain: false,
            name: None,
            extra: ExtraFields::NONE,
        }
    }
}
