//! The two databases behind one small face: statements, values, rows, a transaction.

pub(crate) mod postgres;
pub(crate) mod sqlite;

use std::borrow::Cow;
use std::collections::BTreeSet;

/// One statement. Both databases take the same text with `$1`, `$2`, … for its parameters; the first
/// occurrences must stand in ascending order, because SQLite numbers named parameters as it meets
/// them (checked when a statement is first prepared in a debug build).
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

impl Sql {
    /// The same text on both.
    pub(crate) const fn both(text: &'static str) -> Self {
        Self {
            sqlite: text,
            postgres: text,
        }
    }

    /// A text for each, where the two disagree (row locks, mostly: SQLite has one writer anyway).
    pub(crate) const fn each(sqlite: &'static str, postgres: &'static str) -> Self {
        Self { sqlite, postgres }
    }
}

/// A parameter or a cell. All numbers are 64-bit, all texts UTF-8. PostgreSQL takes no NUL in a text: there it
/// becomes U+FFFD.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Text(Cow<'a, str>),
}

impl Value<'_> {
    /// The same value, owning its text.
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
    ($($value:expr),* $(,)?) => { [$($crate::db::Value::from($value)),*] };
}
pub(crate) use cells;

/// Builds a parameter list: `args![a, b, c]`.
macro_rules! args {
    ($($value:expr),* $(,)?) => { &$crate::db::cells![$($value),*] };
}
pub(crate) use args;

/// One row of an answer.
#[derive(Debug)]
pub(crate) struct Row(pub(crate) Vec<Value<'static>>);

impl Row {
    /// Column `i`, a number that is never null.
    pub(crate) fn int(&self, i: usize) -> Result<i64, DbError> {
        self.opt_int(i)?
            .ok_or_else(|| DbError::Shape(format!("column {i} is null, expected a number")))
    }

    /// Column `i`, a number or null.
    pub(crate) fn opt_int(&self, i: usize) -> Result<Option<i64>, DbError> {
        match self.0.get(i) {
            Some(Value::Int(n)) => Ok(Some(*n)),
            Some(Value::Null) => Ok(None),
            other => Err(DbError::Shape(format!(
                "column {i} is {other:?}, expected a number"
            ))),
        }
    }

    /// Column `i`, a text that is never null. Takes it out of the row.
    pub(crate) fn text(&mut self, i: usize) -> Result<String, DbError> {
        self.opt_text(i)?
            .ok_or_else(|| DbError::Shape(format!("column {i} is null, expected a text")))
    }

    /// Column `i`, a text or null. Takes it out of the row.
    pub(crate) fn opt_text(&mut self, i: usize) -> Result<Option<String>, DbError> {
        match self.0.get_mut(i) {
            Some(Value::Text(t)) => Ok(Some(std::mem::take(t).into_owned())),
            Some(Value::Null) => Ok(None),
            other => Err(DbError::Shape(format!(
                "column {i} is {other:?}, expected a text"
            ))),
        }
    }

    /// Column `i`, an amount that is never null.
    pub(crate) fn amount(&self, i: usize) -> Result<tollgate_core::Amount, DbError> {
        self.int(i).map(tollgate_core::Amount::from_nanos)
    }
}

/// What a database said no with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DbError {
    /// The connection is gone: try again on a new one. What was being committed may have been.
    #[error("the database is away: {0}")]
    Away(String),
    /// A row is not what the code expects.
    #[error("unexpected data in the database: {0}")]
    Shape(String),
    /// Anything else.
    #[error("the database refused: {0}")]
    Refused(String),
}

/// An open transaction.
pub(crate) enum Tx<'c> {
    Sqlite(sqlite::Open<'c>),
    Postgres(postgres::Transaction<'c>),
}

impl Tx<'_> {
    /// Rows of a statement.
    pub(crate) async fn query(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, DbError> {
        match self {
            Self::Sqlite(open) => open.query(sql, args),
            Self::Postgres(tx) => tx.query(sql, args).await,
        }
    }

    /// Rows of these ids: `one` has a row's id as its parameter, `all` a JSON array of ids. Which is run is the database's: the
    /// embedded one is asked many times in the time of one look at an array.
    pub(crate) async fn rows_of(
        &mut self,
        one: &'static Sql,
        all: &Sql,
        ids: &BTreeSet<&str>,
    ) -> Result<Vec<Row>, DbError> {
        match self {
            Self::Sqlite(open) => {
                let mut found = Vec::with_capacity(ids.len());
                for id in ids {
                    found.extend(open.read(one, args![*id])?);
                }
                Ok(found)
            }
            Self::Postgres(tx) => {
                let list = serde_json::json!(ids).to_string();
                tx.query(all, args![&list]).await
            }
        }
    }

    /// The first row of a statement, if any.
    pub(crate) async fn first(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Option<Row>, DbError> {
        Ok(self.query(sql, args).await?.into_iter().next())
    }

    /// How many rows a statement changed.
    pub(crate) async fn execute(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        match self {
            Self::Sqlite(open) => open.execute(sql, args),
            Self::Postgres(tx) => tx.execute(sql, args).await,
        }
    }

    /// Sends what [`Tx::run`] left waiting and hears that all of it was done.
    pub(crate) async fn flush(&mut self) -> Result<(), DbError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(tx) => tx.flush().await,
        }
    }

    /// How many rows a statement changed for each of several lists of arguments, in one go.
    pub(crate) async fn execute_each(
        &mut self,
        sql: &'static Sql,
        lists: Vec<Vec<Value<'static>>>,
    ) -> Result<Vec<u64>, DbError> {
        match self {
            Self::Sqlite(open) => lists.iter().map(|args| open.run(sql, args)).collect(),
            Self::Postgres(tx) => tx.execute_each(sql, lists).await,
        }
    }

    /// Runs a statement whose answer nobody waits for: on PostgreSQL it is sent along with the
    /// next ones, in order, so that a batch costs few round trips. Its error fails the batch.
    pub(crate) fn run(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<(), DbError> {
        match self {
            Self::Sqlite(open) => open.run(sql, args).map(drop),
            Self::Postgres(tx) => {
                tx.queue(sql, args, None);
                Ok(())
            }
        }
    }

    /// [`Tx::run`] of a statement that must change exactly one row; anything else fails the batch.
    pub(crate) fn run_one(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<(), DbError> {
        match self {
            Self::Sqlite(open) => exactly(1, open.run(sql, args)?, sql),
            Self::Postgres(tx) => {
                tx.queue(sql, args, Some(1));
                Ok(())
            }
        }
    }
}

/// Refuses a statement that changed other than the expected number of rows: its guard held it back.
fn exactly(expected: u64, changed: u64, sql: &Sql) -> Result<(), DbError> {
    if changed == expected {
        return Ok(());
    }
    Err(DbError::Refused(format!(
        "a guarded statement changed {changed} rows instead of {expected}: {}",
        sql.postgres
    )))
}
