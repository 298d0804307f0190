//! Leases: a worker claims due tasks, keeps them, begins attempts, hands them back.
//!
//! A leased task is simply not due before its lease ends: `due_at` is both the queue's order and the lease's
//! end, so a worker that died needs no cleaning up after. The fence goes up with each claim; a writer with an
//! older one has lost the task.

use async_trait::async_trait;
use tollgate_core::{Millis, TaskState};

use super::read::{TASK_COLUMNS_COUNT, task};
use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::model::{AttemptEnd, AttemptStart, Leased, Retry};
use crate::writer::Write;

/// The claim itself; PostgreSQL skips rows that another node is claiming at this moment.
macro_rules! claim {
    ($lock:literal) => {
        concat!(
            "UPDATE tasks SET owner = $1, due_at = $2, fence = fence + 1, state = 1, started_at = COALESCE(started_at, CAST($3 AS BIGINT))
             WHERE id IN (SELECT id FROM tasks WHERE state < 2 AND due_at <= CAST($3 AS BIGINT) ORDER BY due_at LIMIT $4",
            $lock,
            ") RETURNING ",
            crate::ops::read::task_columns!(),
            ", job, fence, failed_attempts, request_id"
        )
    };
}

const CLAIM: Sql = Sql::each(claim!(""), claim!(" FOR UPDATE SKIP LOCKED"));
const KEEP: Sql = Sql::both(
    "UPDATE tasks SET due_at = $1 WHERE id = $2 AND fence = $3 AND owner = $4 AND state = 1",
);
const PROGRESS: Sql =
    Sql::both("UPDATE tasks SET progress = $1 WHERE id = $2 AND fence = $3 AND state = 1");
const POSTPONE: Sql =
    Sql::both("UPDATE tasks SET due_at = $1, owner = NULL WHERE id = $2 AND fence = $3 AND state = 1");
const HAND_BACK: Sql =
    Sql::both("UPDATE tasks SET due_at = $1, owner = NULL WHERE state < 2 AND owner = $2");
const HAND_BACK_ALL: Sql =
    Sql::both("UPDATE tasks SET due_at = $1, owner = NULL WHERE state < 2 AND owner IS NOT NULL");
const HELD: Sql = Sql::each(
    "SELECT id FROM tasks WHERE id = $1 AND fence = $2 AND state = 1",
    "SELECT id FROM tasks WHERE id = $1 AND fence = $2 AND state = 1 FOR UPDATE",
);
const LAST_ATTEMPT: Sql =
    Sql::both("SELECT COALESCE(MAX(number), 0) FROM attempts WHERE task_id = $1");
const BEGIN_ATTEMPT: Sql = Sql::both(
    "INSERT INTO attempts (task_id, number, channel, started_at) VALUES ($1, $2, $3, $4)",
);
const END_ATTEMPT: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2, error = $3 WHERE task_id = $4 AND number = $5 AND ended_at IS NULL",
);
const TRY_AGAIN: Sql = Sql::both(
    "UPDATE tasks SET due_at = $1, owner = NULL, failed_attempts = failed_attempts + 1
     WHERE id = $2 AND fence = $3 AND state = 1",
);

