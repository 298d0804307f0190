//! The end of a task: state, result, settlement and webhook are written in one transaction, once. A task is finished by its worker, cancelled by its
//! user or an operator, or failed because its deadline has passed.

use async_trait::async_trait;
use tollgate_core::{Amount, Millis, TaskKind, TaskState};

use super::queue_table::{QueueSql, QueueTable};
use super::record::{Task, read_task, task_columns};
use crate::attempts::{AttemptEnd, end_attempt, end_open_attempts};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::ledger::account::Account;
use crate::ledger::charges::{Delivered, EndedTask, close_charge};
use crate::store::Store;
use crate::task_versions::TaskVersions;
use crate::webhooks::insert_webhook;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

/// The columns that [`LockedTask::read`] reads, in its order: columns of `t`, a row of `tasks`, and of the row with the state of the unfinished task.
macro_rules! locked_task {
    ($state:literal, $from:literal) => {
        concat!(
            "SELECT t.state, ",
            $state,
            ", t.user_id, t.ended_at, t.cost, t.key_id, t.callback_url, t.kind, t.shown,
                (SELECT channel FROM attempts WHERE task_id = t.id ORDER BY number DESC LIMIT 1)
             FROM ",
            $from
        )
    };
}
macro_rules! locked_in_queue {
    ($lock:literal) => {
        concat!(
            locked_task!(
                "q.fence, q.owner, q.started_at, q.progress, q.polled_at",
                "queue q JOIN tasks t ON t.id = q.task_id WHERE q.task_id = $1"
            ),
            $lock
        )
    };
}
// Every write that ends a task or works on it locks its row of the queue first, so the row of `tasks` needs no lock.
pub(crate) const LOCK_TASK: QueueSql = QueueSql {
    queue: Sql::per_database(locked_in_queue!(""), locked_in_queue!(" FOR UPDATE OF q")),
    tasks: Sql::both(locked_task!(
        "t.fence, t.owner, t.started_at, t.progress, t.polled_at",
        "tasks t WHERE t.id = $1 FOR UPDATE"
    )),
};
/// A task that has ended, which has no row in the queue.
pub(crate) const ENDED_TASK: Sql = Sql::both(locked_task!(
    "t.fence, NULL, t.started_at, t.progress, t.polled_at",
    "tasks t WHERE t.id = $1"
));
pub(crate) const END_TASK: QueueSql = QueueSql {
    queue: Sql::both(
        "UPDATE tasks SET state = $1, fence = $2, started_at = $3, progress = $4, polled_at = $5, ended_at = $6,
                          queued_attempt = NULL, result = $7, error_code = $8, error_message = $9, cost = $10
         WHERE id = $11 AND state < 2",
    ),
    tasks: Sql::both(
        "UPDATE tasks SET state = $1, fence = $2, started_at = $3, progress = $4, polled_at = $5, ended_at = $6, owner = NULL,
                          queued_attempt = NULL, result = $7, error_code = $8, error_message = $9, cost = $10
         WHERE id = $11 AND state < 2",
    ),
};
pub(crate) const DEQUEUE_TASK: Sql = Sql::both("DELETE FROM queue WHERE task_id = $1");

pub(crate) const OVERDUE_TASKS: QueueSql = QueueSql {
    queue: Sql::both(concat!(
        "SELECT ",
        task_columns!(),
        " FROM queue q JOIN tasks t ON t.id = q.task_id WHERE q.deadline_at <= $1 ORDER BY q.deadline_at LIMIT 100"
    )),
    tasks: Sql::both(concat!(
        "SELECT ",
        task_columns!(),
        " FROM tasks t LEFT JOIN queue q ON q.task_id = t.id
         WHERE t.state < 2 AND t.deadline_at <= $1 ORDER BY t.deadline_at LIMIT 100"
    )),
};

/// The end of a task, written by the worker that holds its lease.
#[derive(Debug, Clone)]
pub struct TaskFinish {
    /// The task.
    pub task_id: String,
    /// The user who pays.
    pub user_id: String,
    /// The key it was submitted with.
    pub key_id: String,
    /// The fencing token of the lease.
    pub fence: i64,
    /// How it ended.
    pub end: TaskEnd,
    /// The attempt that ends with the task.
    pub attempt: Option<AttemptEnd>,
    /// The time of the write, in Unix milliseconds.
    pub now: Millis,
}

