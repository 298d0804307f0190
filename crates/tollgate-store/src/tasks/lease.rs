//! The leases of the task queue: a worker that has [claimed](super::claim) tasks renews, postpones or releases their leases.
//!
//! A leased task is not due before its lease expires; then claims make it due again, so nothing must be cleaned up after a worker that died. `fence`
//! is a fencing token, which each claim raises: a writer with an older one has lost the lease. A writer whose task was postponed or released has lost
//! it too: the task has no owner until the next claim. A renewal writes only the end of the lease, in the narrow table `queue`
//! ([`super::queue_table`]).

use async_trait::async_trait;
use tollgate_core::{Millis, TaskState};

use super::queue_table::{QueueSql, QueueTable};
use super::shards::{FOREIGN_DELAY, Shards};
use crate::db::{DbError, Sql, Value, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::task_versions::TaskVersions;
use crate::webhooks::{MAX_WEBHOOK_PAUSE, RELEASE_ALL_WEBHOOKS, RELEASE_STRANDED_WEBHOOKS};
use crate::writer::Write;
use crate::writer::batch::Batch;

pub(crate) const RENEW_LEASE: QueueSql = QueueSql {
    // If a lease has expired, but nobody has claimed the task since, the renewal makes it valid again.
    queue: Sql::both(
        "UPDATE queue SET lease_until = $1, due_at = NULL WHERE task_id = $2 AND fence = $3 AND owner = $4",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET due_at = $1 WHERE id = $2 AND fence = $3 AND owner = $4 AND state = 1",
    ),
};
pub(crate) const SET_PROGRESS: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE queue SET progress = $1, polled_at = $2 WHERE task_id = $3 AND fence = $4 AND owner IS NOT NULL",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET progress = $1, polled_at = $2 WHERE id = $3 AND fence = $4 AND owner IS NOT NULL AND state = 1",
    ),
};
pub(crate) const POSTPONE_TASK: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE queue SET due_at = $1, owner = NULL, lease_until = NULL WHERE task_id = $2 AND fence = $3 AND owner IS NOT NULL",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET due_at = $1, owner = NULL WHERE id = $2 AND fence = $3 AND owner IS NOT NULL AND state = 1",
    ),
};
// A task whose lease has expired is due already, and keeps that time; its worker remains its owner until another one claims it.
// Only tasks in progress have an owner.
pub(crate) const RELEASE_LEASES: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE queue SET due_at = COALESCE(due_at, $1), owner = NULL, lease_until = NULL WHERE task_id IN (
            SELECT task_id FROM queue WHERE due_at IS NULL AND owner = $2
            UNION ALL SELECT task_id FROM queue WHERE due_at IS NOT NULL AND due_at <= $1 AND owner = $2)",
    ),
    tasks: Sql::both("UPDATE tasks SET due_at = $1, owner = NULL WHERE state < 2 AND owner = $2"),
};
pub(crate) const RELEASE_ALL_LEASES: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE queue SET due_at = $1, owner = NULL, lease_until = NULL WHERE due_at IS NULL",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET due_at = $1, owner = NULL WHERE state < 2 AND owner IS NOT NULL",
    ),
};
const RELEASE_STRANDED_TASKS: QueueSql = QueueSql {
    queue: Sql::both("UPDATE queue SET due_at = $1 WHERE owner IS NULL AND due_at > $2"),
    tasks: Sql::both(
        "UPDATE tasks SET due_at = $1 WHERE state < 2 AND owner IS NULL AND due_at > $2",
    ),
};
pub(crate) const DATABASE_NOW: Sql = Sql::per_database(
    "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
);
const ANY_UNFINISHED: QueueSql = QueueSql {
    queue: Sql::both("SELECT due_at FROM queue LIMIT 1"),
    tasks: Sql::both("SELECT due_at FROM tasks WHERE state < 2 LIMIT 1"),
};
pub(crate) const NEXT_DUE_AT: QueueSql = QueueSql {
    queue: Sql::both("SELECT MIN(due_at) FROM queue WHERE due_at IS NOT NULL"),
    tasks: Sql::both("SELECT MIN(due_at) FROM tasks WHERE state < 2"),
};
// Without a limit on the list, the complete backlog would be read.
pub(crate) const NEXT_DUE: Sql =
    Sql::both("SELECT due_at, shard FROM queue WHERE due_at IS NOT NULL ORDER BY due_at LIMIT 64");

/// The task queue.
impl Store {
    /// Renews leases (task id and fence) until `until`. Returns the ids of the tasks whose lease is lost.
    pub async fn renew_leases(
        &self,
        owner: &str,
        leases: Vec<(String, i64)>,
        until: Millis,
    ) -> Result<Vec<String>, StoreError> {
        let renew = RenewLeases {
            owner: owner.to_owned(),
            leases,
            until,
        };
        self.write(renew).await
    }

    /// Sets the progress of a leased task, 0 to 100 percent, which its provider reported at `now`. Does nothing if the lease is lost.
    pub async fn set_progress(
        &self,
        task_id: &str,
        fence: i64,
        percent: u8,
        now: Millis,
    ) -> Result<(), StoreError> {
        let progress = SetProgress {
            task_id: task_id.to_owned(),
            fence,
            percent: percent.min(100),
            now,
        };
        self.write(progress).await
    }

