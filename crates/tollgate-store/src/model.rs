//! What goes into the store and what comes out of it.

mod attempt;
mod callback;
mod chat;

use serde_json::Value as Json;
use tollgate_core::{Amount, Millis, TaskKind, TaskState, money};

pub use attempt::{Accepted, AttemptBegun, AttemptEnd, AttemptStart, OpenAttempt, Retry};
pub use callback::{
    CallbackLog, CallbackNext, CallbackState, CallbackTried, CallbackTry, DueCallback,
};
pub use chat::{ChatEnd, ChatSettled, Hold, NewChat, TokenPrices, TokenUnits};

/// Who pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// `user_` and 16 random characters.
    pub id: String,
    /// Unique, chosen by the operator.
    pub name: String,
    /// No limit: `balance` only goes down.
    pub unlimited: bool,
    /// Credits minus settled charges.
    pub balance: Amount,
    /// Set aside for tasks that are not finished.
    pub held: Amount,
    /// Settled charges.
    pub used: Amount,
    /// Of all its keys together.
    pub rates: RateLimits,
    /// When it was disabled, if it was.
    pub disabled_at: Option<Millis>,
}

/// How much may be asked for at a time; none for no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// POSTs in a sliding minute.
    pub rpm: Option<u32>,
    /// Tokens of chat in a sliding minute.
    pub tpm: Option<u32>,
    /// Requests in flight.
    pub max_concurrency: Option<u32>,
}

/// A key to be made.
#[derive(Debug, Clone)]
pub struct NewKey {
    /// `key_` and 16 random characters.
    pub id: String,
    /// SHA-256 of the key, in hex.
    pub hash: String,
    /// The name of the user it belongs to.
    pub user: String,
    /// For people.
    pub label: String,
    /// What it may spend in all; none for no limit but its user's.
    pub quota: Option<Amount>,
    /// Its limits.
    pub limits: KeyLimits,
    /// Now.
    pub now: Millis,
}

/// What a key may do, beside its quota.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyLimits {
    /// Its own rates, beside those of its user.
    pub rates: RateLimits,
    /// Models it may use; none for all.
    pub models: Option<Vec<String>>,
    /// When it ends.
    pub expires_at: Option<Millis>,
    /// Bare chat replies on SPEC.md's paths (`--envelope none`).
    pub bare_envelope: bool,
}

/// A key with what authentication needs of its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    /// `key_` and 16 random characters.
    pub id: String,
    /// For people.
    pub label: String,
    /// Its user.
    pub user_id: String,
    /// Its user's name.
    pub user: String,
    /// None for no limit but its user's.
    pub quota: Option<Amount>,
    /// Set aside for tasks that are not finished.
    pub held: Amount,
    /// Settled charges.
    pub used: Amount,
    /// Its limits.
    pub limits: KeyLimits,
    /// When it was revoked, if it was.
    pub revoked_at: Option<Millis>,
    /// Its user has no limit.
    pub user_unlimited: bool,
    /// The rates of its user.
    pub user_rates: RateLimits,
    /// When its user was disabled, if so.
    pub user_disabled_at: Option<Millis>,
}

/// The price of one submission, frozen when it is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Price of `per` units.
    pub price: Amount,
    /// How many units the price is for: 1 for pictures, 1,000 or 1,000,000 for text.
    pub per: u64,
    /// Units asked for; the hold is for all of them.
    pub units: u64,
}

impl Charge {
    /// What `units` of it cost, none above [`tollgate_core::money::MAX`] or where the price is negative.
    pub fn cost(&self, units: u64) -> Option<Amount> {
        let sane = !self.price.is_negative() && self.price <= money::MAX;
        sane.then(|| self.price.times(units, self.per)).flatten()
    }
}

/// A submission to be taken.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// Made by [`tollgate_core::id::task_id`].
    pub id: String,
    /// Who pays.
    pub user_id: String,
    /// With which key.
    pub key_id: String,
    /// What it makes.
    pub kind: TaskKind,
    /// The family's name.
    pub family: String,
    /// The model as the client wrote it.
    pub model: String,
    /// Now.
    pub created_at: Millis,
    /// Past it the task fails.
    pub deadline_at: Millis,
    /// The normalised job, as JSON.
    pub job: String,
    /// The adjustments, as a JSON array.
    pub adjustments: String,
    /// What the record tells of the request and no other field holds, as a JSON object.
    pub shown: String,
    /// Who is to hear of the end.
    pub callback_url: Option<String>,
    /// The submitting request.
    pub request_id: String,
    /// What it costs.
    pub charge: Charge,
    /// From the `Idempotency-Key` header.
    pub idempotency: Option<Idempotency>,
}

/// What an `Idempotency-Key` is remembered with.
#[derive(Debug, Clone)]
pub struct Idempotency {
    /// The header's value, 1 to 255 characters.
    pub key: String,
    /// A hash of path and body, the same for equal JSON values.
    pub fingerprint: String,
    /// The receipt, sent again byte for byte.
    pub receipt: String,
}

/// What became of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Submitted {
    /// Taken: held for, on disk.
    Accepted,
    /// The same key and body came before; this was the receipt.
    Repeated {
        /// The first receipt, byte for byte.
        receipt: String,
    },
    /// The same key came before with another body.
    KeyReused,
    /// Not taken.
    Refused(Refusal),
}