/// How a task ended.
#[derive(Debug, Clone)]
pub enum TaskEnd {
    /// It delivered results.
    Completed {
        /// How much to settle; not 0 units.
        delivered: Delivered,
        /// The result, as a JSON object whose `files` has an entry for each file.
        result: String,
    },
    /// It delivered nothing and is free.
    Failed {
        /// `provider_error`, `timeout`, …
        code: String,
        /// One sentence for the client.
        message: String,
    },
}

/// The outcome of [`Store::finish_task`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishOutcome {
    /// Written.
    Finished {
        /// What was charged.
        cost: Amount,
    },
    /// The task had already ended, or does not exist.
    AlreadyFinal,
    /// Another worker holds the lease, or none does.
    LeaseLost,
}

/// The outcome of [`Store::cancel_task`] and [`Store::time_out_task`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// The task was ended and its hold released. A provider may still work on it: see [`Store::last_queued_attempt`].
    Cancelled,
    /// The task had already ended.
    AlreadyFinal,
    /// The user has no such task.
    NotFound,
}

/// Ends of tasks.
impl Store {
    /// Ends a task under its lease: state, result, settlement and release in one transaction.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if it is completed with 0 units delivered.
    pub async fn finish_task(&self, finish: TaskFinish) -> Result<FinishOutcome, StoreError> {
        let nothing = Delivered::Units(0);
        if matches!(finish.end, TaskEnd::Completed { delivered, .. } if delivered == nothing) {
            return Err(StoreError::Invalid(format!(
                "task {} cannot be completed with 0 units delivered",
                finish.task_id
            )));
        }
        self.write(finish).await
    }

    /// Cancels an unfinished task of the user and releases its hold, whichever worker has the lease.
    pub async fn cancel_task(&self, task: &Task, now: Millis) -> Result<CancelOutcome, StoreError> {
        self.write(EndByForce::cancel(task, "cancelled by its user", now))
            .await
    }

    /// Up to 100 unfinished tasks whose deadline was at `until` or before, the earliest first.
    pub async fn overdue_tasks(&self, until: Millis) -> Result<Vec<Task>, StoreError> {
        let mut rows = self.query_queue(&OVERDUE_TASKS, args![until]).await?;
        let tasks = rows.iter_mut().map(read_task);
        Ok(tasks.collect::<Result<_, _>>()?)
    }

    /// Fails an unfinished task whose deadline has passed and releases its hold, whichever worker has the lease.
    pub async fn time_out_task(
        &self,
        task: &Task,
        message: &str,
        now: Millis,
    ) -> Result<CancelOutcome, StoreError> {
        let end = ForcedEnd::TimedOut(message.to_owned());
        self.write(EndByForce::new(task, end, now)).await
    }
}

/// The members of an ended task's record that describe its end.
struct RecordedEnd<'a> {
    state: TaskState,
    at: Millis,
    result: Option<&'a str>,
    /// Error code and message.
    error: Option<(&'a str, &'a str)>,
    cost: Amount,
}

/// The values of a locked row that determine whether a task may end, and those of its state that its record keeps.
struct LockedTask {
    /// `None` if the number is unknown: then the task must not be changed.
    state: Option<TaskState>,
    fence: i64,
    is_leased: bool,
    started_at: Option<Millis>,
    progress: i64,
    polled_at: Option<Millis>,
    user_id: String,
    ended_at: Option<Millis>,
    cost: Amount,
    key_id: String,
    callback_url: Option<String>,
    kind: TaskKind,
    /// The fields of the request that the record shows, as a JSON object.
    shown: String,
    /// The channel of the last attempt.
    channel: Option<String>,
}

impl LockedTask {
    async fn lock(batch: &mut Batch<'_, '_>, task_id: &str) -> Result<Option<Self>, DbError> {
        let mut row = batch
            .first(batch.on_queue(&LOCK_TASK), args![task_id])
            .await?;
        if row.is_none() && batch.queue_table == QueueTable::Queue {
            row = batch.first(&ENDED_TASK, args![task_id]).await?;
        }
        row.as_mut().map(Self::read).transpose()
    }

