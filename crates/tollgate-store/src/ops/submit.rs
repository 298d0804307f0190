//! A submission: idempotency record, hold and task in one transaction.

use async_trait::async_trait;
use tollgate_core::TaskState;

use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::model::{NewTask, Submitted};
use crate::money::{self, Payer};
use crate::writer::{Payers, Write};

pub(super) const TASK_EXISTS: Sql = Sql::both("SELECT id FROM tasks WHERE id = $1");
pub(super) const SEEN: Sql = Sql::both(
    "SELECT fingerprint, receipt, created_at FROM idempotency WHERE user_id = $1 AND key = $2",
);
// What is there already has been found to be too old to count.
const REMEMBER: Sql = Sql::both(
    "INSERT INTO idempotency (user_id, key, fingerprint, task_id, receipt, created_at) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (user_id, key) DO UPDATE SET fingerprint = excluded.fingerprint, task_id = excluded.task_id,
                                              receipt = excluded.receipt, created_at = excluded.created_at",
);
const INSERT_TASK: Sql = Sql::both(
    "INSERT INTO tasks (id, user_id, key_id, kind, family, model, state, progress, created_at, deadline_at, due_at,
                        fence, failed_attempts, job, adjustments, shown, callback_url, cost, request_id)
     VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $8, 0, 0, $10, $11, $12, $13, 0, $14)",
);

/// Takes a submission.
pub(crate) struct Submit(pub(crate) NewTask);

#[async_trait(?Send)]
impl Write for Submit {
    type Out = Submitted;

    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.0.user_id),
            key: Some(&self.0.key_id),
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Submitted, DbError> {
        let task = &self.0;
        // 1. A second try of this very write is answered, not done again.
        if batch.again && batch.first(&TASK_EXISTS, args![&task.id]).await?.is_some() {
            return Ok(Submitted::Accepted);
        }
        // 2. The same key and body again are the first submission.
        if let Some(earlier) = seen(batch, task).await? {
            return Ok(earlier);
        }
        // 3. The money is set aside; a refusal leaves nothing behind.
        let payer = Payer {
            user_id: &task.user_id,
            key_id: &task.key_id,
        };
        if let Err(refusal) = money::open_charge(
            batch,
            &task.id,
            payer,
            &task.model,
            &task.charge,
            task.created_at,
        )? {
            return Ok(Submitted::Refused(refusal));
        }
        // 4. The task waits for a worker.
        batch.run(
            &INSERT_TASK,
            args![
                &task.id,
                &task.user_id,
                &task.key_id,
                task.kind.name(),
                &task.family,
                &task.model,
                TaskState::Submitted.number(),
                task.created_at,
                task.deadline_at,
                &task.job,
                &task.adjustments,
                &task.shown,
                task.callback_url.as_ref(),
                &task.request_id
            ],
        )?;
        // 5. The receipt is remembered.
        if let Some(i) = &task.idempotency {
            let args = args![
                &task.user_id,
                &i.key,
                &i.fingerprint,
                &task.id,
                &i.receipt,
                task.created_at
            ];
            batch.run(&REMEMBER, args)?;
        }
        Ok(Submitted::Accepted)
    }
}

async fn seen(batch: &mut Batch<'_, '_>, task: &NewTask) -> Result<Option<Submitted>, DbError> {
    let Some(i) = &task.idempotency else {
        return Ok(None);
    };
    let Some(mut row) = batch.first(&SEEN, args![&task.user_id, &i.key]).await? else {
        return Ok(None);
    };
    if row.int(2)? <= task.created_at - super::purge::IDEMPOTENCY_LIFE {
        return Ok(None);
    }
    Ok(Some(if row.text(0)? == i.fingerprint {
        Submitted::Repeated {
            receipt: row.text(1)?,
        }
    } else {
        Submitted::KeyReused
    }))
}
