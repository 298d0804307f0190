//! Attempts (table `attempts`): an attempt at a task on one channel, started before the provider is called.
//!
//! An attempt at a provider that does the work within the call ends with its lease: the next worker starts another. An attempt in a provider's queue
//! may complete there even if its worker is lost, so it stays open until a worker records how it ended; `queue.queued_attempt` has its number.

use std::collections::HashMap;

use async_trait::async_trait;
use tollgate_core::Millis;

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::tasks::queue_table::QueueSql;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// The columns that [`read_attempt`] reads, in its order.
macro_rules! attempt_columns {
    () => {
        "number, channel, external_id, key_print, ticket, ticket_at, started_at, adjustments"
    };
}

/// The number of columns in `attempt_columns`.
const ATTEMPT_COLUMNS_COUNT: usize = 8;

pub(crate) const LOCK_LEASED_TASK: QueueSql = QueueSql {
    queue: Sql::per_database(
        "SELECT queued_attempt FROM queue WHERE task_id = $1 AND fence = $2 AND owner IS NOT NULL",
        "SELECT queued_attempt FROM queue WHERE task_id = $1 AND fence = $2 AND owner IS NOT NULL FOR UPDATE",
    ),
    tasks: Sql::both(
        "SELECT queued_attempt FROM tasks WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND state = 1 FOR UPDATE",
    ),
};
pub(crate) const LAST_ATTEMPT: Sql = Sql::both(concat!(
    "SELECT ",
    attempt_columns!(),
    ", queued, fence, ended_at FROM attempts WHERE task_id = $1 ORDER BY number DESC LIMIT 1"
));
pub(crate) const LAST_QUEUED_ATTEMPT: Sql = Sql::both(concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM attempts WHERE task_id = $1 AND queued = 1 ORDER BY number DESC LIMIT 1"
));
// The parameter is a JSON array of task ids.
pub(crate) const OPEN_QUEUED_ATTEMPTS: Sql = Sql::per_database(
    concat!(
        "SELECT ",
        attempt_columns!(),
        ", task_id FROM attempts WHERE task_id IN (SELECT value FROM json_each($1)) AND queued = 1 AND ended_at IS NULL"
    ),
    concat!(
        "SELECT ",
        attempt_columns!(),
        ", task_id FROM attempts
         WHERE task_id = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST($1 AS TEXT) AS json))))
           AND queued = 1 AND ended_at IS NULL"
    ),
);
const INSERT_ATTEMPT: Sql = Sql::both(
    "INSERT INTO attempts (task_id, number, channel, fence, queued, external_id, key_print, started_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);
pub(crate) const SET_QUEUED_ATTEMPT: QueueSql = QueueSql {
    queue: Sql::both("UPDATE queue SET queued_attempt = $1 WHERE task_id = $2"),
    tasks: Sql::both("UPDATE tasks SET queued_attempt = $1 WHERE id = $2 AND state = 1"),
};
pub(crate) const SET_PROVIDER_JOB: Sql = Sql::both(
    "UPDATE attempts SET ticket = $1, ticket_at = COALESCE(ticket_at, CAST($2 AS BIGINT)),
                         adjustments = COALESCE($3, adjustments)
     WHERE task_id = $4 AND number = $5 AND queued = 1 AND ended_at IS NULL",
);
pub(crate) const END_ATTEMPT: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2, error = $3 WHERE task_id = $4 AND number = $5 AND ended_at IS NULL",
);
pub(crate) const END_OPEN_ATTEMPTS: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2 WHERE task_id = $3 AND ended_at IS NULL",
);
pub(crate) const ENDED_ATTEMPT: Sql = Sql::both(
    "SELECT number FROM attempts WHERE task_id = $1 AND number = $2 AND ended_at = $3 AND outcome = $4",
);
pub(crate) const RETRY_TASK: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE queue SET due_at = $1, owner = NULL, lease_until = NULL, failed_attempts = failed_attempts + 1,
                          queued_attempt = NULLIF(queued_attempt, CAST($2 AS BIGINT))
         WHERE task_id = $3 AND fence = $4 AND owner IS NOT NULL",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET due_at = $1, owner = NULL, failed_attempts = failed_attempts + 1,
                          queued_attempt = NULLIF(queued_attempt, CAST($2 AS BIGINT))
         WHERE id = $3 AND fence = $4 AND owner IS NOT NULL AND state = 1",
    ),
};
pub(crate) const FAILED_CHANNELS: Sql = Sql::both(
    "SELECT channel FROM attempts WHERE task_id = $1 AND outcome = 'failed' ORDER BY number",
);