    /// Returns a leased task to the queue until `due_at`: no channel has capacity now, or its provider is still working on it. An open attempt stays
    /// open. Does nothing if the lease is lost.
    pub async fn postpone_task(
        &self,
        task_id: &str,
        fence: i64,
        due_at: Millis,
    ) -> Result<(), StoreError> {
        let postpone = PostponeTask {
            task_id: task_id.to_owned(),
            fence,
            due_at,
        };
        self.write(postpone).await
    }

    /// Releases the task leases of `owner` (drain) or, with `None`, of all owners, including webhooks (start of a single node, when no other can be
    /// working). Returns the number of tasks released.
    pub async fn release_leases(
        &self,
        owner: Option<&str>,
        now: Millis,
    ) -> Result<u64, StoreError> {
        let release = ReleaseLeases {
            owner: owner.map(str::to_owned),
            now,
        };
        self.write(release).await
    }

    /// Makes tasks due that wait for a time more than `max_pause` milliseconds away, and webhooks that wait for longer than a retry does, because the
    /// clock was set back since. Leases are left to their owners. Returns the number of tasks.
    pub async fn release_stranded(
        &self,
        max_pause: Millis,
        now: Millis,
    ) -> Result<u64, StoreError> {
        self.write(ReleaseStranded { max_pause, now }).await
    }

    /// The database's time: on PostgreSQL that of the server, which all nodes share.
    pub async fn database_now(&self) -> Result<Millis, StoreError> {
        let now = self.first(&DATABASE_NOW, &[], |row| row.int(0)).await?;
        now.ok_or_else(|| StoreError::Broken("the database returned no time".to_owned()))
    }

    /// Whether a task is unfinished: it waits, or a node works on it.
    ///
    /// # Errors
    /// The database's.
    pub async fn has_unfinished_tasks(&self) -> Result<bool, StoreError> {
        Ok(!self.query_queue(&ANY_UNFINISHED, &[]).await?.is_empty())
    }

    /// When this node can claim the next waiting task; `None` if none is waiting. The ends of leases are not included: claims search for leases that
    /// have expired. If very many tasks of other nodes' shards are due, a task of this node's shards may be due earlier.
    pub async fn next_task_due_at(&self) -> Result<Option<Millis>, StoreError> {
        let table = self.queue_table().await?;
        let own_shards = self.writer.queue_state.own_shards();
        if table == QueueTable::Tasks || own_shards == Shards::ALL {
            let rows = self.query_queue(&NEXT_DUE_AT, &[]).await?;
            return Ok(rows.first().map_or(Ok(None), |row| row.opt_int(0))?);
        }
        let mut first = None;
        for row in self.query(&NEXT_DUE, &[]).await? {
            let due_at = match own_shards.contains(row.int(1)?) {
                true => row.int(0)?,
                false => row.int(0)? + FOREIGN_DELAY,
            };
            first = Some(first.map_or(due_at, |first: Millis| first.min(due_at)));
        }
        Ok(first)
    }
}

struct RenewLeases {
    owner: String,
    leases: Vec<(String, i64)>,
    until: Millis,
}

#[async_trait(?Send)]
impl Write for RenewLeases {
    type Out = Vec<String>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<String>, DbError> {
        let lists = self.leases.iter().map(|(id, fence)| {
            args![self.until, id, *fence, &self.owner]
                .iter()
                .map(|arg: &Value<'_>| arg.clone().into_owned())
                .collect()
        });
        let renewed = batch
            .execute_each(batch.on_queue(&RENEW_LEASE), lists.collect())
            .await?;
        let lost = self
            .leases
            .iter()
            .zip(renewed)
            .filter(|(_, rows)| *rows == 0);
        Ok(lost.map(|((id, _), _)| id.clone()).collect())
    }
}

struct SetProgress {
    task_id: String,
    fence: i64,
    percent: u8,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for SetProgress {
    type Out = ();

    fn note_changed_tasks(&self, (): &(), versions: &TaskVersions) {
        versions.raise(&self.task_id);
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let args = args![i64::from(self.percent), self.now, &self.task_id, self.fence];
        batch.queue(batch.on_queue(&SET_PROGRESS), args)
    }
}

struct PostponeTask {
    task_id: String,
    fence: i64,
    due_at: Millis,
}

#[async_trait(?Send)]
impl Write for PostponeTask {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(
            batch.on_queue(&POSTPONE_TASK),
            args![self.due_at, &self.task_id, self.fence],
        )
    }
}

struct ReleaseLeases {
    owner: Option<String>,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for ReleaseLeases {
    type Out = u64;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        match &self.owner {
            Some(owner) => {
                batch
                    .execute(batch.on_queue(&RELEASE_LEASES), args![self.now, owner])
                    .await
            }
            None => {
                batch.queue(&RELEASE_ALL_WEBHOOKS, args![self.now])?;
                batch
                    .execute(batch.on_queue(&RELEASE_ALL_LEASES), args![self.now])
                    .await
            }
        }
    }
}

struct ReleaseStranded {
    max_pause: Millis,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for ReleaseStranded {
    type Out = u64;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        let latest = self.now.saturating_add(MAX_WEBHOOK_PAUSE);
        batch.queue(&RELEASE_STRANDED_WEBHOOKS, args![self.now, latest])?;
        let latest = self.now.saturating_add(self.max_pause);
        batch
            .execute(
                batch.on_queue(&RELEASE_STRANDED_TASKS),
                args![self.now, latest],
            )
            .await
    }
}

/// The state numbers are literals in the statements above.
const _: () = assert!(TaskState::InProgress as i64 == 1 && TaskState::Completed as i64 == 2);
