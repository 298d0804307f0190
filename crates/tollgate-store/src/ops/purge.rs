//! Forgetting: records of tasks with their callbacks, and details of chat requests past their time, idempotency keys after
//! a day. The books stay, and with them what a chat was charged for.

use async_trait::async_trait;
use tollgate_core::{Millis, clock, id};

use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::writer::Write;

/// How long an `Idempotency-Key` is remembered (CONTRACT.md › Sharper points).
pub(crate) const IDEMPOTENCY_LIFE: Millis = clock::DAY;
/// Rows of each kind that one write takes, so that no other write waits long behind it.
const AT_ONCE: i64 = 500;

// Ids sort by time, so the oldest tasks are the first of the primary key and no index on the end is needed.
pub(super) const OLD_TASKS: Sql =
    Sql::both("SELECT id FROM tasks WHERE id < $1 AND ended_at <= $2 ORDER BY id LIMIT $3");
pub(super) const DROP_ATTEMPTS: Sql = Sql::both("DELETE FROM attempts WHERE task_id = $1");
// A try that is being written down holds the callback's row: it comes before, and goes with it, or after, and finds it gone.
pub(super) const DROP_CALLBACK: Sql = Sql::both("DELETE FROM callbacks WHERE task_id = $1");
pub(super) const DROP_TRIES: Sql = Sql::both("DELETE FROM callback_tries WHERE task_id = $1");
pub(super) const DROP_TASK: Sql = Sql::both("DELETE FROM tasks WHERE id = $1");
pub(super) const DROP_KEYS: Sql = Sql::both(
    "DELETE FROM idempotency WHERE (user_id, key) IN
     (SELECT user_id, key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2)",
);
pub(super) const CHATS_FORGOTTEN: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'chats_forgotten'");
pub(super) const OLD_CHATS: Sql = Sql::both(
    "SELECT id, closed_at FROM chats WHERE id >= $1 AND id < $2 AND attempts <> '' ORDER BY id LIMIT $3",
);
pub(super) const FORGET_CHAT: Sql = Sql::both(
    "UPDATE chats SET request_id = '', channel = NULL, upstream_model = NULL, attempts = '' WHERE id = $1",
);
pub(super) const SET_CHATS_FORGOTTEN: Sql =
    Sql::both("UPDATE meta SET value = $1 WHERE name = 'chats_forgotten'");

/// Deletes some of what is past its time; answers how many rows went.
pub(crate) struct Purge {
    /// Tasks that ended until then go, and details of chats.
    pub(crate) ended_until: Millis,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for Purge {
    type Out = u64;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        let bound = id::task_id_floor(self.ended_until + 1);
        let old = batch
            .query(&OLD_TASKS, args![&bound, self.ended_until, AT_ONCE])
            .await?;
        let mut gone = old.len() as u64;
        for mut row in old {
            let id = row.text(0)?;
            batch.run(&DROP_ATTEMPTS, args![&id])?;
            batch.run(&DROP_CALLBACK, args![&id])?;
            batch.run(&DROP_TRIES, args![&id])?;
            batch.run(&DROP_TASK, args![&id])?;
        }
        gone += batch
            .execute(&DROP_KEYS, args![self.now - IDEMPOTENCY_LIFE, AT_ONCE])
            .await?;
        gone += self.forget_chats(batch).await?;
        Ok(gone)
    }
}

impl Purge {
    /// Chat ids sort by time too. How far this has come is remembered, so that rows that stay are not read again.
    async fn forget_chats(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        let row = batch.first(&CHATS_FORGOTTEN, &[]).await?;
        let begin = row.map_or(Ok(0), |row| row.int(0))?;
        let end = self.ended_until + 1;
        if begin >= end {
            return Ok(0);
        }
        let (from, to) = (id::chat_id_floor(begin), id::chat_id_floor(end));
        let old = batch.query(&OLD_CHATS, args![&from, &to, AT_ONCE]).await?;
        let is_all = (old.len() as i64) < AT_ONCE;
        let mut forgotten = 0;
        let mut come_to = None;
        for mut row in old {
            let (id, closed_at) = (row.text(0)?, row.opt_int(1)?);
            come_to = id::chat_id_time(&id);
            if closed_at.is_none_or(|at| at > self.ended_until) {
                // It and those behind it come next time.
                return remember(batch, begin, come_to, forgotten);
            }
            batch.run(&FORGET_CHAT, args![&id])?;
            forgotten += 1;
        }
        let come_to = if is_all { Some(end) } else { come_to };
        remember(batch, begin, come_to, forgotten)
    }
}

/// Remembers how far forgetting has come; answers how much was `forgotten`.
fn remember(
    batch: &mut Batch<'_, '_>,
    begin: Millis,
    come_to: Option<Millis>,
    forgotten: u64,
) -> Result<u64, DbError> {
    if let Some(at) = come_to.filter(|at| *at > begin) {
        batch.run(&SET_CHATS_FORGOTTEN, args![at])?;
    }
    Ok(forgotten)
}
