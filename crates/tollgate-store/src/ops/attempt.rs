//! Attempts: begun before a provider is called, accepted into its queue, ended.
//!
//! An attempt of a provider that answers at once ends with its lease: who comes next begins another. One that a provider
//! has in its queue may be done there whatever happens here, so it stays open until somebody says how it ended;
//! `tasks.queued_attempt` has its number.

use std::collections::HashMap;

use async_trait::async_trait;
use tollgate_core::Millis;

use crate::batch::Batch;
use crate::db::{DbError, Row, Sql, args};
use crate::model::{Accepted, AttemptBegun, AttemptEnd, AttemptStart, OpenAttempt, Retry};
use crate::writer::Write;

/// The columns that [`open_attempt`] reads, in its order.
macro_rules! open_columns {
    () => {
        "number, channel, external_id, key_print, ticket, ticket_at, started_at, adjustments"
    };
}

/// How many they are.
const OPEN_COLUMNS_COUNT: usize = 8;

pub(super) const HELD: Sql = Sql::each(
    "SELECT queued_attempt FROM tasks WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND state = 1",
    "SELECT queued_attempt FROM tasks WHERE id = $1 AND fence = $2 AND owner IS NOT NULL AND state = 1 FOR UPDATE",
);
pub(super) const LAST_ATTEMPT: Sql = Sql::both(concat!(
    "SELECT ",
    open_columns!(),
    ", queued, fence, ended_at FROM attempts WHERE task_id = $1 ORDER BY number DESC LIMIT 1"
));
pub(crate) const LAST_QUEUED: Sql = Sql::both(concat!(
    "SELECT ",
    open_columns!(),
    " FROM attempts WHERE task_id = $1 AND queued = 1 ORDER BY number DESC LIMIT 1"
));
// The parameter is a JSON array of ids.
pub(super) const OPEN_ATTEMPTS: Sql = Sql::each(
    concat!(
        "SELECT ",
        open_columns!(),
        ", task_id FROM attempts WHERE task_id IN (SELECT value FROM json_each($1)) AND queued = 1 AND ended_at IS NULL"
    ),
    concat!(
        "SELECT ",
        open_columns!(),
        ", task_id FROM attempts
         WHERE task_id = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST($1 AS TEXT) AS json))))
           AND queued = 1 AND ended_at IS NULL"
    ),
);
const BEGIN_ATTEMPT: Sql = Sql::both(
    "INSERT INTO attempts (task_id, number, channel, fence, queued, external_id, key_print, started_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);
pub(super) const SET_QUEUED: Sql =
    Sql::both("UPDATE tasks SET queued_attempt = $1 WHERE id = $2 AND state = 1");
pub(super) const ACCEPTED: Sql = Sql::both(
    "UPDATE attempts SET ticket = $1, ticket_at = COALESCE(ticket_at, CAST($2 AS BIGINT)),
                         adjustments = COALESCE($3, adjustments)
     WHERE task_id = $4 AND number = $5 AND queued = 1 AND ended_at IS NULL",
);
pub(super) const END_ATTEMPT: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2, error = $3 WHERE task_id = $4 AND number = $5 AND ended_at IS NULL",
);
pub(super) const END_OPEN_ATTEMPTS: Sql = Sql::both(
    "UPDATE attempts SET ended_at = $1, outcome = $2 WHERE task_id = $3 AND ended_at IS NULL",
);
pub(super) const ENDED_ATTEMPT: Sql = Sql::both(
    "SELECT number FROM attempts WHERE task_id = $1 AND number = $2 AND ended_at = $3 AND outcome = $4",
);
pub(super) const TRY_AGAIN: Sql = Sql::both(
    "UPDATE tasks SET due_at = $1, owner = NULL, failed_attempts = failed_attempts + 1,
                      queued_attempt = NULLIF(queued_attempt, CAST($2 AS BIGINT))
     WHERE id = $3 AND fence = $4 AND owner IS NOT NULL AND state = 1",
);

/// Writes an attempt down before its provider is called.
pub(crate) struct BeginAttempt(pub(crate) AttemptStart);

#[async_trait(?Send)]
impl Write for BeginAttempt {
    type Out = AttemptBegun;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<AttemptBegun, DbError> {
        let start = &self.0;
        let lease = args![&start.task_id, start.fence];
        let Some(held) = batch.first(&HELD, lease).await? else {
            return Ok(AttemptBegun::LostLease);
        };
        let mut number = 1;
        if let Some(mut row) = batch.first(&LAST_ATTEMPT, args![&start.task_id]).await? {
            let last = Last::read(&mut row)?;
            number += last.attempt.number;
            if last.is_open {
                if last.is(start) {
                    return Ok(AttemptBegun::Begun(last.attempt.number));
                }
                let outcome = match start.abandon {
                    None if last.queued => return Ok(AttemptBegun::StillOpen),
                    Some(outcome) if last.queued => outcome,
                    _ => "interrupted",
                };
                end_open_attempts(batch, &start.task_id, outcome, start.now)?;
            }
        }
        let args = args![
            &start.task_id,
            number,
            &start.channel,
            start.fence,
            start.queued,
            start.external_id.as_ref(),
            start.key_print.as_ref(),
            start.now
        ];
        batch.run(&BEGIN_ATTEMPT, args)?;
        let queued = start.queued.then_some(number);
        if held.opt_int(0)? != queued {
            batch.run_one(&SET_QUEUED, args![queued, &start.task_id])?;
        }
        Ok(AttemptBegun::Begun(number))
    }
}