    /// Reads a row of [`LOCK_TASK`].
    fn read(row: &mut Row) -> Result<Self, DbError> {
        let kind = row.text(11)?;
        let kind = TaskKind::from_name(&kind)
            .ok_or_else(|| DbError::UnexpectedData(format!("task kind {kind} is unknown")))?;
        Ok(Self {
            state: TaskState::from_number(row.int(0)?),
            fence: row.int(1)?,
            is_leased: row.opt_text(2)?.is_some(),
            started_at: row.opt_int(3)?,
            progress: row.int(4)?,
            polled_at: row.opt_int(5)?,
            user_id: row.text(6)?,
            ended_at: row.opt_int(7)?,
            cost: row.amount(8)?,
            key_id: row.text(9)?,
            callback_url: row.opt_text(10)?,
            kind,
            shown: row.text(12)?,
            channel: row.opt_text(13)?,
        })
    }

    /// Writes the end of the task to its record, and removes it from the queue.
    fn write_end(
        &self,
        batch: &mut Batch<'_, '_>,
        task_id: &str,
        end: &RecordedEnd<'_>,
    ) -> Result<(), DbError> {
        let progress = match end.state {
            TaskState::Completed => 100,
            _ => self.progress,
        };
        let args = args![
            end.state.number(),
            self.fence,
            self.started_at,
            progress,
            self.polled_at,
            end.at,
            end.result,
            end.error.map(|(code, _)| code),
            end.error.map(|(_, message)| message),
            end.cost,
            task_id
        ];
        batch.queue_one(batch.on_queue(&END_TASK), args)?;
        if batch.queue_table == QueueTable::Queue {
            batch.queue(&DEQUEUE_TASK, args![task_id])?;
        }
        Ok(())
    }

    /// The data that usage counts if the task ends as `state`.
    fn ended(&self, state: TaskState) -> EndedTask<'_> {
        let is_completed_video = self.kind == TaskKind::Video && state == TaskState::Completed;
        EndedTask {
            kind: self.kind,
            seconds: if is_completed_video {
                video_seconds(&self.shown)
            } else {
                0
            },
            channel: self.channel.as_deref().unwrap_or_default(),
            state,
        }
    }

    fn is_final(&self) -> bool {
        self.state.is_none_or(TaskState::is_final)
    }

    fn ended_as(&self, state: TaskState, at: Millis) -> bool {
        self.state == Some(state) && self.ended_at == Some(at)
    }

    /// Inserts the webhook of a task that ends now, if the client set a URL.
    fn insert_webhook(
        &self,
        batch: &mut Batch<'_, '_>,
        task_id: &str,
        now: Millis,
    ) -> Result<(), DbError> {
        match &self.callback_url {
            Some(url) => {
                let account = Account {
                    user_id: &self.user_id,
                    key_id: &self.key_id,
                };
                insert_webhook(batch, task_id, account, url, now)
            }
            None => Ok(()),
        }
    }
}

#[async_trait(?Send)]
impl Write for TaskFinish {
    type Out = FinishOutcome;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.user_id, &self.key_id)
    }

    fn note_changed_tasks(&self, _: &FinishOutcome, versions: &TaskVersions) {
        versions.raise(&self.task_id);
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<FinishOutcome, DbError> {
        let (task_id, now) = (&self.task_id, self.now);
        let (state, delivered) = match &self.end {
            TaskEnd::Completed { delivered, .. } => (TaskState::Completed, *delivered),
            TaskEnd::Failed { .. } => (TaskState::Failed, Delivered::Units(0)),
        };
        // 1. Only the holder of the lease may end the task, and only once.
        let Some(task) = LockedTask::lock(batch, task_id).await? else {
            return Ok(FinishOutcome::AlreadyFinal);
        };
        if task.is_final() {
            // The same end under the same lease is from an earlier try of this write whose commit was in doubt.
            let is_ours =
                batch.commit_in_doubt && task.fence == self.fence && task.ended_as(state, now);
            return Ok(if is_ours {
                FinishOutcome::Finished { cost: task.cost }
            } else {
                FinishOutcome::AlreadyFinal
            });
        }
        if task.fence != self.fence || !task.is_leased {
            return Ok(FinishOutcome::LeaseLost);
        }
        // 2. Settle the delivered part, release the rest.
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        let cost =
            close_charge(batch, task_id, account, delivered, &task.ended(state), now).await?;
        // 3. Write the state and the result or the error.
        let (result, error) = match &self.end {
            TaskEnd::Completed { result, .. } => (Some(result.as_str()), None),
            TaskEnd::Failed { code, message } => (None, Some((code.as_str(), message.as_str()))),
        };
        let end = RecordedEnd {
            state,
            at: now,
            result,
            error,
            cost,
        };
        task.write_end(batch, task_id, &end)?;
        // 4. End the attempt, and any attempt that a lost lease left open.
        if let Some(attempt) = &self.attempt {
            end_attempt(batch, task_id, attempt, now)?;
        }
        end_open_attempts(batch, task_id, "interrupted", now)?;
        // 5. Queue the webhook.
        task.insert_webhook(batch, task_id, now)?;
        Ok(FinishOutcome::Finished { cost })
    }
}

