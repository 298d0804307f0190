//! Submissions: the idempotency record, the hold and the task in one transaction.

use async_trait::async_trait;
use tollgate_core::{Amount, Millis, TaskKind, TaskState, clock};

use super::queue_table::QueueTable;
use crate::db::{DbError, RowsSql, Sql, args};
use crate::error::StoreError;
use crate::ledger::account::{Account, Rejection};
use crate::ledger::charges::{Charge, open_charge};
use crate::list_blocks::List;
use crate::store::Store;
use crate::tail::recorder::TailEvent;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

/// How long an idempotency record is valid.
pub(crate) const IDEMPOTENCY_TTL: Millis = clock::DAY;

pub(crate) const TASK_EXISTS: Sql = Sql::both("SELECT id FROM tasks WHERE id = $1");
pub(crate) const IDEMPOTENCY_RECORD: Sql = Sql::both(
    "SELECT fingerprint, receipt, created_at FROM idempotency WHERE user_id = $1 AND key = $2",
);
// A record that is replaced has expired, because [`find_earlier`] has not returned it.
const PUT_IDEMPOTENCY_RECORD: Sql = Sql::both(
    "INSERT INTO idempotency (user_id, key, fingerprint, task_id, receipt, created_at) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (user_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, task_id = excluded.task_id,
                                              receipt = excluded.receipt, created_at = excluded.created_at",
);
// On SQLite the column due_at still exists; nothing reads it.
static INSERT_TASK: RowsSql = RowsSql::insert(Sql::per_database(
    "INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, deadline_at, due_at,
                            fence, failed_attempts, job, adjustments, shown, callback_url, cost, request_id, trace_context,
                            trace_state)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, 0, 0, 0, $10, $11, $12, $13, 0, $14, $15, $16)",
        "INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, deadline_at,
                            fence, failed_attempts, job, adjustments, shown, callback_url, cost, request_id, trace_context,
                            trace_state)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, 0, 0, $10, $11, $12, $13, 0, $14, $15, $16)",
));
/// Used as long as the state of unfinished tasks is in `tasks`.
static INSERT_TASK_WITH_STATE: RowsSql = RowsSql::insert(Sql::both(
    "INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, deadline_at, due_at,
                            fence, failed_attempts, job, adjustments, shown, callback_url, cost, request_id, trace_context,
                            trace_state)
         VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $8, 0, 0, $10, $11, $12, $13, 0, $14, $15, $16)",
));
static ENQUEUE_TASK: RowsSql = RowsSql::insert(Sql::both(
    "INSERT INTO queue (task_id, shard, user_id, key_id, due_at, fence, deadline_at, failed_attempts, progress)
     VALUES ($1, $2, $3, $4, $5, 0, $6, 0, 0)",
));

/// A task to submit.
#[derive(Debug, Clone)]
pub struct NewTask {
    /// From [`tollgate_core::id::task_id`].
    pub id: String,
    /// The user who pays.
    pub user_id: String,
    /// The key of the request.
    pub key_id: String,
    /// What it generates.
    pub kind: TaskKind,
    /// The family's name.
    pub family: String,
    /// The model as the client named it.
    pub model: String,
    /// When it was submitted.
    pub created_at: Millis,
    /// When it fails with a timeout.
    pub deadline_at: Millis,
    /// The normalised job, as JSON.
    pub job: String,
    /// The adjustments, as a JSON array.
    pub adjustments: String,
    /// Fields of the request that the record shows and no other column holds, as a JSON object.
    pub echoed_fields: String,
    /// The URL of the webhook, if the client set one.
    pub callback_url: Option<String>,
    /// The id of the request, for logs.
    pub request_id: String,
    /// The `traceparent` of the request. `None` if it is in no sampled trace.
    pub trace_context: Option<String>,
    /// The `tracestate` beside it. `None` if the caller sent none.
    pub trace_state: Option<String>,
    /// Its price.
    pub charge: Charge,
    /// From the `Idempotency-Key` header.
    pub idempotency: Option<IdempotencyRecord>,
}

/// An `Idempotency-Key` and the data that is stored with it.
#[derive(Debug, Clone)]
pub struct IdempotencyRecord {
    /// The header's value, 1 to 255 characters.
    pub key: String,
    /// A hash of path and body; equal for equal JSON values.
    pub fingerprint: String,
    /// The response to the submission, replayed byte for byte.
    pub receipt: String,
}

/// The outcome of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The task was accepted: it and its hold are on disk.
    Accepted,
    /// An earlier submission had the same key and fingerprint.
    Replayed {
        /// The receipt of the first submission, byte for byte.
        receipt: String,
    },
    /// The key was used before with another fingerprint.
    KeyReused,
    /// The hold was rejected; nothing was written.
    Rejected(Rejection),
}