/// An attempt to start.
#[derive(Debug, Clone)]
pub struct NewAttempt {
    /// The task.
    pub task_id: String,
    /// The fencing token of the lease.
    pub fence: i64,
    /// The channel to call.
    pub channel: String,
    /// The gateway's own id for the job, if the provider accepts one.
    pub external_id: Option<String>,
    /// Whether the provider puts the job into its queue. Only the provider knows how such an attempt ends, so it stays open when its lease is lost.
    pub queued: bool,
    /// Fingerprint of the provider's key that is used; never the key.
    pub key_fingerprint: Option<String>,
    /// The outcome (`unknown`, `lost`, …) with which an earlier attempt that is still open in a provider's queue is ended. If it is `None`, the
    /// earlier attempt stays open and the new one is not started.
    pub abandon_queued_as: Option<&'static str>,
    /// The time of the write, in Unix milliseconds.
    pub now: Millis,
}

/// The outcome of [`Store::start_attempt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartOutcome {
    /// Started, with this number among the task's attempts, from 1.
    Started(i64),
    /// Not started: a provider has, or may have, an earlier attempt in its queue.
    EarlierStillQueued,
    /// Not started: the lease is lost.
    LeaseLost,
}

/// An attempt that a provider has, or may have, in its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedAttempt {
    /// Its number among the task's attempts, from 1.
    pub number: i64,
    /// Its channel.
    pub channel: String,
    /// The gateway's own id for the job, if the provider accepts one.
    pub external_id: Option<String>,
    /// Fingerprint of the provider's key that was used.
    pub key_fingerprint: Option<String>,
    /// The provider job id; `None` while it is unknown whether the provider has accepted the job.
    pub provider_job_id: Option<String>,
    /// When the first provider job id was recorded.
    pub accepted_at: Option<Millis>,
    /// Differences between what was requested from the provider and the job: [`ProviderJob::adjustments`].
    pub adjustments: Option<String>,
    /// When it started.
    pub started_at: Millis,
}

/// A job that a provider has accepted into its queue.
#[derive(Debug, Clone)]
pub struct ProviderJob {
    /// The task.
    pub task_id: String,
    /// The fencing token of the lease.
    pub fence: i64,
    /// The attempt's number.
    pub number: i64,
    /// The provider job id: opaque, 1 to [`ProviderJob::ID_MAX_BYTES`] bytes.
    pub provider_job_id: String,
    /// Differences between what was requested from the provider and the job: adjustments as a JSON array; `None` if there are none.
    pub adjustments: Option<String>,
    /// The time of the write, in Unix milliseconds.
    pub now: Millis,
}

impl ProviderJob {
    /// Maximum length of a provider job id, in bytes.
    pub const ID_MAX_BYTES: usize = 8192;
}

/// The end of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptEnd {
    /// Its number, from [`Store::start_attempt`].
    pub number: i64,
    /// `done`, `failed`, `rejected`, `interrupted`, `timeout`, …
    pub outcome: &'static str,
    /// The provider's error message.
    pub error: Option<String>,
}

