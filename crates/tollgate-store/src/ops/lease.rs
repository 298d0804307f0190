//! Leases: a worker claims due tasks, keeps them, begins attempts, hands them back.
//!
//! A leased task is simply not due before its lease ends: `due_at` is both the queue's order and the lease's
//! end, so a worker that died needs no cleaning up after. The fence goes up with each claim; a writer with an
//! older one has lost the task. So has one whose task was put back: it has no owner until the next claim.

use async_trait::async_trait;
use tollgate_core::{Millis, TaskState};

use super::read::{TASK_COLUMNS_COUNT, task};
use crate::batch::Batch;
use crate::changes::Changes;
use crate::db::{DbError, Row, Sql, Value, args};
use crate::model::{AttemptEnd, AttemptStart, Leased, Retry};
use crate::writer::Write;

/// What is due, the longest due first; PostgreSQL skips rows that another node is claiming at this moment.
macro_rules! due {
    ($lock:literal) => {
        concat!(
            "SELECT ",
            crate::ops::read::task_columns!(),
            ", job, fence, failed_attempts, request_id FROM tasks WHERE state < 2 AND due_at <= $1 ORDER BY due_at LIMIT $2",
            $lock
        )
    };
}

pub(super) const DUE: Sql = Sql::each(due!(""), due!(" FOR UPDATE SKIP LOCKED"));
pub(super) const LEASE: Sql = Sql::both(
    "UPDATE tasks SET owner = $1, due_at = $2, fence = $3, state = 1, started_at = $4 WHERE id = $5 AND state < 2",
);
pub(super) const KEEP: Sql = Sql::both(
    "UPDATE tasks SET due_at = $1 WHERE id = $2 AND fence = $3 AND owner = $4 AND state = 1",
);
pub(super) const PROGRESS: Sql = Sql::both(
    "UPDATE tasks SET progress = $1 WHERE id = $2 AND fence = $3 AND owner IS NOT NULL AND state = 1",
);
pub(super) const POSTPONE: Sql = Sql::both(
    "UPDATE tasks SET due_at = $1, owner = NULL WHERE id = $2 AND fence = $3 AND owner IS NOT NULL AND state = 1",
);
// Only tasks in work have an owner.
pub(super) const HAND_BACK: Sql =
    Sql::both("UPDATE tasks SET due_at = $1, owner = NULL WHERE state < 2 AND owner = $2");
pub(super) const HAND_BACK_ALL: Sql =
    Sql::both("UPDATE tasks SET due_at = $1, owner = NULL WHERE state < 2 AND owner IS NOT NULL");
pub(super) const HELD: Sql = Sql::each(
    "SELECT id FROM tasks WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND state = 1",
    "SELECT id FROM tasks WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND state = 1 FOR UPDATE",
);
pub(super) const LAST_ATTEMPT: Sql = Sql::both(
    "SELECT number, channel, started_at, ended_at FROM attempts WHERE task_id = $1 ORDER BY number DESC LIMIT 1",
);
const BEGIN_ATTEMPT: Sql = Sql::both(
    "INSERT INTO attempts (task_id, number, channel, started_at) VALUES ($1, $2, $3, $4)",
);
pub(super) const END_ATTEMPT: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2, error = $3 WHERE task_id = $4 AND number = $5 AND ended_at IS NULL",
);
pub(super) const END_OPEN_ATTEMPTS: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2 WHERE task_id = $3 AND ended_at IS NULL",
);
pub(super) const ENDED_ATTEMPT: Sql = Sql::both(
    "SELECT number FROM attempts WHERE task_id = $1 AND number = $2 AND ended_at = $3 AND outcome = $4",
);
pub(super) const TRY_AGAIN: Sql = Sql::both(
    "UPDATE tasks SET due_at = $1, owner = NULL, failed_attempts = failed_attempts + 1
     WHERE id = $2 AND fence = $3 AND owner IS NOT NULL AND state = 1",
);

/// Leases up to `limit` due tasks to `owner` until `until`. A claim that was committed without our hearing of
/// it has nobody at work on its tasks; they are due again when its leases end.
pub(crate) struct Claim {
    pub(crate) owner: String,
    pub(crate) limit: i64,
    pub(crate) until: Millis,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for Claim {
    type Out = Vec<Leased>;

    fn changed(&self, claimed: &Vec<Leased>, changes: &Changes) {
        claimed
            .iter()
            .for_each(|leased| changes.note(&leased.task.id));
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<Leased>, DbError> {
        let due = batch.query(&DUE, args![self.now, self.limit]).await?;
        due.into_iter()
            .map(|row| self.lease(batch, row))
            .collect::<Result<_, _>>()
    }
}

impl Claim {
    fn lease(&self, batch: &mut Batch<'_, '_>, mut row: Row) -> Result<Leased, DbError> {
        let mut leased = Leased {
            job: row.text(TASK_COLUMNS_COUNT)?,
            fence: row.int(TASK_COLUMNS_COUNT + 1)? + 1,
            failed_attempts: row.int(TASK_COLUMNS_COUNT + 2)?,
            request_id: row.text(TASK_COLUMNS_COUNT + 3)?,
            task: task(&mut row)?,
        };
        let started_at = leased.task.started_at.unwrap_or(self.now);
        leased.task.state = TaskState::InProgress;
        leased.task.started_at = Some(started_at);
        let args = args![
            &self.owner,
            self.until,
            leased.fence,
            started_at,
            &leased.task.id
        ];
        batch.run_one(&LEASE, args)?;
        Ok(leased)
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
        let lists = self.leases.iter().map(|(id, fence)| {
            args![self.until, id, *fence, &self.owner]
                .iter()
                .map(|arg: &Value<'_>| arg.clone().into_owned())
                .collect()
        });
        let kept = batch.execute_each(&KEEP, lists.collect()).await?;
        let lost = self.leases.iter().zip(kept).filter(|(_, kept)| *kept == 0);
        Ok(lost.map(|((id, _), _)| id.clone()).collect())
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

    fn changed(&self, (): &(), changes: &Changes) {
        changes.note(&self.task_id);
    }

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
        let mut number = 1;
        if let Some(mut last) = batch.first(&LAST_ATTEMPT, args![task_id]).await? {
            let is_open = last.opt_int(3)?.is_none();
            // An open attempt of this channel and moment is this very write, tried before.
            if batch.again && is_open && last.text(1)? == *channel && last.int(2)? == *now {
                return Ok(Some(last.int(0)?));
            }
            if is_open {
                end_open_attempts(batch, task_id, "interrupted", *now)?;
            }
            number += last.int(0)?;
        }
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
        let put_back = args![*due_at, task_id, *fence];
        if batch.execute(&TRY_AGAIN, put_back).await? == 1 {
            end_attempt(batch, task_id, attempt, *now)?;
            return Ok(true);
        }
        // Its attempt having ended so at this moment, it was this very write, tried before.
        let ended = args![task_id, attempt.number, *now, attempt.outcome];
        Ok(batch.again && batch.first(&ENDED_ATTEMPT, ended).await?.is_some())
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

/// Writes down the end of attempts that nobody else will: their worker lost its lease or the task ended.
pub(crate) fn end_open_attempts(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    outcome: &'static str,
    now: Millis,
) -> Result<(), DbError> {
    batch.run(&END_OPEN_ATTEMPTS, args![now, outcome, task_id])
}

/// The state that a claim writes, as the statement above has it.
const _: () = assert!(TaskState::InProgress as i64 == 1 && TaskState::Completed as i64 == 2);
