//! The messages of alerts: the caller claims them, posts them and records the attempts.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::clock::{DAY, MINUTE, SECOND};
use tollgate_core::{Millis, Secret};

use super::alert::Alert;
use super::check::{INSERT_DELIVERY, message};
use crate::admin::json::time_json;
use crate::admin::pages::{PageStart, page_args};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// Pauses between attempts; after the last attempt the message is given up.
const BACKOFF: [Millis; 6] = [
    5 * SECOND,
    30 * SECOND,
    2 * MINUTE,
    10 * MINUTE,
    30 * MINUTE,
    60 * MINUTE,
];
/// How long a claimed message is leased, so that other nodes do not post it: longer than a POST can take.
const LEASE: Millis = MINUTE;
/// How long messages are kept for the list.
const KEPT_FOR: Millis = 30 * DAY;
/// Messages that one claim leases at most.
const MAX_CLAIMED: i64 = 100;

const DUE: Sql = Sql::both(
    "SELECT d.id, d.body, d.attempts, a.url, a.secret FROM alert_deliveries d JOIN alerts a ON a.id = d.alert_id
     WHERE d.due_at <= $1 ORDER BY d.due_at LIMIT $2",
);
pub(crate) const IS_DUE: Sql =
    Sql::both("SELECT id FROM alert_deliveries WHERE due_at IS NOT NULL AND due_at <= $1 LIMIT 1");
const LEASE_DELIVERY: Sql =
    Sql::both("UPDATE alert_deliveries SET due_at = $1 WHERE id = $2 AND due_at <= $3");
const RECORD: Sql = Sql::both(
    "UPDATE alert_deliveries SET attempts = $1, due_at = $2, state = $3, status = $4, error = $5, ms = $6 WHERE id = $7 AND attempts < $1",
);
const LIST: Sql = Sql::both(
    "SELECT id, at, state, attempts, status, ms, error, due_at FROM alert_deliveries
     WHERE alert_id = $1 AND (at, id) < ($2, $3) ORDER BY at DESC, id DESC LIMIT $4",
);
const DELETE_OLD: Sql = Sql::both("DELETE FROM alert_deliveries WHERE at <= $1");

/// A message to post now.
#[derive(Debug, Clone)]
pub struct DueAlert {
    /// `msg_` and 16 random characters: the same for every attempt.
    pub id: String,
    /// The body, as JSON.
    pub body: String,
    /// The URL that it is posted to.
    pub url: String,
    /// The secret that signs it.
    pub secret: Secret,
    /// Attempts before this one.
    pub attempts: i64,
}

/// The result of an attempt.
#[derive(Debug, Clone)]
pub struct AlertAttempt {
    /// The message.
    pub id: String,
    /// The number of the attempt, from 1.
    pub number: i64,
    /// The status of the receiver's response; `None` if there was none.
    pub status: Option<u16>,
    /// Why there was no response.
    pub error: Option<String>,
    /// How long it took, in milliseconds.
    pub ms: i64,
    /// When it ended.
    pub at: Millis,
}

impl AlertAttempt {
    fn is_delivered(&self) -> bool {
        matches!(self.status, Some(200..=299))
    }
}

/// A message in the list of an alert.
#[derive(Debug, Clone)]
pub struct AlertDelivery {
    /// Its id.
    pub id: String,
    /// When the alert began to hold.
    pub at: Millis,
    value: Value,
}

impl AlertDelivery {
    /// The message as a JSON object of the admin API.
    pub fn into_json(self) -> Value {
        self.value
    }

    fn read(row: &mut Row) -> Result<Self, DbError> {
        let (id, at) = (row.text(0)?, row.int(1)?);
        let value = json!({
            "id": id,
            "at": time_json(at),
            "state": row.text(2)?,
            "attempts": row.int(3)?,
            "status": row.opt_int(4)?,
            "ms": row.opt_int(5)?,
            "error": row.opt_text(6)?,
            "next_at": row.opt_int(7)?.map(time_json),
        });
        Ok(Self { id, at, value })
    }
}

