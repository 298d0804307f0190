//! A task's end: state, result and money in one transaction, once.

use async_trait::async_trait;
use tollgate_core::{Amount, Millis, TaskState};

use super::attempt::{end_attempt, end_open_attempts};
use super::callback;
use crate::batch::Batch;
use crate::changes::Changes;
use crate::db::{DbError, Sql, args};
use crate::model::{Cancelled, Delivered, End, Ended, Finish};
use crate::money::{self, Payer};
use crate::writer::{Payers, Write};

pub(super) const LOCK_TASK: Sql = Sql::each(
    "SELECT state, fence, owner, user_id, ended_at, cost, key_id, callback_url FROM tasks WHERE id = $1",
    "SELECT state, fence, owner, user_id, ended_at, cost, key_id, callback_url FROM tasks WHERE id = $1 FOR UPDATE",
);
pub(super) const END_TASK: Sql = Sql::both(
    "UPDATE tasks SET state = $1, progress = COALESCE(CAST($2 AS BIGINT), progress), ended_at = $3, owner = NULL,
                      queued_attempt = NULL, result = $4, error_code = $5, error_message = $6, cost = $7
     WHERE id = $8 AND state < 2",
);

/// What decides whether a task may end, its row locked.
struct Locked {
    /// None where the number is none of ours: then nothing may change it.
    state: Option<TaskState>,
    fence: i64,
    is_leased: bool,
    user_id: String,
    ended_at: Option<Millis>,
    cost: Amount,
    key_id: String,
    callback_url: Option<String>,
}

impl Locked {
    fn is_final(&self) -> bool {
        self.state.is_none_or(TaskState::is_final)
    }

    fn ended(&self, state: TaskState, at: Millis) -> bool {
        self.state == Some(state) && self.ended_at == Some(at)
    }

    /// Puts out the callback of a task that ends now, if somebody wants one.
    fn call_back(
        &self,
        batch: &mut Batch<'_, '_>,
        task_id: &str,
        now: Millis,
    ) -> Result<(), DbError> {
        match &self.callback_url {
            Some(url) => callback::put_out(batch, task_id, &self.key_id, url, now),
            None => Ok(()),
        }
    }
}

async fn locked(batch: &mut Batch<'_, '_>, task_id: &str) -> Result<Option<Locked>, DbError> {
    let Some(mut row) = batch.first(&LOCK_TASK, args![task_id]).await? else {
        return Ok(None);
    };
    Ok(Some(Locked {
        state: TaskState::from_number(row.int(0)?),
        fence: row.int(1)?,
        is_leased: row.opt_text(2)?.is_some(),
        user_id: row.text(3)?,
        ended_at: row.opt_int(4)?,
        cost: row.amount(5)?,
        key_id: row.text(6)?,
        callback_url: row.opt_text(7)?,
    }))
}

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

    fn changed(&self, _: &Ended, changes: &Changes) {
        changes.note(&self.0.task_id);
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
        let state = match end {
            End::Completed { .. } => TaskState::Completed,
            End::Failed { .. } => TaskState::Failed,
        };
        // 1. Only the holder of the lease may end it, and only once.
        let Some(task) = locked(batch, task_id).await? else {
            return Ok(Ended::Already);
        };
        if task.is_final() {
            // Nobody but the holder of this lease can have ended it so: it was this very write, tried before.
            let ours = batch.again && task.fence == *fence && task.ended(state, *now);
            return Ok(if ours {
                Ended::Done { cost: task.cost }
            } else {
                Ended::Already
            });
        }
        if task.fence != *fence || !task.is_leased {
            return Ok(Ended::LostLease);
        }
        // 2. The money: what was delivered is paid, the rest released.
        let payer = Payer { user_id, key_id };
        let delivered = match end {
            End::Completed { delivered, .. } => *delivered,
            End::Failed { .. } => Delivered::Units(0),
        };
        let cost = money::close_charge(batch, task_id, payer, delivered, *now).await?;
        // 3. The state and what there is to show.
        let (none, state) = (None::<&str>, state.number());
        match end {
            End::Completed { result, .. } => batch.run_one(
                &END_TASK,
                args![state, Some(100), *now, result, none, none, cost, task_id],
            )?,
            End::Failed { code, message } => batch.run_one(
                &END_TASK,
                args![state, None::<i64>, *now, none, code, message, cost, task_id],
            )?,
        }
        // 4. The attempt, and any that a lost lease left open.
        if let Some(attempt) = attempt {
            end_attempt(batch, task_id, attempt, *now)?;
        }
        end_open_attempts(batch, task_id, "interrupted", *now)?;
        // 5. Who wants to hear of it will.
        task.call_back(batch, task_id, *now)?;
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

    fn changed(&self, _: &Cancelled, changes: &Changes) {
        changes.note(&self.task_id);
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Cancelled, DbError> {
        let task = locked(batch, &self.task_id).await?;
        let Some(task) = task.filter(|task| task.user_id == self.user_id) else {
            return Ok(Cancelled::NotFound);
        };
        if task.is_final() {
            // Its user may have sent it twice; only a second try of this very write is told that it was done.
            let ours = batch.again && task.ended(TaskState::Cancelled, self.now);
            return Ok(if ours {
                Cancelled::Done
            } else {
                Cancelled::AlreadyFinal
            });
        }
        let payer = Payer {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        let cost =
            money::close_charge(batch, &self.task_id, payer, Delivered::Units(0), self.now).await?;
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
        batch.run_one(&END_TASK, args)?;
        end_open_attempts(batch, &self.task_id, "cancelled", self.now)?;
        task.call_back(batch, &self.task_id, self.now)?;
        Ok(Cancelled::Done)
    }
}