/// Why money was not moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The user's balance, less what is held, does not cover it.
    UserBalance {
        /// What is left.
        available: Amount,
    },
    /// The key's quota, less what is used and held, does not cover it.
    KeyQuota {
        /// What is left.
        available: Amount,
    },
    /// The user or key does not exist any more, or is disabled or revoked.
    Gone,
}

/// A task as a worker or a reader sees it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// Who pays.
    pub user_id: String,
    /// With which key.
    pub key_id: String,
    /// What it makes.
    pub kind: TaskKind,
    /// The family's name.
    pub family: String,
    /// The model as the client wrote it.
    pub model: String,
    /// Where it stands.
    pub state: TaskState,
    /// Percent done.
    pub progress: i64,
    /// When it was submitted.
    pub created_at: Millis,
    /// When a worker first took it.
    pub started_at: Option<Millis>,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// Past it the task fails.
    pub deadline_at: Millis,
    /// The adjustments, as a JSON array.
    pub adjustments: String,
    /// What the record tells of the request and no other field holds, as a JSON object.
    pub shown: String,
    /// Who is to hear of the end.
    pub callback_url: Option<String>,
    /// What was made, as JSON.
    pub result: Option<String>,
    /// Code and message of a failure.
    pub error: Option<(String, String)>,
    /// What was charged.
    pub cost: Amount,
}

/// A task that a worker has leased.
#[derive(Debug, Clone)]
pub struct Leased {
    /// The task.
    pub task: Task,
    /// The normalised job, as JSON.
    pub job: String,
    /// Must still be the task's when the worker writes: a later lease has a higher one.
    pub fence: i64,
    /// Attempts that failed before.
    pub failed_attempts: i64,
    /// The submitting request, for logs.
    pub request_id: String,
    /// What an earlier lease has left in a provider's queue: it is to be asked for, not made again.
    pub open: Option<OpenAttempt>,
}

/// How a task ends.
#[derive(Debug, Clone)]
pub struct Finish {
    /// The task.
    pub task_id: String,
    /// Who pays.
    pub user_id: String,
    /// With which key.
    pub key_id: String,
    /// The lease under which the work was done.
    pub fence: i64,
    /// `Completed` with units, or `Failed`.
    pub end: End,
    /// The attempt that ends with it.
    pub attempt: Option<AttemptEnd>,
    /// Now.
    pub now: Millis,
}

/// The two ends that work can come to.
#[derive(Debug, Clone)]
pub enum End {
    /// Delivered.
    Completed {
        /// What is to be paid for; not nothing.
        delivered: Delivered,
        /// What was made, as a JSON object whose `files` has an entry for each.
        result: String,
    },
    /// Not delivered; costs nothing.
    Failed {
        /// `provider_error`, `timeout`, …
        code: String,
        /// One sentence for the client.
        message: String,
    },
}

/// How much of its order a completed task delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// So many units; more than were ordered are not paid for.
    Units(u64),
    /// All of them.
    Whole,
}

impl Delivered {
    /// What so many files are worth: of pictures each is a unit; a film or a speech is the whole order, however many
    /// seconds or characters that is.
    pub fn of(kind: TaskKind, files: u64) -> Self {
        if kind == TaskKind::Image || files == 0 {
            Self::Units(files)
        } else {
            Self::Whole
        }
    }

    /// The units that are paid for, of those ordered.
    pub(crate) fn units(self, ordered: u64) -> u64 {
        match self {
            Self::Units(units) => units.min(ordered),
            Self::Whole => ordered,
        }
    }
}

/// What became of a write that only the holder of a lease may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Written; this was charged.
    Done {
        /// What was charged.
        cost: Amount,
    },
    /// The task had ended before: by cancel, deadline, or this very write, repeated.
    Already,
    /// Somebody else has the lease now.
    LostLease,
}

/// What became of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// It ended here; its hold is released. What a provider still has of it: [`crate::Store::last_attempt`].
    Done,
    /// It had ended before.
    AlreadyFinal,
    /// No such task of that user.
    NotFound,
}

/// A page of a user's tasks.
#[derive(Debug, Clone)]
pub struct Page {
    /// Newest first.
    pub tasks: Vec<Task>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// Something that does not add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which invariant.
    pub check: &'static str,
    /// Which row.
    pub subject: String,
    /// What is there and what should be.
    pub detail: String,
}

impl Violation {
    /// As `tollgate audit --json` prints it.
    pub fn to_json(&self) -> Json {
        serde_json::json!({ "check": self.check, "subject": self.subject, "detail": self.detail })
    }
}

/// Numbers for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Totals {
    /// Unfinished tasks, by state.
    pub submitted: i64,
    /// Tasks that a worker has.
    pub in_progress: i64,
    /// When the oldest waiting task became due.
    pub oldest_due_at: Option<Millis>,
    /// Callbacks that are still to be delivered.
    pub callbacks: i64,
    /// Sum over users.
    pub balance: Amount,
    /// Sum over users.
    pub held: Amount,
    /// Sum over users.
    pub used: Amount,
}
