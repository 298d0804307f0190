//! The trace of a task, for the spans of a task that is not ended by a worker.

use tollgate_core::Millis;

use crate::db::{Sql, args};
use crate::error::StoreError;
use crate::store::Store;

pub(crate) const TASK_TRACE: Sql = Sql::both(
    "SELECT t.trace_context, t.trace_state, t.ended_at, a.number, a.channel, a.started_at, a.ended_at
     FROM tasks t LEFT JOIN attempts a
          ON a.task_id = t.id AND a.number = (SELECT MAX(l.number) FROM attempts l WHERE l.task_id = t.id)
     WHERE t.id = $1",
);

/// The trace of a task, and its last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskTraceRow {
    /// The `traceparent` of the request that submitted it. `None` if it was in no sampled trace.
    pub trace_context: Option<String>,
    /// The `tracestate` beside it. `None` if the caller sent none.
    pub trace_state: Option<String>,
    /// Its last attempt. `None` if it had none.
    pub last_attempt: Option<LastAttempt>,
}

/// The last attempt at a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastAttempt {
    /// Its number among the task's attempts, from 1.
    pub number: i64,
    /// Its channel.
    pub channel: String,
    /// When it started.
    pub started_at: Millis,
    /// Whether it ended with the task, and not before.
    pub ended_with_task: bool,
}

/// Traces.
impl Store {
    /// The trace of a task. `None` if there is no such task.
    pub async fn task_trace(&self, task_id: &str) -> Result<Option<TaskTraceRow>, StoreError> {
        self.first(&TASK_TRACE, args![task_id], |row| {
            let last_attempt = match row.opt_int(3)? {
                None => None,
                Some(number) => Some(LastAttempt {
                    number,
                    channel: row.text(4)?,
                    started_at: row.int(5)?,
                    ended_with_task: row.opt_int(2)? == row.opt_int(6)?,
                }),
            };
            Ok(TaskTraceRow {
                trace_context: row.opt_text(0)?,
                trace_state: row.opt_text(1)?,
                last_attempt,
            })
        })
        .await
    }
}
