//! The record of a task, and pages of a user's list of tasks.

use tollgate_core::{Amount, Millis, TaskKind, TaskState};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;

/// Tasks in a page, at most.
const PAGE_MAX: usize = 100;

/// The columns that [`read_task`] reads, in its order, from a row `t` of `tasks` and the row `q` of `queue` that exists for an unfinished task.
macro_rules! task_columns {
    () => {
        "t.id, t.user_id, t.key_id, t.kind, t.family, t.model, CASE WHEN q.started_at IS NULL THEN t.state ELSE 1 END, \
         COALESCE(q.progress, t.progress), t.created_at, COALESCE(q.started_at, t.started_at), t.ended_at, t.deadline_at, \
         t.adjustments, t.result, t.error_code, t.error_message, t.cost, t.shown, t.callback_url, t.refunded"
    };
}
pub(super) use task_columns;

/// The number of columns in `task_columns`.
pub(super) const TASK_COLUMNS_COUNT: usize = 20;

pub(crate) const TASK_BY_ID: Sql = Sql::both(concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks t LEFT JOIN queue q ON q.task_id = t.id WHERE t.id = $1"
));
pub(crate) const TASKS_OF_USER: Sql = Sql::both(concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks t LEFT JOIN queue q ON q.task_id = t.id WHERE t.user_id = $1 AND t.id < $2 ORDER BY t.id DESC LIMIT $3"
));

/// A task as a worker or a reader sees it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id.
    pub id: String,
    /// The user who pays.
    pub user_id: String,
    /// The key it was submitted with.
    pub key_id: String,
    /// What it generates.
    pub kind: TaskKind,
    /// The family's name.
    pub family: String,
    /// The model as the client named it.
    pub model: String,
    /// Its state.
    pub state: TaskState,
    /// Progress in percent, 0 to 100.
    pub progress: i64,
    /// When it was submitted.
    pub created_at: Millis,
    /// When a worker first leased it. `None` before that.
    pub started_at: Option<Millis>,
    /// When it ended. `None` before that.
    pub ended_at: Option<Millis>,
    /// When it fails with a timeout.
    pub deadline_at: Millis,
    /// The adjustments, as a JSON array.
    pub adjustments: String,
    /// Fields of the request that the record shows and no other column holds, as a JSON object.
    pub echoed_fields: String,
    /// The URL of the webhook, if the client gave one.
    pub callback_url: Option<String>,
    /// The result, as a JSON object. `None` unless the task is completed.
    pub result: Option<String>,
    /// Error code and message. `None` unless the task failed or was cancelled.
    pub error: Option<(String, String)>,
    /// The amount charged; 0 until the task has ended.
    pub cost: Amount,
    /// The refunded part of it.
    pub refunded: Amount,
}

/// A page of a user's tasks.
#[derive(Debug, Clone)]
pub struct TaskPage {
    /// Newest first.
    pub tasks: Vec<Task>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

/// Records of tasks.
impl Store {
    /// The task with that id, of any user.
    pub async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.first(&TASK_BY_ID, args![id], read_task).await
    }

    /// As [`Store::task`], for a caller who polls the task: an ended task may be read from the replica.
    pub async fn polled_task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        if let Some(replica) = self.fresh_replica()
            && let Some(mut rows) = replica.query(&TASK_BY_ID, args![id]).await
            && let Some(row) = rows.first_mut()
        {
            let task = read_task(row)?;
            if task.state.is_final() {
                return Ok(Some(task));
            }
        }
        self.task(id).await
    }

    /// A version of what [`Store::task`] returns. Read it before the task; as long as it is unchanged, the record may be served from a cache. `None`
    /// if other processes change tasks too.
    pub fn task_version(&self, task_id: &str) -> Option<u64> {
        (!self.is_shared()).then(|| self.writer.task_versions.version(task_id))
    }

    /// A page of a user's tasks, newest first: `limit` (1 to 100) tasks older than `cursor`.
    pub async fn list_tasks(
        &self,
        user_id: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<TaskPage, StoreError> {
        let limit = limit.clamp(1, PAGE_MAX);
        // '~' sorts after every character of an id.
        let before = cursor.unwrap_or("~");
        let args = args![user_id, before, limit as i64 + 1];
        let mut rows = self.query(&TASKS_OF_USER, args).await?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let tasks = rows
            .iter_mut()
            .map(read_task)
            .collect::<Result<Vec<_>, _>>()?;
        let next = tasks.last().filter(|_| has_more).map(|t| t.id.clone());
        Ok(TaskPage { tasks, next })
    }
}

/// Reads a task from the columns `task_columns`.
pub(super) fn read_task(row: &mut Row) -> Result<Task, DbError> {
    let kind = row.text(3)?;
    let state = row.int(6)?;
    let error_code = row.opt_text(14)?;
    Ok(Task {
        id: row.text(0)?,
        user_id: row.text(1)?,
        key_id: row.text(2)?,
        kind: TaskKind::from_name(&kind)
            .ok_or_else(|| DbError::UnexpectedData(format!("unknown task kind {kind}")))?,
        family: row.text(4)?,
        model: row.text(5)?,
        state: TaskState::from_number(state)
            .ok_or_else(|| DbError::UnexpectedData(format!("unknown task state {state}")))?,
        progress: row.int(7)?,
        created_at: row.int(8)?,
        started_at: row.opt_int(9)?,
        ended_at: row.opt_int(10)?,
        deadline_at: row.int(11)?,
        adjustments: row.text(12)?,
        result: row.opt_text(13)?,
        error: match error_code {
            Some(code) => Some((code, row.opt_text(15)?.unwrap_or_default())),
            None => None,
        },
        cost: row.amount(16)?,
        echoed_fields: row.text(17)?,
        callback_url: row.opt_text(18)?,
        refunded: row.amount(19)?,
    })
}
