//! Callbacks: who is told of a task's end, and what became of telling it.

use tollgate_core::Millis;

/// A callback that its claimer is to try now. Until its lease ends nobody else does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueCallback {
    /// The task that has ended.
    pub task_id: String,
    /// The key it was submitted with: its secret signs the callback.
    pub key_id: String,
    /// Where it goes.
    pub url: String,
    /// Tries before this one, which has the next number. Those whose node died over them count too.
    pub tries: i64,
    /// When the task ended.
    pub first_at: Millis,
}

/// A try of a callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackTried {
    /// The task.
    pub task_id: String,
    /// The number of the try, from 1: one more than [`DueCallback::tries`].
    pub number: i64,
    /// When it began.
    pub at: Millis,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// What comes next.
    pub next: CallbackNext,
}

/// What comes after a try of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackNext {
    /// Nothing: it arrived.
    Delivered,
    /// Another try, at that time.
    Again(Millis),
    /// Nothing: it was tried long enough.
    GivenUp,
}

/// Where a callback stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallbackState {
    /// It is still to be delivered.
    Waiting,
    /// It arrived. Final.
    Delivered,
    /// Nobody tries any more.
    GivenUp,
}

impl CallbackState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Waiting, Self::Delivered, Self::GivenUp];

    /// The name in the database and for readers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given_up",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What became of a callback so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackLog {
    /// Where it goes.
    pub url: String,
    /// Where it stands.
    pub state: CallbackState,
    /// When it is tried next, while it waits; while a try is running, when that counts as dead.
    pub next_at: Option<Millis>,
    /// The tries that were written down, in their order.
    pub tries: Vec<CallbackTry>,
}

/// A try of a callback that was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackTry {
    /// Its number, from 1.
    pub number: i64,
    /// When it began.
    pub at: Millis,
    /// How long it took, in milliseconds.
    pub took_ms: i64,
    /// The HTTP status, if there was an answer.
    pub status: Option<u16>,
    /// Why it did not succeed.
    pub error: Option<String>,
}
