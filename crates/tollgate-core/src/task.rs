//! A task's states and the only moves between them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a task makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// One or more pictures.
    Image,
    /// A film.
    Video,
    /// A text spoken.
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

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// Where a task stands. The names are those of SPEC.md › States and transitions; each family's
/// record may call them otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Accepted, held for, waiting for a worker.
    Submitted = 0,
    /// A worker has it.
    InProgress = 1,
    /// Ended with at least one result. Final.
    Completed = 2,
    /// Ended without a result. Final; costs nothing.
    Failed = 3,
    /// Ended by its user. Final; costs nothing.
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

    /// The number that the database keeps.
    pub fn number(self) -> i64 {
        self as i64
    }

    /// The state of that number.
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

    /// Whether a task may go from here to `next`. Going on (`InProgress` to itself) is a new lease.
    pub fn may_become(self, next: Self) -> bool {
        match self {
            Self::Submitted => next != Self::Submitted,
            Self::InProgress => next != Self::Submitted,
            Self::Completed | Self::Failed | Self::Cancelled => false,
        }
    }
}

/// A request value that the rules changed silently. Receipts and records carry these
/// (DECISIONS.md › Paths and shapes).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adjustment {
    /// The request field, such as `n`.
    pub field: String,
    /// What the client sent.
    pub asked: Value,
    /// What is used instead; `null` when the field is ignored.
    pub used: Value,
    /// One short sentence.
    pub why: String,
}

impl Adjustment {
    /// Records that `field` was `asked` and `used` is used, because of `why`.
    pub fn new(
        field: impl Into<String>,
        asked: impl Into<Value>,
        used: impl Into<Value>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            asked: asked.into(),
            used: used.into(),
            why: why.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_their_names() {
        for kind in TaskKind::ALL {
            assert_eq!(TaskKind::from_name(kind.name()), Some(kind));
        }
        assert_eq!(TaskKind::from_name("chat"), None);
    }

    #[test]
    fn final_states_never_change() {
        for from in TaskState::ALL {
            for to in TaskState::ALL {
                if from.is_final() {
                    assert!(!from.may_become(to), "{from:?} -> {to:?}");
                }
            }
            assert_eq!(TaskState::from_number(from.number()), Some(from));
        }
        assert!(TaskState::Submitted.may_become(TaskState::Cancelled));
        assert!(!TaskState::InProgress.may_become(TaskState::Submitted));
    }
}
