//! Tasks, as their users see them.

use tollgate_core::Millis;

use super::Store;
use crate::db::args;
use crate::error::StoreError;
use crate::model::{Cancelled, NewTask, Page, Submitted, Task};
use crate::ops::{end, purge, read, submit};

/// Tasks that a page may hold.
const PAGE_MAX: usize = 100;

/// Tasks, as their users see them.
impl Store {
    /// Takes a submission: idempotency record, hold and task, on disk when it returns.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] where its price is negative or too large.
    pub async fn submit(&self, task: NewTask) -> Result<Submitted, StoreError> {
        if task.charge.cost(task.charge.units).is_none() {
            return Err(StoreError::Invalid(format!(
                "the price of {:?} times {} is negative or too large",
                task.model, task.charge.units
            )));
        }
        self.write(submit::Submit(task)).await
    }

    /// What an `Idempotency-Key` of a user stands for: fingerprint and receipt, if it came in the last 24 h.
    pub async fn receipt(
        &self,
        user_id: &str,
        key: &str,
        now: Millis,
    ) -> Result<Option<(String, String)>, StoreError> {
        let mut rows = self.query(&read::RECEIPT, args![user_id, key]).await?;
        match rows.first_mut() {
            Some(row) if row.int(2)? > now - purge::IDEMPOTENCY_LIFE => {
                Ok(Some((row.text(0)?, row.text(1)?)))
            }
            _ => Ok(None),
        }
    }

    /// A number that moves when what [`Store::task`] answers may have changed: take it before reading, and as long as it
    /// stays, what was read may be shown again. None where other processes change tasks too.
    pub fn stamp(&self, task_id: &str) -> Option<u64> {
        (!self.is_shared()).then(|| self.writer.changes.stamp(task_id))
    }

    /// The task of that id, whoever it belongs to.
    pub async fn task(&self, id: &str) -> Result<Option<Task>, StoreError> {
        self.first(&read::TASK, args![id], read::task).await
    }

    /// A user's tasks, newest first, up to 100, older than `cursor`.
    pub async fn tasks_of(
        &self,
        user_id: &str,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Page, StoreError> {
        let limit = limit.clamp(1, PAGE_MAX);
        // '~' sorts behind every character of an id.
        let before = cursor.unwrap_or("~");
        let mut rows = self
            .query(
                &read::TASKS_OF_USER,
                args![user_id, before, limit as i64 + 1],
            )
            .await?;
        let more = rows.len() > limit;
        rows.truncate(limit);
        let tasks = rows
            .iter_mut()
            .map(read::task)
            .collect::<Result<Vec<_>, _>>()?;
        let next = tasks.last().filter(|_| more).map(|t| t.id.clone());
        Ok(Page { tasks, next })
    }

    /// Ends an unfinished task of that user; releases its hold.
    pub async fn cancel(&self, task: &Task, now: Millis) -> Result<Cancelled, StoreError> {
        let cancel = end::CancelTask {
            task_id: task.id.clone(),
            user_id: task.user_id.clone(),
            key_id: task.key_id.clone(),
            now,
        };
        self.write(cancel).await
    }
}
