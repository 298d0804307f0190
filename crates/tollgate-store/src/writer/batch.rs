//! The open transaction that the operations of a batch share, with the balances that they change.

use std::sync::Arc;

use crate::db::{DbError, Row, RowsSql, Sql, Tx, Value};
use crate::ledger::balances::Balances;
use crate::ledger::chat_rows::{EndedChat, insert_ended_chats};
use crate::ledger::reservations::Reservations;
use crate::list_blocks::{self, BlockEnds, List};
use crate::tail::recorder::{PendingTail, TailRecorder};
use crate::tasks::queue_table::{QueueSql, QueueState, QueueTable};
use crate::usage::PendingUsage;

/// State that batches share with each other and with the rest of the process.
pub(super) struct WriterMemory {
    /// The reservations, whose money batches must not spend.
    pub(super) reservations: Arc<Reservations>,
    /// Records the events of a batch.
    pub(super) tail: Arc<TailRecorder>,
    /// The table that contains the queue.
    pub(super) queue_state: Arc<QueueState>,
    pub(super) block_ends: BlockEnds,
}

/// A batch: one transaction, many operations.
pub(crate) struct Batch<'t, 'c> {
    tx: &'t mut Tx<'c>,
    /// Users and keys: loaded and locked when the batch begins, and written once when it ends.
    pub(crate) balances: Balances,
    /// Whether an earlier try of this batch may have been committed, because the reply to its commit was lost. Operations then check first whether
    /// they were already applied.
    pub(crate) commit_in_doubt: bool,
    /// Ended chats, which are inserted together at the end of the batch or before the next statement that could read them.
    pub(crate) ended_chats: Vec<EndedChat>,
    /// The usage of tasks and chats that ended or were refunded in this batch.
    pub(crate) usage: PendingUsage,
    /// The events of this batch, if there is a watcher.
    pub(crate) tail: PendingTail,
    /// The table that contains the state of unfinished tasks.
    pub(crate) queue_table: QueueTable,
    pub(crate) queue_state: &'t QueueState,
    pub(crate) block_ends: &'t BlockEnds,
    recorder: &'t TailRecorder,
}

impl<'t, 'c> Batch<'t, 'c> {
    pub(super) fn new(
        tx: &'t mut Tx<'c>,
        balances: Balances,
        commit_in_doubt: bool,
        queue_table: QueueTable,
        memory: &'t WriterMemory,
    ) -> Self {
        Self {
            tx,
            balances,
            commit_in_doubt,
            ended_chats: Vec::new(),
            usage: PendingUsage::default(),
            tail: PendingTail::new(&memory.tail),
            queue_table,
            queue_state: &memory.queue_state,
            block_ends: &memory.block_ends,
            recorder: &memory.tail,
        }
    }

    /// The statement for the table that contains the state of unfinished tasks.
    pub(crate) fn on_queue(&self, sql: &'static QueueSql) -> &'static Sql {
        sql.on(self.queue_table)
    }

    /// As [`Tx::query`].
    pub(crate) async fn query(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, DbError> {
        self.tx()?.query(sql, args).await
    }

    /// As [`Tx::first`].
    pub(crate) async fn first(
        &mut self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Option<Row>, DbError> {
        self.tx()?.first(sql, args).await
    }

    /// As [`Tx::execute`].
    pub(crate) async fn execute(&mut self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        self.tx()?.execute(sql, args).await
    }

    /// As [`Tx::queue`].
    pub(crate) fn queue(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<(), DbError> {
        self.tx()?.queue(sql, args)
    }

    /// As [`Tx::queue_row`].
    pub(crate) fn queue_row(
        &mut self,
        rows: &'static RowsSql,
        args: &[Value<'_>],
    ) -> Result<(), DbError> {
        self.tx()?.queue_row(rows, args)
    }

    /// As [`Tx::queue_one`].
    pub(crate) fn queue_one(
        &mut self,
        sql: &'static Sql,
        args: &[Value<'_>],
    ) -> Result<(), DbError> {
        self.tx()?.queue_one(sql, args)
    }

    /// As [`Tx::execute_each`].
    pub(crate) async fn execute_each(
        &mut self,
        sql: &'static Sql,
        lists: Vec<Vec<Value<'static>>>,
    ) -> Result<Vec<u64>, DbError> {
        self.tx()?.execute_each(sql, lists).await
    }

    /// As [`list_blocks::note_inserted`], for one row.
    pub(crate) fn note_inserted(&mut self, list: List, id: &str) -> Result<(), DbError> {
        let ends = self.block_ends;
        list_blocks::note_inserted(self.tx()?, ends, list, id)
    }

    /// Writes the balances, with one update for each user and key however many movements there were, the sums of usage, and the events of the live
    /// tail.
    pub(super) async fn close(&mut self) -> Result<(), DbError> {
        self.tx()?;
        self.balances.write_back(self.tx)?;
        self.usage.insert(self.tx)?;
        self.tail.insert(self.tx, self.recorder)?;
        self.tx.flush().await
    }

    /// Returns the transaction, after inserting the ended chats.
    fn tx(&mut self) -> Result<&mut Tx<'c>, DbError> {
        if !self.ended_chats.is_empty() {
            let chats = std::mem::take(&mut self.ended_chats);
            insert_ended_chats(self.tx, self.block_ends, chats)?;
        }
        Ok(self.tx)
    }
}