/// A task's last attempt.
struct Last {
    attempt: OpenAttempt,
    queued: bool,
    fence: i64,
    is_open: bool,
}

impl Last {
    /// From the row of [`LAST_ATTEMPT`].
    fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            attempt: open_attempt(row)?,
            queued: row.int(OPEN_COLUMNS_COUNT)? != 0,
            fence: row.int(OPEN_COLUMNS_COUNT + 1)?,
            is_open: row.opt_int(OPEN_COLUMNS_COUNT + 2)?.is_none(),
        })
    }

    /// Whether it is this very write, done before: under one lease nobody begins a second attempt beside the first.
    fn is(&self, start: &AttemptStart) -> bool {
        let Self { attempt, fence, .. } = self;
        *fence == start.fence
            && attempt.started_at == start.now
            && attempt.channel == start.channel
            && attempt.external_id == start.external_id
    }
}

/// Writes down that a provider has an attempt in its queue; answers false when the lease is lost or the attempt has ended.
pub(crate) struct AcceptAttempt(pub(crate) Accepted);

#[async_trait(?Send)]
impl Write for AcceptAttempt {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let Accepted {
            task_id,
            fence,
            number,
            ticket,
            adjustments,
            now,
        } = &self.0;
        if batch.first(&HELD, args![task_id, *fence]).await?.is_none() {
            return Ok(false);
        }
        let args = args![ticket, *now, adjustments.as_ref(), task_id, *number];
        Ok(batch.execute(&ACCEPTED, args).await? == 1)
    }
}

/// Ends a failed attempt and puts the task back; answers false when the lease is lost.
pub(crate) struct TryAgain(pub(crate) Retry);

#[async_trait(?Send)]
impl Write for TryAgain {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let Retry {
            task_id,
            fence,
            attempt,
            due_at,
            now,
        } = &self.0;
        let put_back = args![*due_at, attempt.number, task_id, *fence];
        if batch.execute(&TRY_AGAIN, put_back).await? == 1 {
            end_attempt(batch, task_id, attempt, *now)?;
            return Ok(true);
        }
        // Its attempt having ended so at this moment, it was this very write, tried before.
        let ended = args![task_id, attempt.number, *now, attempt.outcome];
        Ok(batch.again && batch.first(&ENDED_ATTEMPT, ended).await?.is_some())
    }
}

/// Writes down how an attempt ended.
pub(crate) fn end_attempt(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    attempt: &AttemptEnd,
    now: Millis,
) -> Result<(), DbError> {
    batch.run(
        &END_ATTEMPT,
        args![
            now,
            attempt.outcome,
            attempt.error.as_ref(),
            task_id,
            attempt.number
        ],
    )
}

/// Writes down the end of attempts that nobody else will: their worker lost its lease or the task ended.
pub(crate) fn end_open_attempts(
    batch: &mut Batch<'_, '_>,
    task_id: &str,
    outcome: &'static str,
    now: Millis,
) -> Result<(), DbError> {
    batch.run(&END_OPEN_ATTEMPTS, args![now, outcome, task_id])
}

/// What providers have in their queues of these tasks, by task.
pub(super) async fn open_of(
    batch: &mut Batch<'_, '_>,
    task_ids: &[String],
) -> Result<HashMap<String, OpenAttempt>, DbError> {
    let list = serde_json::json!(task_ids).to_string();
    let mut found = HashMap::with_capacity(task_ids.len());
    for mut row in batch.query(&OPEN_ATTEMPTS, args![&list]).await? {
        found.insert(row.text(OPEN_COLUMNS_COUNT)?, open_attempt(&mut row)?);
    }
    Ok(found)
}

/// An attempt from `open_columns`.
pub(crate) fn open_attempt(row: &mut Row) -> Result<OpenAttempt, DbError> {
    Ok(OpenAttempt {
        number: row.int(0)?,
        channel: row.text(1)?,
        external_id: row.opt_text(2)?,
        key_print: row.opt_text(3)?,
        ticket: row.opt_text(4)?,
        ticket_at: row.opt_int(5)?,
        started_at: row.int(6)?,
        adjustments: row.opt_text(7)?,
    })
}
