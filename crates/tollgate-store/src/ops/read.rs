//! Reads: tasks, keys, users, totals.

use tollgate_core::{Amount, TaskKind, TaskState, money};

use crate::db::{DbError, Row, Sql};
use crate::model::{Key, KeyLimits, RateLimits, Task, Totals, User};

/// The columns that [`task`] reads, in its order.
macro_rules! task_columns {
    () => {
        "id, user_id, key_id, kind, family, model, state, progress, created_at, started_at, ended_at, deadline_at, \
         adjustments, result, error_code, error_message, cost, shown, callback_url"
    };
}
pub(crate) use task_columns;

/// How many they are.
pub(crate) const TASK_COLUMNS_COUNT: usize = 19;

/// The columns that [`key`] reads, in its order.
macro_rules! key_select {
    () => {
        "SELECT k.id, k.label, k.user_id, u.name, k.quota, k.held, k.used, k.rpm, k.tpm, k.max_concurrency, \
         k.models, k.bare_envelope, k.expires_at, k.revoked_at, u.disabled_at, u.unlimited, u.rpm, u.tpm, u.max_concurrency \
         FROM keys k JOIN users u ON u.id = k.user_id"
    };
}

/// The columns that [`user`] reads, in its order.
macro_rules! user_select {
    () => {
        "SELECT id, name, unlimited, balance, held, used, disabled_at, rpm, tpm, max_concurrency FROM users"
    };
}

pub(crate) const TASK: Sql = Sql::both(concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks WHERE id = $1"
));
pub(crate) const TASKS_OF_USER: Sql = Sql::both(concat!(
    "SELECT ",
    task_columns!(),
    " FROM tasks WHERE user_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
));
pub(crate) const KEY_BY_HASH: Sql = Sql::both(concat!(key_select!(), " WHERE k.hash = $1"));
pub(crate) const KEY_BY_ID: Sql = Sql::both(concat!(key_select!(), " WHERE k.id = $1"));
pub(crate) const KEYS: Sql = Sql::both(concat!(key_select!(), " ORDER BY k.created_at, k.id"));
pub(crate) const USER: Sql = Sql::both(concat!(user_select!(), " WHERE id = $1"));
pub(crate) const USER_BY_NAME: Sql = Sql::both(concat!(user_select!(), " WHERE name = $1"));
pub(crate) const USERS: Sql = Sql::both(concat!(user_select!(), " ORDER BY created_at, id"));
pub(crate) const ANY_USER: Sql = Sql::both("SELECT id FROM users LIMIT 1");
pub(crate) const ACCESS_VERSION: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'access_version'");
pub(crate) const RECEIPT: Sql = Sql::both(
    "SELECT fingerprint, receipt, created_at FROM idempotency WHERE user_id = $1 AND key = $2",
);
pub(crate) const UNFINISHED: Sql = Sql::both(
    "SELECT COUNT(CASE state WHEN 0 THEN 1 END), COUNT(CASE state WHEN 1 THEN 1 END), MIN(CASE state WHEN 0 THEN due_at END),
            (SELECT COUNT(*) FROM callbacks WHERE state = 'waiting')
     FROM tasks WHERE state < 2",
);
// Whole units and the rest apart: many balances together may be more than a number holds.
pub(crate) const SUMS: Sql = Sql::both(
    "SELECT CAST(COALESCE(SUM(balance / 1000000000), 0) AS BIGINT), CAST(COALESCE(SUM(balance % 1000000000), 0) AS BIGINT),
            CAST(COALESCE(SUM(held / 1000000000), 0) AS BIGINT), CAST(COALESCE(SUM(held % 1000000000), 0) AS BIGINT),
            CAST(COALESCE(SUM(used / 1000000000), 0) AS BIGINT), CAST(COALESCE(SUM(used % 1000000000), 0) AS BIGINT)
     FROM users",
);
pub(crate) const FAILED_CHANNELS: Sql = Sql::both(
    "SELECT channel FROM attempts WHERE task_id = $1 AND outcome = 'failed' ORDER BY number",
);
pub(crate) const NEXT_DUE: Sql = Sql::both("SELECT MIN(due_at) FROM tasks WHERE state < 2");

