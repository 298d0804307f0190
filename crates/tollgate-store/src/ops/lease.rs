//! Leases: a worker claims due tasks, keeps them, puts them or hands them back.
//!
//! A leased task is simply not due before its lease ends: `due_at` is both the queue's order and the lease's
//! end, so a worker that died needs no cleaning up after. The fence goes up with each claim; a writer with an
//! older one has lost the task. So has one whose task was put back: it has no owner until the next claim.

use async_trait::async_trait;
use tollgate_core::{Millis, TaskState};

use super::attempt;
use super::callback::HAND_BACK_CALLBACKS;
use super::read::{TASK_COLUMNS_COUNT, task};
use crate::batch::Batch;
use crate::changes::Changes;
use crate::db::{DbError, Row, Sql, Value, args};
use crate::model::Leased;
use crate::writer::Write;

/// What is due, the longest due first; PostgreSQL skips rows that another node is claiming at this moment.
macro_rules! due {
    ($lock:literal) => {
        concat!(
            "SELECT ",
            crate::ops::read::task_columns!(),
            ", job, fence, failed_attempts, request_id, queued_attempt FROM tasks
             WHERE state < 2 AND due_at <= $1 ORDER BY due_at LIMIT $2",
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
        let mut claimed = Vec::with_capacity(due.len());
        let mut queued = Vec::new();
        for row in due {
            let is_queued = row.opt_int(TASK_COLUMNS_COUNT + 4)?.is_some();
            let leased = self.lease(batch, row)?;
            queued.extend(is_queued.then(|| leased.task.id.clone()));
            claimed.push(leased);
        }
        // Most tasks have nothing in a queue, and cost no look.
        if !queued.is_empty() {
            let mut open = attempt::open_of(batch, &queued).await?;
            for leased in &mut claimed {
                leased.open = open.remove(&leased.task.id);
            }
        }
        Ok(claimed)
    }
}

impl Claim {
    fn lease(&self, batch: &mut Batch<'_, '_>, mut row: Row) -> Result<Leased, DbError> {
        let mut leased = Leased {
            job: row.text(TASK_COLUMNS_COUNT)?,
            fence: row.int(TASK_COLUMNS_COUNT + 1)? + 1,
            failed_attempts: row.int(TASK_COLUMNS_COUNT + 2)?,
            request_id: row.text(TASK_COLUMNS_COUNT + 3)?,
            open: None,
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

/// Puts a leased task back until `due_at`: nobody can take it now, or its provider is still at work on it. Its attempts stay
/// as they are.
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
/// else can be at work), callbacks included.
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
            None => {
                batch.run(&HAND_BACK_CALLBACKS, args![self.now])?;
                batch.execute(&HAND_BACK_ALL, args![self.now]).await
            }
        }
    }
}

/// The state that a claim writes, as the statement above has it.
const _: () = assert!(TaskState::InProgress as i64 == 1 && TaskState::Completed as i64 == 2);
