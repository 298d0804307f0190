//! Forgetting: task records past their time, idempotency keys after a day. The books stay.

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
pub(super) const DROP_TASK: Sql = Sql::both("DELETE FROM tasks WHERE id = $1");
pub(super) const DROP_KEYS: Sql = Sql::both(
    "DELETE FROM idempotency WHERE (user_id, key) IN
     (SELECT user_id, key FROM idempotency WHERE created_at <= $1 ORDER BY created_at LIMIT $2)",
);

/// Deletes some of what is past its time; answers how many rows went.
pub(crate) struct Purge {
    /// Tasks that ended until then go.
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
            batch.run(&DROP_TASK, args![&id])?;
        }
        gone += batch
            .execute(&DROP_KEYS, args![self.now - IDEMPOTENCY_LIFE, AT_ONCE])
            .await?;
        Ok(gone)
    }
}
