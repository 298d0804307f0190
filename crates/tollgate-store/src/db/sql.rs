//! Types that are the same for both databases: SQL statements, parameter values, rows and errors.

use std::borrow::Cow;

/// A statement as text for each database, with `$1`, `$2`, … for its parameters. The parameters must first occur in ascending order, because SQLite
/// numbers named parameters in the order of their occurrence (asserted in debug builds).
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Sql {
    /// The same text for both databases.
    pub(crate) const fn both(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
        }
    }

    /// Separate texts for the two databases: mostly because of row locks, which SQLite with its single writer does not need.
    pub(crate) const fn per_database(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }
}

/// A parameter or a cell: a 64-bit number, a UTF-8 text or null. PostgreSQL cannot store NUL in a text, so it is replaced by U+FFFD.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// The same value with an owned text.
    pub(crate) fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Int(n) => Value::Int(n),
            Value::Text(t) => Value::Text(Cow::Owned(t.into_owned())),
        }
    }
}

impl From<i64> for Value<'_> {
    fn from(n: i64) -> Self {
        Self::Int(n)
    }
}

impl From<bool> for Value<'_> {
    fn from(b: bool) -> Self {
        Self::Int(i64::from(b))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(t: &'a str) -> Self {
        Self::Text(Cow::Borrowed(t))
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(t: &'a String) -> Self {
        Self::Text(Cow::Borrowed(t))
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl From<tollgate_core::Amount> for Value<'_> {
    fn from(amount: tollgate_core::Amount) -> Self {
        Self::Int(amount.nanos())
    }
}

/// Builds the values of a row: `cells![a, b, c]`.
macro_rules! cells {
    ($($value:expr),* $(,)?) => { [$($crate::db::sql::Value::from($value)),*] };
}
pub(crate) use cells;

/// Builds a parameter list: `args![a, b, c]`.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &$crate::db::sql::cells![$($value),*] };
}
pub(crate) use args;

/// One row of a result.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Value<'static>>);

impl Row {
    /// Column `i`, a number that is never null.
    pub(crate) fn int(&self, i: usize) -> Result<i64, DbError> {
        self.opt_int(i)?.ok_or_else(|| {
            DbError::UnexpectedData(format!("column {i} is null, expected a number"))
        })
    }

    /// Column `i`, a number or null.
    pub(crate) fn opt_int(&self, i: usize) -> Result<Option<i64>, DbError> {
        match self.0.get(i) {
            Some(Value::Int(n)) => Ok(Some(*n)),
            Some(Value::Null) => Ok(None),
            other => Err(DbError::UnexpectedData(format!(
                "column {i} is {other:?}, expected a number"
            ))),
        }
    }

    /// Column `i`, a text that is never null. Moves the text out of the row.
    pub(crate) fn text(&mut self, i: usize) -> Result<String, DbError> {
        self.opt_text(i)?
            .ok_or_else(|| DbError::UnexpectedData(format!("column {i} is null, expected a text")))
    }

    /// Column `i`, a text or null. Moves the text out of the row.
    pub(crate) fn opt_text(&mut self, i: usize) -> Result<Option<String>, DbError> {
        match self.0.get_mut(i) {
            Some(Value::Text(t)) => Ok(Some(std::mem::take(t).into_owned())),
            Some(Value::Null) => Ok(None),
            other => Err(DbError::UnexpectedData(format!(
                "column {i} is {other:?}, expected a text"
            ))),
        }
    }

    /// Column `i`, an amount that is never null.
    pub(crate) fn amount(&self, i: usize) -> Result<tollgate_core::Amount, DbError> {
        self.int(i).map(tollgate_core::Amount::from_nanos)
    }
}

/// Why a statement or a transaction failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// The connection is lost: retry on a new one. A commit that was in progress may have succeeded.
    #[error("the database is unavailable: {0}")]
    Unavailable(String),
    /// The disk under the database is full or failing: nothing was committed.
    #[error("the disk of the database takes no writes: {0}")]
    DiskFull(String),
    /// The query was ended because it exceeded its time limit.
    #[error("the query took too long")]
    QueryTimeout,
    /// A row does not have the columns or values that the code expects.
    #[error("unexpected data in the database: {0}")]
    UnexpectedData(String),
    /// Another node has inserted a row with the same key in between: if the operation is applied again, it finds that row.
    #[error("another row has the same key: {0}")]
    Duplicate(String),
    /// Any other error, which a retry would not change; also a guarded statement that changed no row.
    #[error("the statement failed: {0}")]
    Failed(String),
}

/// Fails if a statement did not change the expected number of rows: its guard (the `WHERE` clause) was not satisfied.
pub(super) fn expect_changed(expected: u64, changed: u64, sql: &Sql) -> Result<(), DbError> {
    if changed == expected {
        return Ok(());
    }
    Err(DbError::Failed(format!(
        "a guarded statement changed {changed} rows, expected {expected}: {}",
        sql.postgres
    )))
}