/// A task from `task_columns`.
pub(crate) fn task(row: &mut Row) -> Result<Task, DbError> {
    let kind = row.text(3)?;
    let error = row.opt_text(14)?;
    Ok(Task {
        id: row.text(0)?,
        user_id: row.text(1)?,
        key_id: row.text(2)?,
        kind: TaskKind::from_name(&kind)
            .ok_or_else(|| DbError::Shape(format!("unknown task kind {kind}")))?,
        family: row.text(4)?,
        model: row.text(5)?,
        state: TaskState::from_number(row.int(6)?)
            .ok_or_else(|| DbError::Shape("a task has an unknown state".to_owned()))?,
        progress: row.int(7)?,
        created_at: row.int(8)?,
        started_at: row.opt_int(9)?,
        ended_at: row.opt_int(10)?,
        deadline_at: row.int(11)?,
        adjustments: row.text(12)?,
        result: row.opt_text(13)?,
        error: match error {
            Some(code) => Some((code, row.opt_text(15)?.unwrap_or_default())),
            None => None,
        },
        cost: row.amount(16)?,
        shown: row.text(17)?,
        callback_url: row.opt_text(18)?,
    })
}

/// A key from `key_select`.
pub(crate) fn key(row: &mut Row) -> Result<Key, DbError> {
    let models = row.opt_text(10)?;
    Ok(Key {
        id: row.text(0)?,
        label: row.text(1)?,
        user_id: row.text(2)?,
        user: row.text(3)?,
        quota: row.opt_int(4)?.map(Amount::from_nanos),
        held: row.amount(5)?,
        used: row.amount(6)?,
        limits: KeyLimits {
            rates: rates(row, 7)?,
            models: models
                .map(|m| {
                    serde_json::from_str(&m)
                        .map_err(|e| DbError::Shape(format!("models of a key: {e}")))
                })
                .transpose()?,
            bare_envelope: row.int(11)? != 0,
            expires_at: row.opt_int(12)?,
        },
        revoked_at: row.opt_int(13)?,
        user_disabled_at: row.opt_int(14)?,
        user_unlimited: row.int(15)? != 0,
        user_rates: rates(row, 16)?,
    })
}

/// A user from `user_select`.
pub(crate) fn user(row: &mut Row) -> Result<User, DbError> {
    Ok(User {
        id: row.text(0)?,
        name: row.text(1)?,
        unlimited: row.int(2)? != 0,
        balance: row.amount(3)?,
        held: row.amount(4)?,
        used: row.amount(5)?,
        disabled_at: row.opt_int(6)?,
        rates: rates(row, 7)?,
    })
}

/// Rates from three columns that begin with `first`.
fn rates(row: &Row, first: usize) -> Result<RateLimits, DbError> {
    let limit = |column| {
        let limit = row.opt_int(column)?;
        Ok::<_, DbError>(limit.and_then(|n| u32::try_from(n).ok()))
    };
    Ok(RateLimits {
        rpm: limit(first)?,
        tpm: limit(first + 1)?,
        max_concurrency: limit(first + 2)?,
    })
}

/// Totals from the rows of [`UNFINISHED`] and [`SUMS`].
pub(crate) fn totals(unfinished: &Row, sums: &Row) -> Result<Totals, DbError> {
    let sum = |at: usize| -> Result<Amount, DbError> {
        let nanos = sums.int(at)?.saturating_mul(money::NANOS);
        Ok(Amount::from_nanos(nanos.saturating_add(sums.int(at + 1)?)))
    };
    Ok(Totals {
        submitted: unfinished.int(0)?,
        in_progress: unfinished.int(1)?,
        oldest_due_at: unfinished.opt_int(2)?,
        callbacks: unfinished.int(3)?,
        balance: sum(0)?,
        held: sum(2)?,
        used: sum(4)?,
    })
}
