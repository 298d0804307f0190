//! Callbacks: put out with a task's end, claimed, tried, delivered or given up; and the secrets that sign them.
//!
//! A callback that somebody tries is not due before its lease ends, as with tasks. Each claim gives it the next number,
//! and only the try with the newest decides when it comes again or that it is given up. That it arrived, any may say.

use async_trait::async_trait;
use tollgate_core::{Millis, Secret};

use crate::batch::Batch;
use crate::db::{DbError, Row, Sql, args};
use crate::model::{
    CallbackLog, CallbackNext, CallbackState, CallbackTried, CallbackTry, DueCallback,
};
use crate::writer::Write;

const PUT_OUT: Sql = Sql::both(
    "INSERT INTO callbacks (task_id, key_id, url, state, due_at, attempts, first_at)
     VALUES ($1, $2, $3, 'waiting', $4, 0, $4)",
);
pub(super) const DUE_CALLBACKS: Sql = Sql::each(
    "SELECT task_id, key_id, url, attempts, first_at FROM callbacks
     WHERE state = 'waiting' AND due_at <= $1 ORDER BY due_at LIMIT $2",
    "SELECT task_id, key_id, url, attempts, first_at FROM callbacks
     WHERE state = 'waiting' AND due_at <= $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED",
);
pub(super) const LEASE_CALLBACK: Sql = Sql::both(
    "UPDATE callbacks SET owner = $1, due_at = $2, attempts = $3 WHERE task_id = $4 AND state = 'waiting'",
);
// It was not tried, so its try does not count.
pub(super) const PUT_BACK: Sql = Sql::both(
    "UPDATE callbacks SET owner = NULL, due_at = $1, attempts = attempts - 1
     WHERE task_id = $2 AND owner = $3 AND state = 'waiting'",
);
pub(super) const HAND_BACK_CALLBACKS: Sql = Sql::both(
    "UPDATE callbacks SET owner = NULL, due_at = $1 WHERE state = 'waiting' AND owner IS NOT NULL",
);
pub(super) const LOCK_CALLBACK: Sql = Sql::each(
    "SELECT attempts FROM callbacks WHERE task_id = $1",
    "SELECT attempts FROM callbacks WHERE task_id = $1 FOR UPDATE",
);
const WRITE_TRY: Sql = Sql::both(
    "INSERT INTO callback_tries (task_id, number, at, took_ms, status, error) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (task_id, number) DO NOTHING",
);
pub(super) const DELIVERED: Sql = Sql::both(
    "UPDATE callbacks SET state = 'delivered', owner = NULL, ended_at = $1 WHERE task_id = $2 AND state <> 'delivered'",
);
pub(super) const TRY_LATER: Sql = Sql::both(
    "UPDATE callbacks SET owner = NULL, due_at = $1 WHERE task_id = $2 AND attempts = $3 AND state = 'waiting'",
);
pub(super) const GIVE_UP: Sql = Sql::both(
    "UPDATE callbacks SET state = 'given_up', owner = NULL, ended_at = $1
     WHERE task_id = $2 AND attempts = $3 AND state = 'waiting'",
);
pub(crate) const NEXT_CALLBACK_DUE: Sql =
    Sql::both("SELECT MIN(due_at) FROM callbacks WHERE state = 'waiting'");
pub(crate) const CALLBACK_LOG: Sql = Sql::both(
    "SELECT c.url, c.state, c.due_at, t.number, t.at, t.took_ms, t.status, t.error
     FROM callbacks c LEFT JOIN callback_tries t ON t.task_id = c.task_id WHERE c.task_id = $1 ORDER BY t.number",
);
pub(crate) const WEBHOOK_SECRET: Sql =
    Sql::both("SELECT secret FROM webhook_secrets WHERE key_id = $1");
const KEEP_SECRET: Sql = Sql::both(
    "INSERT INTO webhook_secrets (key_id, secret, created_at) VALUES ($1, $2, $3) ON CONFLICT (key_id) DO NOTHING",
);

/// Puts a callback out, in the transaction that ends its task.
pub(super) fn put_out(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    key_id: &str,
    url: &str,
    now: Millis,
) -> Result<(), DbError> {
    batch.run_one(&PUT_OUT, args![task_id, key_id, url, now])
}

