//! Retention: purges ended tasks with their attempts and webhooks, details of chat requests, and idempotency records. Charges, chats and ledger
//! entries are kept.

use async_trait::async_trait;
use tollgate_core::{Millis, id};

use crate::access_changes;
use crate::admin;
use crate::alerts;
use crate::db::{DbError, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::tasks::submit::IDEMPOTENCY_TTL;
use crate::uploads;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// Rows of each kind that one write purges, so that other writes do not wait long for it.
const PURGE_ROWS: i64 = 500;

// Ids sort by time, so the oldest tasks are the first of the primary key and no index on `ended_at` is needed.
pub(crate) const OLD_TASKS: Sql =
    Sql::both("SELECT id FROM tasks WHERE id < $1 AND ended_at <= $2 ORDER BY id LIMIT $3");
pub(crate) const DELETE_ATTEMPTS: Sql = Sql::both("DELETE FROM attempts WHERE task_id = $1");
// Recording a delivery attempt locks the webhook's row: either the attempt is recorded before and deleted below, or it finds no row.
pub(crate) const DELETE_WEBHOOK: Sql = Sql::both("DELETE FROM callbacks WHERE task_id = $1");
pub(crate) const DELETE_DELIVERY_ATTEMPTS: Sql =
    Sql::both("DELETE FROM callback_tries WHERE task_id = $1");
pub(crate) const DELETE_TASK: Sql = Sql::both("DELETE FROM tasks WHERE id = $1");
pub(crate) const DELETE_IDEMPOTENCY_RECORDS: Sql = Sql::both(
    "DELETE FROM idempotency WHERE (user_id, key) IN
     (SELECT user_id, key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2)",
);
pub(crate) const CHATS_PURGED_UNTIL: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'chats_forgotten'");
pub(crate) const OLD_CHATS: Sql = Sql::both(
    "SELECT id, closed_at FROM chats WHERE id >= $1 AND id < $2 AND attempts <> '' ORDER BY id LIMIT $3",
);
pub(crate) const CLEAR_CHAT_DETAILS: Sql = Sql::both(
    "UPDATE chats SET request_id = '', channel = NULL, upstream_model = NULL, attempts = '', dropped = NULL WHERE id = $1",
);
pub(crate) const SET_CHATS_PURGED_UNTIL: Sql =
    Sql::both("UPDATE meta SET value = $1 WHERE name = 'chats_forgotten'");

/// Retention.
impl Store {
    /// Purges some of the tasks that ended until `ended_until` with their attempts and webhooks, the details of some chats that ended until then, and
    /// some idempotency records older than a day. Returns the number of rows; call it until that is 0. Tasks whose partition will be dropped are kept
    /// until then ([`Store::maintain_partitions`]).
    ///
    /// # Errors
    /// The database's.
    pub async fn purge_expired(&self, ended_until: Millis, now: Millis) -> Result<u64, StoreError> {
        let first_kept = self.first_id_kept(ended_until, now).await?;
        let purge = Purge {
            first_kept,
            ended_until,
            now,
        };
        self.write(purge).await
    }
}

struct Purge {
    /// Tasks with this id or a later one are kept.
    first_kept: String,
    ended_until: Millis,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for Purge {
    type Out = u64;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        let args = args![&self.first_kept, self.ended_until, PURGE_ROWS];
        let tasks = batch.query(&OLD_TASKS, args).await?;
        let mut purged = tasks.len() as u64;
        for mut row in tasks {
            let id = row.text(0)?;
            batch.queue(&DELETE_ATTEMPTS, args![&id])?;
            batch.queue(&DELETE_WEBHOOK, args![&id])?;
            batch.queue(&DELETE_DELIVERY_ATTEMPTS, args![&id])?;
            batch.queue(&DELETE_TASK, args![&id])?;
        }
        let args = args![self.now - IDEMPOTENCY_TTL, PURGE_ROWS];
        purged += batch.execute(&DELETE_IDEMPOTENCY_RECORDS, args).await?;
        purged += self.clear_chat_details(batch).await?;
        access_changes::purge(batch).await?;
        admin::retention::purge(batch, self.now).await?;
        uploads::purge(batch, self.now).await?;
        alerts::deliveries::purge(batch, self.now).await?;
        Ok(purged)
    }
}

impl Purge {
    /// Clears the details of chats in the order of their ids, which sort by time. Stores the last id, so that the rows, which are kept, are not read
    /// again.
    async fn clear_chat_details(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        let row = batch.first(&CHATS_PURGED_UNTIL, &[]).await?;
        let begin = row.map_or(Ok(0), |row| row.int(0))?;
        let end = self.ended_until + 1;
        if begin >= end {
            return Ok(0);
        }
        let (from, to) = (id::min_chat_id_at(begin), id::min_chat_id_at(end));
        let chats = batch
            .query(&OLD_CHATS, args![&from, &to, PURGE_ROWS])
            .await?;
        let is_last_page = (chats.len() as i64) < PURGE_ROWS;
        let (mut cleared, mut reached) = (0, None);
        for mut row in chats {
            let (id, closed_at) = (row.text(0)?, row.opt_int(1)?);
            reached = id::chat_id_time(&id);
            if closed_at.is_none_or(|at| at > self.ended_until) {
                // This chat and later ones are left for the next purge.
                store_progress(batch, begin, reached)?;
                return Ok(cleared);
            }
            batch.queue(&CLEAR_CHAT_DETAILS, args![&id])?;
            cleared += 1;
        }
        store_progress(batch, begin, if is_last_page { Some(end) } else { reached })?;
        Ok(cleared)
    }
}

/// Stores the last id that [`Purge::clear_chat_details`] has reached.
fn store_progress(
    batch: &mut Batch<'_, '_>,
    begin: Millis,
    reached: Option<Millis>,
) -> Result<(), DbError> {
    match reached.filter(|at| *at > begin) {
        Some(at) => batch.queue(&SET_CHATS_PURGED_UNTIL, args![at]),
        None => Ok(()),
    }
}
