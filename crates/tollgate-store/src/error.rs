//! The errors of the store's methods.

use crate::db::DbError;

/// Why a method of the store failed. Expected outcomes of an operation (insufficient balance, no such task) are in its result instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The database does not respond. The operation may be retried.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The disk under the database is full or failing: nothing was written. The operation may be retried later.
    #[error("the disk of the database takes no writes: {0}")]
    DiskFull(String),
    /// The writer's queue is full: the request should be rejected.
    #[error("too many writes are waiting")]
    Overloaded,
    /// A query of the admin API exceeded its time limit.
    #[error("the query took longer than 5 s")]
    QueryTimeout,
    /// The database cannot be used as it is. Contains one sentence for the operator.
    #[error("{0}")]
    Setup(String),
    /// An argument (a user, a key, an amount, …) is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A statement failed for a reason that a retry does not change. The text is for the log.
    #[error("{0}")]
    Broken(String),
}

impl From<DbError> for StoreError {
    fn from(e: DbError) -> Self {
        match e {
            DbError::Unavailable(why) => Self::Unavailable(why),
            DbError::DiskFull(why) => Self::DiskFull(why),
            DbError::QueryTimeout => Self::QueryTimeout,
            DbError::UnexpectedData(what) | DbError::Duplicate(what) | DbError::Failed(what) => {
                Self::Broken(what)
            }
        }
    }
}

impl StoreError {
    /// Converts the error to one of opening `database`: the operator must repair errors that a retry does not change.
    pub(crate) fn in_setup(self, database: &str) -> Self {
        match self {
            Self::Broken(why) => Self::Setup(format!("cannot use {database}: {why}")),
            other => other,
        }
    }
}
