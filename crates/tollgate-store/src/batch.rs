//! One transaction shared by many operations: what they have in common while it is open.

use crate::db::{DbError, Row, Sql, Tx, Value};
use crate::money::{self, Accounts, EndedChat};

/// The open transaction of a batch, and the accounts that its operations move money of.
pub(crate) struct Batch<'t, 'c> {
    tx: &'t mut Tx<'c>,
    /// Users and keys, loaded and locked when the batch began; written back once when it ends.
    pub(crate) accounts: Accounts,
    /// Whether an earlier try at this batch may have been committed without our hearing of it: an
    /// operation then looks first whether it is there already.
    pub(crate) again: bool,
    /// Written together: at the batch's end, or before the next statement that could look for them.
    pub(crate) ended_chats: Vec<EndedChat>,
}

impl<'t, 'c> Batch<'t, 'c> {
    pub(crate) fn new(tx: &'t mut Tx<'c>, accounts: Accounts, again: bool) -> Self {
        Self {
            tx,
            accounts,
            again,
            ended_chats: Vec::new(),
        }
    }

    pub(crate) async fn query(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, DbError> {
        self.tx()?.query(sql, args).await
    }

    pub(crate) async fn first(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Option<Row>, DbError> {
        self.tx()?.first(sql, args).await
    }

    pub(crate) async fn execute(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        self.tx()?.execute(sql, args).await
    }

    pub(crate) fn run(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<(), DbError> {
        self.tx()?.run(sql, args)
    }

    pub(crate) fn run_one(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<(), DbError> {
        self.tx()?.run_one(sql, args)
    }

    pub(crate) async fn execute_each(
        &mut self,
        sql: &'static Sql,
        lists: Vec<Vec<Value<'static>>>,
    ) -> Result<Vec<u64>, DbError> {
        self.tx()?.execute_each(sql, lists).await
    }

    /// Writes the accounts back: one update per user and key, whatever the number of movements.
    pub(crate) async fn close(&mut self) -> Result<(), DbError> {
        self.tx()?;
        self.accounts.write_back(self.tx)?;
        self.tx.flush().await
    }

    /// The transaction, with all in it that was to be written so far.
    fn tx(&mut self) -> Result<&mut Tx<'c>, DbError> {
        if !self.ended_chats.is_empty() {
            money::write_ended(self.tx, std::mem::take(&mut self.ended_chats))?;
        }
        Ok(self.tx)
    }
}
