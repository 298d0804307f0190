//! A task's end: state, result and money in one transaction, once.

use async_trait::async_trait;
use tollgate_core::{Millis, TaskState};

use super::lease::end_attempt;
use crate::batch::Batch;
use crate::db::{DbError, Sql, args};
use crate::model::{Cancelled, End, Ended, Finish};
use crate::money::{self, Payer};
use crate::writer::{Payers, Write};

const LOCK_TASK: Sql = Sql::each(
    "SELECT state, fence, user_id FROM tasks WHERE id = $1",
    "SELECT state, fence, user_id FROM tasks WHERE id = $1 FOR UPDATE",
);
const END_TASK: Sql = Sql::both(
    "UPDATE tasks SET state = $1, progress = COALESCE(CAST($2 AS BIGINT), progress), ended_at = $3, owner = NULL, result = $4, error_code = $5,
                      error_message = $6, cost = $7
     WHERE id = $8 AND state < 2",
);
const END_OPEN_ATTEMPTS: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2 WHERE task_id = $3 AND ended_at IS NULL",
);

/// Ends a task under its lease.
pub(crate) struct FinishTask(pub(crate) Finish);

#[async_trait(?Send)]
impl Write for FinishTask {
    type Out = Ended;

    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.0.user_id),
            key: Some(&self.0.key_id),
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Ended, DbError> {
        let Finish {
            task_id,
            user_id,
            key_id,
            fence,
            end,
            attempt,
            now,
        } = &self.0;
        // 1. Only the holder of the lease may end it, and only once.
        let Some(row) = batch.first(&LOCK_TASK, args![task_id]).await? else {
            return Ok(Ended::Already);
        };
        if TaskState::from_number(row.int(0)?).is_none_or(TaskState::is_final) {
            return Ok(Ended::Already);
        }
        if row.int(1)? != *fence {
            return Ok(Ended::LostLease);
        }
        // 2. The money: what was delivered is paid, the rest released.
        let payer = Payer { user_id, key_id };
        let units = match end {
            End::Completed { units, .. } => *units,
            End::Failed { .. } => 0,
        };
        let cost = money::close_charge(batch, task_id, payer, units, *now).await?;
        // 3. The state and what there is to show.
        match end {
            End::Completed { result, .. } => {
                let (state, none) = (TaskState::Completed.number(), None::<&str>);
                batch.run(
                    &END_TASK,
                    args![state, Some(100), *now, result, none, none, cost, task_id],
                )?;
            }
            End::Failed { code, message } => {
                let (state, none) = (TaskState::Failed.number(), None::<&str>);
                batch.run(
                    &END_TASK,
                    args![state, None::<i64>, *now, none, code, message, cost, task_id],
                )?;
            }
        }
        // 4. The attempt.
        if let Some(attempt) = attempt {
            end_attempt(batch, task_id, attempt, *now)?;
        }
        Ok(Ended::Done { cost })
    }
}

/// Ends a task because its user says so, whoever has the lease.
pub(crate) struct CancelTask {
    pub(crate) task_id: String,
    pub(crate) user_id: String,
    pub(crate) key_id: String,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for CancelTask {
    type Out = Cancelled;

    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.user_id),
            key: Some(&self.key_id),
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Cancelled, DbError> {
        let Some(mut row) = batch.first(&LOCK_TASK, args![&self.task_id]).await? else {
            return Ok(Cancelled::NotFound);
        };
        if row.text(2)? != self.user_id {
            return Ok(Cancelled::NotFound);
        }
        if TaskState::from_number(row.int(0)?).is_none_or(TaskState::is_final) {
            return Ok(Cancelled::AlreadyFinal);
        }
        let payer = Payer {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        let cost = money::close_charge(batch, &self.task_id, payer, 0, self.now).await?;
        let (state, none) = (TaskState::Cancelled.number(), None::<&str>);
        let args = args![
            state,
            None::<i64>,
            self.now,
            none,
            "cancelled",
            "cancelled by its user",
            cost,
            &self.task_id
        ];
        batch.run(&END_TASK, args)?;
        batch.run(
            &END_OPEN_ATTEMPTS,
            args![self.now, "cancelled", &self.task_id],
        )?;
        Ok(Cancelled::Done)
    }
}