/// A failed attempt after which the task is retried.
#[derive(Debug, Clone)]
pub struct TaskRetry {
    /// The task.
    pub task_id: String,
    /// The fencing token of the lease.
    pub fence: i64,
    /// The attempt.
    pub attempt: AttemptEnd,
    /// When the task is retried.
    pub due_at: Millis,
    /// The time of the write, in Unix milliseconds.
    pub now: Millis,
}

/// Attempts.
impl Store {
    /// Records an attempt before its provider is called. Idempotent: a call with the same arguments returns the same number.
    pub async fn start_attempt(&self, attempt: NewAttempt) -> Result<StartOutcome, StoreError> {
        self.write(attempt).await
    }

    /// Records that the provider has accepted an attempt into its queue, and its job id; a later id replaces an earlier one. Returns false if the
    /// lease is lost or the attempt has ended: then the job is known only to the caller.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if the provider job id is empty or longer than [`ProviderJob::ID_MAX_BYTES`].
    pub async fn record_provider_job(&self, job: ProviderJob) -> Result<bool, StoreError> {
        let size = job.provider_job_id.len();
        if size == 0 || size > ProviderJob::ID_MAX_BYTES {
            return Err(StoreError::Invalid(format!(
                "provider_job_id of task {} has {size} bytes; it must have 1 to {}",
                job.task_id,
                ProviderJob::ID_MAX_BYTES
            )));
        }
        self.write(job).await
    }

    /// The last attempt at a task that a provider has, or may have, accepted into its queue, open or ended: the job to cancel there when the task has
    /// ended here. `None` if there was no such attempt.
    pub async fn last_queued_attempt(
        &self,
        task_id: &str,
    ) -> Result<Option<QueuedAttempt>, StoreError> {
        self.first(&LAST_QUEUED_ATTEMPT, args![task_id], read_attempt)
            .await
    }

    /// The channels whose attempts at a task failed, in the order of the attempts.
    pub async fn failed_channels(&self, task_id: &str) -> Result<Vec<String>, StoreError> {
        let mut rows = self.query(&FAILED_CHANNELS, args![task_id]).await?;
        let channels = rows.iter_mut().map(|row| row.text(0));
        Ok(channels.collect::<Result<_, _>>()?)
    }

    /// Ends a failed attempt and returns the task to the queue. Returns false if the lease is lost.
    pub async fn retry_task(&self, retry: TaskRetry) -> Result<bool, StoreError> {
        self.write(retry).await
    }
}

#[async_trait(?Send)]
impl Write for NewAttempt {
    type Out = StartOutcome;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<StartOutcome, DbError> {
        let lease = args![&self.task_id, self.fence];
        let Some(task) = batch
            .first(batch.on_queue(&LOCK_LEASED_TASK), lease)
            .await?
        else {
            return Ok(StartOutcome::LeaseLost);
        };
        let mut number = 1;
        if let Some(mut row) = batch.first(&LAST_ATTEMPT, args![&self.task_id]).await? {
            let last = LastAttempt::read(&mut row)?;
            number += last.attempt.number;
            if last.is_open {
                if last.is_same(self) {
                    return Ok(StartOutcome::Started(last.attempt.number));
                }
                let outcome = match self.abandon_queued_as {
                    None if last.queued => return Ok(StartOutcome::EarlierStillQueued),
                    Some(outcome) if last.queued => outcome,
                    _ => "interrupted",
                };
                end_open_attempts(batch, &self.task_id, outcome, self.now)?;
            }
        }
        let args = args![
            &self.task_id,
            number,
            &self.channel,
            self.fence,
            self.queued,
            self.external_id.as_ref(),
            self.key_fingerprint.as_ref(),
            self.now
        ];
        batch.queue(&INSERT_ATTEMPT, args)?;
        let queued_attempt = self.queued.then_some(number);
        if task.opt_int(0)? != queued_attempt {
            batch.queue_one(
                batch.on_queue(&SET_QUEUED_ATTEMPT),
                args![queued_attempt, &self.task_id],
            )?;
        }
        Ok(StartOutcome::Started(number))
    }
}