/// Submissions.
impl Store {
    /// Accepts a submission: the idempotency record, the hold and the task are on disk when this returns.
    ///
    /// # Errors
    /// [`StoreError::Invalid`] if its price is negative or too large.
    pub async fn submit_task(&self, task: NewTask) -> Result<SubmitOutcome, StoreError> {
        if task.charge.cost(task.charge.units).is_none() {
            return Err(StoreError::Invalid(format!(
                "the price of {:?} times {} is negative or too large",
                task.model, task.charge.units
            )));
        }
        let (user_id, now) = (task.user_id.clone(), task.created_at);
        if !self.is_shared() {
            return self.write(task).await;
        }
        let again = task.clone();
        match self.write(task).await? {
            SubmitOutcome::Rejected(_) if self.reclaim_grants(&user_id, now).await? => {
                self.write(again).await
            }
            outcome => Ok(outcome),
        }
    }

    /// Fingerprint and receipt that are stored with an `Idempotency-Key` of a user, if it was used in the last 24 h.
    pub async fn find_receipt(
        &self,
        user_id: &str,
        key: &str,
        now: Millis,
    ) -> Result<Option<(String, String)>, StoreError> {
        let mut rows = self.query(&IDEMPOTENCY_RECORD, args![user_id, key]).await?;
        match rows.first_mut() {
            Some(row) if row.int(2)? > now - IDEMPOTENCY_TTL => {
                Ok(Some((row.text(0)?, row.text(1)?)))
            }
            _ => Ok(None),
        }
    }
}

#[async_trait(?Send)]
impl Write for NewTask {
    type Out = SubmitOutcome;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.user_id, &self.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<SubmitOutcome, DbError> {
        // 1. An earlier try of this write may have been committed.
        if batch.commit_in_doubt && batch.first(&TASK_EXISTS, args![&self.id]).await?.is_some() {
            return Ok(SubmitOutcome::Accepted);
        }
        // 2. An earlier submission may have the same idempotency key.
        if let Some(earlier) = find_earlier(batch, self).await? {
            return Ok(earlier);
        }
        // 3. Hold the price; if this is rejected, nothing has been written.
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        let held = open_charge(
            batch,
            &self.id,
            account,
            &self.model,
            &self.charge,
            self.created_at,
        )?;
        if let Err(rejection) = held {
            return Ok(SubmitOutcome::Rejected(rejection));
        }
        // 4. Queue the task for a worker.
        batch.note_inserted(List::Tasks, &self.id)?;
        let insert = match batch.queue_table {
            QueueTable::Queue => &INSERT_TASK,
            QueueTable::Tasks => &INSERT_TASK_WITH_STATE,
        };
        batch.queue_row(
            insert,
            args![
                &self.id,
                &self.user_id,
                &self.key_id,
                self.kind.name(),
                &self.family,
                &self.model,
                TaskState::Submitted.number(),
                self.created_at,
                self.deadline_at,
                &self.job,
                &self.adjustments,
                &self.echoed_fields,
                self.callback_url.as_ref(),
                &self.request_id,
                self.trace_context.as_ref(),
                self.trace_state.as_ref()
            ],
        )?;
        if batch.queue_table == QueueTable::Queue {
            let shard = batch.queue_state.own_shards().shard_of_user(&self.user_id);
            let args = args![
                &self.id,
                i64::from(shard),
                &self.user_id,
                &self.key_id,
                self.created_at,
                self.deadline_at
            ];
            batch.queue_row(&ENQUEUE_TASK, args)?;
        }
        batch.tail.add(&TailEvent {
            kind: "task",
            id: &self.id,
            state: TaskState::Submitted.name(),
            model: &self.model,
            user_id: &self.user_id,
            key_id: &self.key_id,
            channel: None,
            cost: Amount::ZERO,
            at: self.created_at,
        });
        // 5. Store the idempotency record.
        if let Some(record) = &self.idempotency {
            let args = args![
                &self.user_id,
                &record.key,
                &record.fingerprint,
                &self.id,
                &record.receipt,
                self.created_at
            ];
            batch.queue(&PUT_IDEMPOTENCY_RECORD, args)?;
        }
        Ok(SubmitOutcome::Accepted)
    }
}

/// The outcome if an earlier submission has the same idempotency key.
async fn find_earlier(
    batch: &mut Batch<'_, '_>,
    task: &NewTask,
) -> Result<Option<SubmitOutcome>, DbError> {
    let Some(record) = &task.idempotency else {
        return Ok(None);
    };
    let args = args![&task.user_id, &record.key];
    let Some(mut row) = batch.first(&IDEMPOTENCY_RECORD, args).await? else {
        return Ok(None);
    };
    if row.int(2)? <= task.created_at - IDEMPOTENCY_TTL {
        return Ok(None);
    }
    Ok(Some(if row.text(0)? == record.fingerprint {
        SubmitOutcome::Replayed {
            receipt: row.text(1)?,
        }
    } else {
        SubmitOutcome::KeyReused
    }))
}
