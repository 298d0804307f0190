//! Task kinds, task states, and [`Adjustment`]s of request values. See docs/tasks.md.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The kind of result that a task produces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// One or more images.
    Image,
    /// A video.
    Video,
    /// Speech from text.
    Speech,
}

impl TaskKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Image, Self::Video, Self::Speech];

    /// The name in the database and in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Video => "video",
            Self::Speech => "speech",
        }
    }

    /// The kind with that name. `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// The state of a task. Some response formats use other names; see docs/tasks.md.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Accepted; its price is held; waiting for a worker.
    Submitted = 0,
    /// Claimed by a worker.
    InProgress = 1,
    /// Ended with at least one result; charged. Final.
    Completed = 2,
    /// Ended without a result; not charged. Final.
    Failed = 3,
    /// Cancelled by its user or an operator; not charged. Final.
    Cancelled = 4,
}

impl TaskState {
    /// Every state, in the order of their numbers.
    pub const ALL: [Self; 5] = [
        Self::Submitted,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The number stored in the database.
    pub fn number(self) -> i64 {
        self as i64
    }

    /// The state with that number. `None` if there is none.
    pub fn from_number(number: i64) -> Option<Self> {
        usize::try_from(number)
            .ok()
            .and_then(|n| Self::ALL.get(n).copied())
    }

    /// The name in metrics, logs and the audit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the state never changes again.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// A request value that was changed or ignored instead of being rejected. Receipts and records list them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The request field, such as `n`.
    pub field: String,
    /// The value that the client sent; `asked` in JSON.
    #[serde(rename = "asked")]
    pub requested: Value,
    /// The value used instead; `null` if the field is ignored.
    pub used: Value,
    /// The reason, as one short sentence.
    pub why: String,
}

impl Adjustment {
    /// An adjustment of `field` from `requested` to `used` for the reason `why`.
    pub fn new(
        field: impl Into<String>,
        requested: impl Into<Value>,
        used: impl Into<Value>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            requested: requested.into(),
            used: used.into(),
            why: why.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_name() {
        for kind in TaskKind::ALL {
            assert_eq!(TaskKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(TaskKind::from_name("chat"), None);
    }

    #[test]
    fn states_are_found_by_number() {
        for state in TaskState::ALL {
            assert_eq!(TaskState::from_number(state.number()), Some(state));
        }
        assert_eq!(TaskState::from_number(5), None);
    }
}