/// A task's last attempt.
struct LastAttempt {
    attempt: QueuedAttempt,
    queued: bool,
    fence: i64,
    is_open: bool,
}

impl LastAttempt {
    /// Reads a row of [`LAST_ATTEMPT`].
    fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            attempt: read_attempt(row)?,
            queued: row.int(ATTEMPT_COLUMNS_COUNT)? != 0,
            fence: row.int(ATTEMPT_COLUMNS_COUNT + 1)?,
            is_open: row.opt_int(ATTEMPT_COLUMNS_COUNT + 2)?.is_none(),
        })
    }

    /// Whether an earlier try of this write has created the attempt. Under one lease no worker starts a second attempt beside the first.
    fn is_same(&self, new: &NewAttempt) -> bool {
        let Self { attempt, fence, .. } = self;
        *fence == new.fence
            && attempt.started_at == new.now
            && attempt.channel == new.channel
            && attempt.external_id == new.external_id
    }
}

#[async_trait(?Send)]
impl Write for ProviderJob {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let lease = args![&self.task_id, self.fence];
        if batch
            .first(batch.on_queue(&LOCK_LEASED_TASK), lease)
            .await?
            .is_none()
        {
            return Ok(false);
        }
        let args = args![
            &self.provider_job_id,
            self.now,
            self.adjustments.as_ref(),
            &self.task_id,
            self.number
        ];
        Ok(batch.execute(&SET_PROVIDER_JOB, args).await? == 1)
    }
}

#[async_trait(?Send)]
impl Write for TaskRetry {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let Self {
            task_id, attempt, ..
        } = self;
        let args = args![self.due_at, attempt.number, task_id, self.fence];
        if batch.execute(batch.on_queue(&RETRY_TASK), args).await? == 1 {
            end_attempt(batch, task_id, attempt, self.now)?;
            return Ok(true);
        }
        // If the attempt ended with this outcome at this time, an earlier try of this write has ended it.
        let ended = args![task_id, attempt.number, self.now, attempt.outcome];
        Ok(batch.commit_in_doubt && batch.first(&ENDED_ATTEMPT, ended).await?.is_some())
    }
}

/// Records the end of an attempt.
pub(crate) fn end_attempt(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    attempt: &AttemptEnd,
    now: Millis,
) -> Result<(), DbError> {
    let args = args![
        now,
        attempt.outcome,
        attempt.error.as_ref(),
        task_id,
        attempt.number
    ];
    batch.queue(&END_ATTEMPT, args)
}

/// Ends the open attempts of a task whose worker lost its lease, or that has ended.
pub(crate) fn end_open_attempts(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    outcome: &'static str,
    now: Millis,
) -> Result<(), DbError> {
    batch.queue(&END_OPEN_ATTEMPTS, args![now, outcome, task_id])
}

/// The open attempts of these tasks in providers' queues, by task id.
pub(crate) async fn read_open_queued_attempts(
    batch: &mut Batch<'_, '_>,
    task_ids: &[String],
) -> Result<HashMap<String, QueuedAttempt>, DbError> {
    let list = serde_json::json!(task_ids).to_string();
    let mut found = HashMap::with_capacity(task_ids.len());
    for mut row in batch.query(&OPEN_QUEUED_ATTEMPTS, args![&list]).await? {
        found.insert(row.text(ATTEMPT_COLUMNS_COUNT)?, read_attempt(&mut row)?);
    }
    Ok(found)
}

/// Reads an attempt from the columns `attempt_columns`.
fn read_attempt(row: &mut Row) -> Result<QueuedAttempt, DbError> {
    Ok(QueuedAttempt {
        number: row.int(0)?,
        channel: row.text(1)?,
        external_id: row.opt_text(2)?,
        key_fingerprint: row.opt_text(3)?,
        provider_job_id: row.opt_text(4)?,
        accepted_at: row.opt_int(5)?,
        started_at: row.int(6)?,
        adjustments: row.opt_text(7)?,
    })
}