/// Leases up to `limit` due callbacks to `owner` until `until`. A claim that was committed without our hearing of it has
/// nobody at work on its callbacks; they are due again then.
pub(crate) struct ClaimCallbacks {
    pub(crate) owner: String,
    pub(crate) limit: i64,
    pub(crate) until: Millis,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for ClaimCallbacks {
    type Out = Vec<DueCallback>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<DueCallback>, DbError> {
        let due = args![self.now, self.limit];
        let mut claimed = Vec::new();
        for mut row in batch.query(&DUE_CALLBACKS, due).await? {
            let callback = DueCallback {
                task_id: row.text(0)?,
                key_id: row.text(1)?,
                url: row.text(2)?,
                tries: row.int(3)?,
                first_at: row.int(4)?,
            };
            let number = callback.tries + 1;
            let args = args![&self.owner, self.until, number, &callback.task_id];
            batch.run_one(&LEASE_CALLBACK, args)?;
            claimed.push(callback);
        }
        Ok(claimed)
    }
}

/// Puts callbacks back until `due_at` that `owner` has claimed and not tried.
pub(crate) struct PutBackCallbacks {
    pub(crate) owner: String,
    pub(crate) task_ids: Vec<String>,
    pub(crate) due_at: Millis,
}

#[async_trait(?Send)]
impl Write for PutBackCallbacks {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        for task_id in &self.task_ids {
            batch.run(&PUT_BACK, args![self.due_at, task_id, &self.owner])?;
        }
        Ok(())
    }
}

/// Writes a try down and what comes after it.
pub(crate) struct WriteTried(pub(crate) CallbackTried);

#[async_trait(?Send)]
impl Write for WriteTried {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let CallbackTried {
            task_id,
            number,
            at,
            took_ms,
            status,
            error,
            next,
        } = &self.0;
        // Forgotten with its task meanwhile, it leaves nothing behind.
        if batch.first(&LOCK_CALLBACK, args![task_id]).await?.is_none() {
            return Ok(());
        }
        let status = status.map(i64::from);
        let row = args![task_id, *number, *at, *took_ms, status, error.as_ref()];
        batch.run(&WRITE_TRY, row)?;
        let ended_at = at.saturating_add(*took_ms);
        match next {
            CallbackNext::Delivered => batch.run(&DELIVERED, args![ended_at, task_id]),
            CallbackNext::Again(due_at) => batch.run(&TRY_LATER, args![*due_at, task_id, *number]),
            CallbackNext::GivenUp => batch.run(&GIVE_UP, args![ended_at, task_id, *number]),
        }
    }
}

/// Keeps a secret for a key unless it has one; answers the one it has.
pub(crate) struct KeepSecret {
    pub(crate) key_id: String,
    pub(crate) secret: Secret,
    pub(crate) now: Millis,
}

#[async_trait(?Send)]
impl Write for KeepSecret {
    type Out = Secret;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Secret, DbError> {
        let args = args![&self.key_id, self.secret.expose(), self.now];
        batch.run(&KEEP_SECRET, args)?;
        let row = batch.first(&WEBHOOK_SECRET, args![&self.key_id]).await?;
        let mut row = row.ok_or_else(|| DbError::Shape("a secret was not kept".to_owned()))?;
        secret(&mut row)
    }
}

/// A secret from [`WEBHOOK_SECRET`].
pub(crate) fn secret(row: &mut Row) -> Result<Secret, DbError> {
    row.text(0).map(Secret::new)
}

/// A log from the rows of [`CALLBACK_LOG`]: the callback in each of them, and a try or nothing.
pub(crate) fn log(rows: &mut [Row]) -> Result<Option<CallbackLog>, DbError> {
    let Some(first) = rows.first_mut() else {
        return Ok(None);
    };
    let name = first.text(1)?;
    let state = CallbackState::from_name(&name)
        .ok_or_else(|| DbError::Shape(format!("unknown state of a callback {name}")))?;
    let due_at = first.int(2)?;
    let mut log = CallbackLog {
        url: first.text(0)?,
        state,
        next_at: (state == CallbackState::Waiting).then_some(due_at),
        tries: Vec::with_capacity(rows.len()),
    };
    for row in rows {
        if let Some(number) = row.opt_int(3)? {
            let status = row.opt_int(6)?;
            log.tries.push(CallbackTry {
                number,
                at: row.int(4)?,
                took_ms: row.int(5)?,
                status: status.and_then(|status| u16::try_from(status).ok()),
                error: row.opt_text(7)?,
            });
        }
    }
    Ok(Some(log))
}

/// The names that the statements above have.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_know_the_states() {
        for state in CallbackState::ALL {
            let name = format!("'{}'", state.name());
            assert!(
                [&DELIVERED, &GIVE_UP, &PUT_OUT]
                    .iter()
                    .any(|sql| sql.sqlite.contains(&name))
            );
            assert_eq!(CallbackState::from_name(state.name()), Some(state));
        }
    }
}