/// Messages of alerts.
impl Store {
    /// Claims messages that are due, for a minute.
    pub async fn claim_alerts(&self, now: Millis) -> Result<Vec<DueAlert>, StoreError> {
        if self.query(&IS_DUE, args![now]).await?.is_empty() {
            return Ok(Vec::new());
        }
        self.write(Claim { now }).await
    }

    /// Records an attempt: the message is delivered, will be retried later, or is given up after the seventh.
    pub async fn record_alert_attempt(&self, attempt: AlertAttempt) -> Result<(), StoreError> {
        self.write(attempt).await
    }

    /// The body of a test message of an alert.
    pub fn alert_test_message(alert: &Alert, now: Millis) -> String {
        message(alert, &json!({}), true, now)
    }

    /// Adds a test message that was posted to the list; it is not retried.
    pub async fn record_alert_test(
        &self,
        alert_id: &str,
        attempt: AlertAttempt,
        body: String,
    ) -> Result<(), StoreError> {
        let alert_id = alert_id.to_owned();
        self.write(RecordTest {
            alert_id,
            attempt,
            body,
        })
        .await
    }

    /// The messages of an alert, newest first.
    pub async fn list_alert_deliveries(
        &self,
        alert_id: &str,
        after: Option<&PageStart>,
        limit: usize,
    ) -> Result<Vec<AlertDelivery>, StoreError> {
        let (at, id) = page_args(after);
        let args = args![alert_id, at, id, limit as i64];
        let mut rows = self.query_slow(&LIST, args).await?;
        let rows = rows.iter_mut().map(AlertDelivery::read);
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

struct Claim {
    now: Millis,
}

#[async_trait(?Send)]
impl Write for Claim {
    type Out = Vec<DueAlert>;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Vec<DueAlert>, DbError> {
        let mut claimed = Vec::new();
        for mut row in batch.query(&DUE, args![self.now, MAX_CLAIMED]).await? {
            let due = DueAlert {
                id: row.text(0)?,
                body: row.text(1)?,
                attempts: row.int(2)?,
                url: row.text(3)?,
                secret: Secret::new(row.text(4)?),
            };
            // Another node may have claimed it in between.
            let args = args![self.now + LEASE, &due.id, self.now];
            if batch.execute(&LEASE_DELIVERY, args).await? == 1 {
                claimed.push(due);
            }
        }
        Ok(claimed)
    }
}

#[async_trait(?Send)]
impl Write for AlertAttempt {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let pause = usize::try_from(self.number - 1).ok();
        let pause = pause.and_then(|number| BACKOFF.get(number));
        let (state, due_at) = match pause {
            _ if self.is_delivered() => ("delivered", None),
            Some(pause) => ("waiting", Some(self.at + pause)),
            None => ("given_up", None),
        };
        let args = args![
            self.number,
            due_at,
            state,
            self.status.map(i64::from),
            self.error.as_ref(),
            self.ms,
            &self.id
        ];
        batch.queue(&RECORD, args)
    }
}

struct RecordTest {
    alert_id: String,
    attempt: AlertAttempt,
    body: String,
}

#[async_trait(?Send)]
impl Write for RecordTest {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let attempt = &self.attempt;
        let args = args![&attempt.id, &self.alert_id, attempt.at, &self.body];
        batch.queue(&INSERT_DELIVERY, args)?;
        let state = match attempt.is_delivered() {
            true => "delivered",
            false => "given_up",
        };
        let args = args![
            1,
            None::<i64>,
            state,
            attempt.status.map(i64::from),
            attempt.error.as_ref(),
            attempt.ms,
            &attempt.id
        ];
        batch.queue(&RECORD, args)
    }
}

/// Deletes old messages.
pub(crate) async fn purge(batch: &mut Batch<'_, '_>, now: Millis) -> Result<(), DbError> {
    batch
        .execute(&DELETE_OLD, args![now - KEPT_FOR])
        .await
        .map(drop)
}