/// The seconds of a video, from the fields of the request in its record; 0 if these have none.
fn video_seconds(shown: &str) -> i64 {
    let shown: serde_json::Value = serde_json::from_str(shown).unwrap_or_default();
    let seconds = match &shown["seconds"] {
        serde_json::Value::String(text) => text.parse().ok(),
        number => number.as_u64(),
    };
    seconds
        .and_then(|seconds| u32::try_from(seconds).ok())
        .map_or(0, i64::from)
}

/// Why a task is ended by something other than its worker.
enum ForcedEnd {
    /// Its user or an operator cancelled it; contains one sentence for the client.
    Cancelled(&'static str),
    /// Its deadline has passed; contains one sentence for the client.
    TimedOut(String),
}

impl ForcedEnd {
    fn state(&self) -> TaskState {
        match self {
            Self::Cancelled(_) => TaskState::Cancelled,
            Self::TimedOut(_) => TaskState::Failed,
        }
    }

    /// Error code and message of the task, and the outcome of its open attempts.
    fn error(&self) -> (&str, &str, &'static str) {
        match self {
            Self::Cancelled(message) => ("cancelled", message, "cancelled"),
            Self::TimedOut(message) => ("timeout", message, "interrupted"),
        }
    }
}

/// Ends a task, whichever worker has its lease.
pub(crate) struct EndByForce {
    task_id: String,
    user_id: String,
    key_id: String,
    end: ForcedEnd,
    now: Millis,
}

impl EndByForce {
    pub(crate) fn cancel(task: &Task, message: &'static str, now: Millis) -> Self {
        Self::new(task, ForcedEnd::Cancelled(message), now)
    }

    pub(crate) fn task_id(&self) -> &str {
        &self.task_id
    }

    fn new(task: &Task, end: ForcedEnd, now: Millis) -> Self {
        Self {
            task_id: task.id.clone(),
            user_id: task.user_id.clone(),
            key_id: task.key_id.clone(),
            end,
            now,
        }
    }
}

#[async_trait(?Send)]
impl Write for EndByForce {
    type Out = CancelOutcome;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.user_id, &self.key_id)
    }

    fn note_changed_tasks(&self, _: &CancelOutcome, versions: &TaskVersions) {
        versions.raise(&self.task_id);
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<CancelOutcome, DbError> {
        let (task_id, now) = (&self.task_id, self.now);
        let task = LockedTask::lock(batch, task_id).await?;
        let Some(task) = task.filter(|task| task.user_id == self.user_id) else {
            return Ok(CancelOutcome::NotFound);
        };
        if task.is_final() {
            // The user may have sent the request twice; success is reported only if this write itself ended the task.
            let is_ours = batch.commit_in_doubt && task.ended_as(self.end.state(), now);
            return Ok(if is_ours {
                CancelOutcome::Cancelled
            } else {
                CancelOutcome::AlreadyFinal
            });
        }
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        let ended = task.ended(self.end.state());
        let nothing = Delivered::Units(0);
        let cost = close_charge(batch, task_id, account, nothing, &ended, now).await?;
        let (code, message, outcome) = self.end.error();
        let end = RecordedEnd {
            state: self.end.state(),
            at: now,
            result: None,
            error: Some((code, message)),
            cost,
        };
        task.write_end(batch, task_id, &end)?;
        end_open_attempts(batch, task_id, outcome, now)?;
        task.insert_webhook(batch, task_id, now)?;
        Ok(CancelOutcome::Cancelled)
    }
}
