//! An open transaction on either database.

use std::collections::BTreeSet;

use super::rows::{GROUP, RowsSql};
use super::sql::{DbError, Row, Sql, Value, args, expect_changed};
use super::{postgres, sqlite};

/// An open transaction.
pub(crate) enum Tx<'c> {
    Sqlite(sqlite::Transaction<'c>),
    Postgres(postgres::Transaction<'c>),
}

impl Tx<'_> {
    /// Runs a query and returns its rows.
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

    /// Returns the rows with these ids. `one` has a single id as its parameter, `all` a JSON array of ids. SQLite runs `one` for each id, which is
    /// faster there than expanding the array; PostgreSQL runs `all` in one round trip.
    pub(crate) async fn query_by_ids(
        &mut self,
        one: &'static Sql,
        all: &Sql,
        ids: &BTreeSet<&str>,
    ) -> Result<Vec<Row>, DbError> {
        match self {
            Self::Sqlite(open) => {
                let mut found = Vec::with_capacity(ids.len());
                for id in ids {
                    found.extend(open.query_repeated(one, args![*id])?);
                }
                Ok(found)
            }
            Self::Postgres(tx) => {
                let list = serde_json::json!(ids).to_string();
                tx.query(all, args![&list]).await
            }
        }
    }

    /// Runs a query and returns its first row, if any.
    pub(crate) async fn first(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Option<Row>, DbError> {
        Ok(self.query(sql, args).await?.into_iter().next())
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) async fn execute(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        match self {
            Self::Sqlite(open) => open.execute(sql, args),
            Self::Postgres(tx) => tx.execute(sql, args).await,
        }
    }

    /// Sends the statements that [`Tx::queue`] has queued, and returns when all of them are done.
    pub(crate) async fn flush(&mut self) -> Result<(), DbError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(tx) => tx.flush().await,
        }
    }

    /// Runs a statement once for each list of arguments, pipelined, and returns how many rows each run changed.
    pub(crate) async fn execute_each(
        &mut self,
        sql: &'static Sql,
        lists: Vec<Vec<Value<'static>>>,
    ) -> Result<Vec<u64>, DbError> {
        match self {
            Self::Sqlite(open) => lists
                .iter()
                .map(|args| open.execute_repeated(sql, args))
                .collect(),
            Self::Postgres(tx) => tx.execute_each(sql, lists).await,
        }
    }

    /// Queues a statement without waiting for its result. On PostgreSQL it is sent with the next statements, in order, so that a batch needs few
    /// round trips. An error of the statement fails the batch.
    pub(crate) fn queue(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<(), DbError> {
        match self {
            Self::Sqlite(open) => open.execute_repeated(sql, args).map(drop),
            Self::Postgres(tx) => {
                tx.queue(sql, args, None);
                Ok(())
            }
        }
    }

    /// As [`Tx::queue`], for a statement that PostgreSQL merges with others of its kind.
    pub(crate) fn queue_row(
        &mut self,
        rows: &'static RowsSql,
        args: &[Value<'_>],
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(open) => open.execute_repeated(&rows.one, args).map(drop),
            Self::Postgres(tx) => {
                tx.queue_row(rows, args, None);
                Ok(())
            }
        }
    }

    /// Inserts rows, each as by [`Tx::queue_row`]; SQLite also inserts several with one statement.
    pub(crate) fn queue_rows<'v, const COLUMNS: usize>(
        &mut self,
        insertion: &'static RowsSql,
        rows: impl Iterator<Item = [Value<'v>; COLUMNS]>,
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(open) => {
                let rows: Vec<[Value<'v>; COLUMNS]> = rows.collect();
                let (groups, rest) = rows.as_chunks::<GROUP>();
                for group in groups {
                    let sql = insertion.of_group(COLUMNS);
                    open.execute_repeated(sql, group.as_flattened())?;
                }
                for row in rest {
                    open.execute_repeated(&insertion.one, row)?;
                }
            }
            Self::Postgres(tx) => rows.for_each(|row| tx.queue_row(insertion, &row, None)),
        }
        Ok(())
    }

    /// As [`Tx::queue_row`], for a statement that must change exactly one row; otherwise the batch fails.
    pub(crate) fn queue_one_row(
        &mut self,
        rows: &'static RowsSql,
        args: &[Value<'_>],
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(_) => self.queue_one(&rows.one, args),
            Self::Postgres(tx) => {
                tx.queue_row(rows, args, Some(1));
                Ok(())
            }
        }
    }

    /// As [`Tx::queue`], for a statement that must change exactly one row; otherwise the batch fails.
    pub(crate) fn queue_one(
        &mut self,
        sql: &'static Sql,
        args: &[Value<'_>],
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(open) => expect_changed(1, open.execute_repeated(sql, args)?, sql),
            Self::Postgres(tx) => {
                tx.queue(sql, args, Some(1));
                Ok(())
            }
        }
    }
}