/// Leases up to `limit` due tasks to `owner` until `until`.
pub(crate) struct Claim {
    pub(crate) owner: String,
    pub(crate) limit: i64,
    pub(crate) until: Millis,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for Claim {
    type Out = Vec<Leased>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<Leased>, DbError> {
        let rows = batch
            .query(&CLAIM, args![&self.owner, self.until, self.now, self.limit])
            .await?;
        rows.into_iter()
            .map(|mut row| {
                Ok(Leased {
                    job: row.text(TASK_COLUMNS_COUNT)?,
                    fence: row.int(TASK_COLUMNS_COUNT + 1)?,
                    failed_attempts: row.int(TASK_COLUMNS_COUNT + 2)?,
                    request_id: row.text(TASK_COLUMNS_COUNT + 3)?,
                    task: task(&mut row)?,
                })
            })
            .collect()
    }
}

/// Keeps leases until `until`; answers the ids that are not this owner's any more.
pub(crate) struct Keep {
    pub(crate) owner: String,
    pub(crate) leases: Vec<(String, i64)>,
    pub(crate) until: Millis,
}

#[async_trait(?Send)]
impl Write for Keep {
    type Out = Vec<String>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<String>, DbError> {
        let mut lost = Vec::new();
        for (id, fence) in &self.leases {
            let kept = batch
                .execute(&KEEP, args![self.until, id, *fence, &self.owner])
                .await?;
            if kept == 0 {
                lost.push(id.clone());
            }
        }
        Ok(lost)
    }
}

/// Says how far a task is.
pub(crate) struct Progress {
    pub(crate) task_id: String,
    pub(crate) fence: i64,
    pub(crate) percent: u8,
}

#[async_trait(?Send)]
impl Write for Progress {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.run(
            &PROGRESS,
            args![i64::from(self.percent), &self.task_id, self.fence],
        )
    }
}

/// Puts a leased task back until `due_at`, because nobody can take it now; no attempt was made.
pub(crate) struct Postpone {
    pub(crate) task_id: String,
    pub(crate) fence: i64,
    pub(crate) due_at: Millis,
}

#[async_trait(?Send)]
impl Write for Postpone {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.run(&POSTPONE, args![self.due_at, &self.task_id, self.fence])
    }
}

/// Gives tasks back to the queue: one owner's (drain), or everybody's (a single node's start, when nobody
/// else can be at work).
pub(crate) struct HandBack {
    pub(crate) owner: Option<String>,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for HandBack {
    type Out = u64;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<u64, DbError> {
        match &self.owner {
            Some(owner) => batch.execute(&HAND_BACK, args![self.now, owner]).await,
            None => batch.execute(&HAND_BACK_ALL, args![self.now]).await,
        }
    }
}

/// Writes an attempt down before its provider is called; answers its number, or none when the lease is lost.
pub(crate) struct BeginAttempt(pub(crate) AttemptStart);

#[async_trait(?Send)]
impl Write for BeginAttempt {
    type Out = Option<i64>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Option<i64>, DbError> {
        let AttemptStart {
            task_id,
            fence,
            channel,
            now,
        } = &self.0;
        if batch.first(&HELD, args![task_id, *fence]).await?.is_none() {
            return Ok(None);
        }
        let last = batch.first(&LAST_ATTEMPT, args![task_id]).await?;
        let number = last.map_or(Ok(0), |row| row.int(0))? + 1;
        batch.run(&BEGIN_ATTEMPT, args![task_id, number, channel, *now])?;
        Ok(Some(number))
    }
}

/// Ends a failed attempt and puts the task back; answers false when the lease is lost.
pub(crate) struct TryAgain(pub(crate) Retry);

#[async_trait(?Send)]
impl Write for TryAgain {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let Retry {
            task_id,
            fence,
            attempt,
            due_at,
            now,
        } = &self.0;
        if batch
            .execute(&TRY_AGAIN, args![*due_at, task_id, *fence])
            .await?
            == 0
        {
            return Ok(false);
        }
        end_attempt(batch, task_id, attempt, *now)?;
        Ok(true)
    }
}

/// Writes down how an attempt ended.
pub(crate) fn end_attempt(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    attempt: &AttemptEnd,
    now: Millis,
) -> Result<(), DbError> {
    batch.run(
        &END_ATTEMPT,
        args![
            now,
            attempt.outcome,
            attempt.error.as_ref(),
            task_id,
            attempt.number
        ],
    )
}

/// The state that a claim writes, as the statement above has it.
const _: () = assert!(TaskState::InProgress as i64 == 1 && TaskState::Completed as i64 == 2);
