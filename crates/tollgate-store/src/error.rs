//! What the store says when it cannot do a thing.

use crate::db::DbError;

/// Why an operation failed. Refusals that belong to an operation's meaning (no money, no such task) are in
/// its result instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database does not answer; the operation may be tried again.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// Too many writes are waiting: load must be shed.
    #[error("too many writes are waiting")]
    Overloaded,
    /// The database cannot be used as it is: one sentence for the operator.
    #[error("{0}")]
    Setup(String),
    /// A user, key or amount that the operator named cannot be used so.
    #[error("{0}")]
    Invalid(String),
    /// A statement failed for a reason that a new try will not change: for the log.
    #[error("{0}")]
    Broken(String),
}

impl From<DbError> for StoreError {
    fn from(e: DbError) -> Self {
        match e {
            DbError::Away(why) => Self::Unavailable(why),
            DbError::Shape(what) | DbError::Refused(what) => Self::Broken(what),
        }
    }
}

impl StoreError {
    /// While a database is being opened, what is broken is for the operator to put right.
    pub(crate) fn in_setup(self, what: &str) -> Self {
        match self {
            Self::Broken(why) => Self::Setup(format!("cannot use {what}: {why}")),
            other => other,
        }
    }
}
