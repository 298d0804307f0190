//! Attempts: one try of a task on one channel.

use tollgate_core::Millis;

/// An attempt that begins.
#[derive(Debug, Clone)]
pub struct AttemptStart {
    /// The task.
    pub task_id: String,
    /// The lease under which it is made.
    pub fence: i64,
    /// The channel that is tried.
    pub channel: String,
    /// Our own id for the work, where the provider takes one.
    pub external_id: Option<String>,
    /// Whether the provider takes the work into its queue. What becomes of such an attempt is known only from the
    /// provider: it stays open when its lease is lost, until somebody says how it ended.
    pub queued: bool,
    /// Fingerprint of the provider's key that is used; never the key.
    pub key_print: Option<String>,
    /// The outcome (`unknown`, `lost`, …) of an earlier attempt that may still be in a provider's queue. With none
    /// such an attempt stays, and the new one is not begun.
    pub abandon: Option<&'static str>,
    /// Now.
    pub now: Millis,
}

/// What became of an attempt that was to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptBegun {
    /// Written down, under this number.
    Begun(i64),
    /// Not written down: a provider has, or may have, an earlier one in its queue.
    StillOpen,
    /// Not written down: the lease is lost.
    LostLease,
}

/// An attempt that its provider has, or may have, in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    /// Its number among the task's attempts, from 1.
    pub number: i64,
    /// Its channel.
    pub channel: String,
    /// Our own id for the work, where the provider takes one.
    pub external_id: Option<String>,
    /// Fingerprint of the provider's key that was used.
    pub key_print: Option<String>,
    /// The provider's name for the work; none while it is not known whether the provider has it.
    pub ticket: Option<String>,
    /// When the first ticket was written down.
    pub ticket_at: Option<Millis>,
    /// What the provider was asked for instead of what the job says: [`Accepted::adjustments`].
    pub adjustments: Option<String>,
    /// When it began.
    pub started_at: Millis,
}

/// A provider's word that it has the work of an attempt in its queue.
#[derive(Debug, Clone)]
pub struct Accepted {
    /// The task.
    pub task_id: String,
    /// The lease under which it was handed over.
    pub fence: i64,
    /// The attempt's number.
    pub number: i64,
    /// What the provider calls the work: opaque, 1 to [`Accepted::TICKET_MAX`] bytes.
    pub ticket: String,
    /// What the provider was asked for instead of what the job says: adjustments as a JSON array, none where there are
    /// none.
    pub adjustments: Option<String>,
    /// Now.
    pub now: Millis,
}

impl Accepted {
    /// How long a ticket may be, in bytes.
    pub const TICKET_MAX: usize = 8192;
}

/// An attempt that ends.
#[derive(Debug, Clone)]
pub struct AttemptEnd {
    /// Its number, from [`crate::Store::begin_attempt`].
    pub number: i64,
    /// `done`, `failed`, `rejected`, `interrupted`, `timeout`, …
    pub outcome: &'static str,
    /// The provider's words.
    pub error: Option<String>,
}

/// A failed attempt after which the task is tried again.
#[derive(Debug, Clone)]
pub struct Retry {
    /// The task.
    pub task_id: String,
    /// The lease under which it failed.
    pub fence: i64,
    /// The attempt.
    pub attempt: AttemptEnd,
    /// When to try again.
    pub due_at: Millis,
    /// Now.
    pub now: Millis,
}
