//! Checks the conditions of alerts. Each kind of alert is a query that returns the subjects for which it holds now.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::clock::{DAY, HOUR, SECOND};
use tollgate_core::{Amount, Millis, id, money};

use super::alert::{Alert, AlertKind};
use crate::admin::json::{amount_json, time_json};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::ledger::budgets::BudgetPeriod;
use crate::store::Store;
use crate::tasks::queue_table::QueueSql;
use crate::writer::Write;
use crate::writer::batch::Batch;

/// How long an alert holds after an audit with violations.
const AUDIT_WINDOW: Millis = DAY;
/// How long the alert for a receiver holds after a webhook was given up.
const GIVEN_UP_WINDOW: Millis = HOUR;
/// How long an open circuit counts after a node has recorded it.
const CIRCUIT_WINDOW: Millis = 30 * SECOND;
/// The maximum number of subjects of one alert that are checked, those with the smallest ids; budgets are all checked.
const MAX_SUBJECTS: i64 = 1000;

const LOW_BALANCE: Sql = Sql::both(
    "SELECT id, name, balance FROM users
     WHERE unlimited = 0 AND disabled_at IS NULL AND balance < $1 AND (balance <> 0 OR used <> 0 OR held <> 0) ORDER BY id LIMIT $2",
);
const DEBT: Sql = Sql::both(
    "SELECT id, name, balance FROM users WHERE unlimited = 0 AND balance < 0 ORDER BY id LIMIT $1",
);
const BUDGETS: Sql = Sql::both(
    "SELECT b.id, u.id, k.id, b.amount, b.period, b.spent, b.period_start FROM budgets b
     LEFT JOIN users u ON u.id = b.owner_id LEFT JOIN keys k ON k.id = b.owner_id
     WHERE b.amount > 0 AND b.spent > 0 ORDER BY b.id",
);
const OPEN_CIRCUITS: Sql = Sql::both(
    "SELECT channel, COUNT(*) FROM open_circuits WHERE seen_at > $1 GROUP BY channel ORDER BY channel LIMIT $2",
);
const OLDEST_WAITING: QueueSql = QueueSql {
    queue: Sql::both(
        "SELECT MIN(due_at), COUNT(*) FROM queue WHERE started_at IS NULL AND due_at < $1",
    ),
    tasks: Sql::both(
        "SELECT MIN(due_at), COUNT(*) FROM tasks WHERE state < 2 AND state = 0 AND due_at < $1",
    ),
};
const AUDITS: Sql = Sql::both(
    "SELECT id, violations FROM audits WHERE ended_at > $1 AND violations IS NOT NULL AND violations <> '[]' ORDER BY id LIMIT $2",
);
const GIVEN_UP: Sql = Sql::both(
    "SELECT receiver, COUNT(*), MAX(task_id) FROM callbacks WHERE state = 'given_up' AND ended_at > $1 GROUP BY receiver ORDER BY receiver LIMIT $2",
);
const STATES: Sql = Sql::both("SELECT subject FROM alert_states WHERE alert_id = $1");
const INSERT_STATE: Sql = Sql::both(
    "INSERT INTO alert_states (alert_id, subject, since) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
);
const DELETE_STATE: Sql =
    Sql::both("DELETE FROM alert_states WHERE alert_id = $1 AND subject = $2");
const ALERT_IS_ENABLED: Sql =
    Sql::both("SELECT 1 FROM alerts WHERE id = $1 AND version = $2 AND enabled = 1");
pub(super) const INSERT_DELIVERY: Sql = Sql::both(
    "INSERT INTO alert_deliveries (id, alert_id, at, body, due_at, attempts, state) VALUES ($1, $2, $3, $4, $3, 0, 'waiting')",
);
const NOTE_CIRCUIT: Sql = Sql::both(
    "INSERT INTO open_circuits (node, channel, seen_at) VALUES ($1, $2, $3)
     ON CONFLICT (node, channel) DO UPDATE SET seen_at = excluded.seen_at",
);
const FORGET_CIRCUITS: Sql =
    Sql::both("DELETE FROM open_circuits WHERE node = $1 AND seen_at < $2");

/// A subject for which an alert holds, and the data of its message.
type Subject = (String, Value);

/// Checking alerts.
impl Store {
    /// Records the channels whose circuits are open on a node.
    pub async fn note_open_circuits(
        &self,
        node: &str,
        channels: Vec<String>,
        now: Millis,
    ) -> Result<(), StoreError> {
        let node = node.to_owned();
        self.write(NoteCircuits {
            node,
            channels,
            now,
        })
        .await
    }

    /// Checks an alert: queues a message for each subject for which it did not hold before. Returns the number of messages.
    pub async fn check_alert(&self, alert: &Alert, now: Millis) -> Result<usize, StoreError> {
        let active = self.alert_subjects(alert, now).await?;
        self.write(Fire {
            alert: alert.clone(),
            active,
            now,
        })
        .await
    }

    /// The subjects for which the alert holds.
    async fn alert_subjects(&self, alert: &Alert, now: Millis) -> Result<Vec<Subject>, StoreError> {
        let threshold = alert.threshold.unwrap_or_default();
        let rows = match alert.kind {
            AlertKind::LowBalance => {
                let args = args![threshold, MAX_SUBJECTS];
                self.query_slow(&LOW_BALANCE, args).await
            }
            AlertKind::Debt => self.query_slow(&DEBT, args![MAX_SUBJECTS]).await,
            AlertKind::Budget => self.query_slow(&BUDGETS, &[]).await,
            AlertKind::CircuitOpen => {
                let args = args![now - CIRCUIT_WINDOW, MAX_SUBJECTS];
                self.query_slow(&OPEN_CIRCUITS, args).await
            }
            AlertKind::QueueAge => {
                // The threshold is in seconds; the amount contains billionths of them.
                let seconds = threshold.nanos() / money::NANOS;
                let args = args![now - seconds.saturating_mul(SECOND)];
                let oldest = OLDEST_WAITING.on(self.queue_table().await?);
                self.query_slow(oldest, args).await
            }
            AlertKind::AuditViolation => {
                let args = args![now - AUDIT_WINDOW, MAX_SUBJECTS];
                self.query_slow(&AUDITS, args).await
            }
            AlertKind::WebhookGivenUp => {
                let args = args![now - GIVEN_UP_WINDOW, MAX_SUBJECTS];
                self.query_slow(&GIVEN_UP, args).await
            }
        };
        let mut rows = rows?;
        let subjects = rows.iter_mut().map(|row| read_subject(alert, row, now));
        let subjects: Result<Vec<_>, DbError> = subjects.collect();
        Ok(subjects?.into_iter().flatten().collect())
    }
}

/// The subject of a row, if the alert holds for it.
fn read_subject(alert: &Alert, row: &mut Row, now: Millis) -> Result<Option<Subject>, DbError> {
    let threshold = alert.threshold.unwrap_or_default();
    let subject = match alert.kind {
        AlertKind::LowBalance => {
            let user_id = row.text(0)?;
            let data = json!({
                "user_id": user_id,
                "name": row.text(1)?,
                "balance": amount_json(row.amount(2)?),
                "threshold": amount_json(threshold),
            });
            (user_id, data)
        }
        AlertKind::Debt => {
            let user_id = row.text(0)?;
            let debt = amount_json(-row.amount(2)?);
            let data = json!({ "user_id": user_id, "name": row.text(1)?, "debt": debt });
            (user_id, data)
        }
        AlertKind::Budget => return read_budget(threshold, row, now),
        AlertKind::CircuitOpen => {
            let channel = row.text(0)?;
            let data = json!({ "channel": channel, "nodes": row.int(1)? });
            (channel, data)
        }
        AlertKind::QueueAge => {
            let Some(oldest) = row.opt_int(0)? else {
                return Ok(None);
            };
            let data = json!({ "age_s": (now - oldest) / SECOND, "waiting": row.int(1)? });
            ("queue".to_owned(), data)
        }
        AlertKind::AuditViolation => {
            let violations: Value = serde_json::from_str(&row.text(1)?).unwrap_or_default();
            let count = violations.as_array().map_or(0, Vec::len);
            let audit_id = row.text(0)?;
            let data = json!({ "audit_id": audit_id, "violations": count });
            (audit_id, data)
        }
        AlertKind::WebhookGivenUp => {
            let receiver = row.text(0)?;
            let data =
                json!({ "receiver": receiver, "webhooks": row.int(1)?, "task_id": row.text(2)? });
            (receiver, data)
        }
    };
    Ok(Some(subject))
}

/// Returns a budget of which at least `part` was spent in the current period.
fn read_budget(part: Amount, row: &mut Row, now: Millis) -> Result<Option<Subject>, DbError> {
    let period = row.text(4)?;
    let period = BudgetPeriod::from_name(&period)
        .ok_or_else(|| DbError::UnexpectedData(format!("period {period:?} of a budget")))?;
    let (amount, spent, start) = (row.amount(3)?, row.amount(5)?, row.int(6)?);
    let limit = i128::from(amount.nanos()) * i128::from(part.nanos());
    let is_spent = i128::from(spent.nanos()) * i128::from(money::NANOS) >= limit;
    if period.start(now) != start || !is_spent {
        return Ok(None);
    }
    let budget_id = row.text(0)?;
    let data = json!({
        "budget_id": budget_id,
        "user_id": row.opt_text(1)?,
        "key_id": row.opt_text(2)?,
        "amount": amount_json(amount),
        "period": period.name(),
        "spent": amount_json(spent),
        "resets_at": time_json(period.end(now)),
    });
    // The subject contains the period, so that the alert fires again in the next one.
    Ok(Some((format!("{budget_id}@{start}"), data)))
}

struct NoteCircuits {
    node: String,
    channels: Vec<String>,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for NoteCircuits {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        for channel in &self.channels {
            batch.queue(&NOTE_CIRCUIT, args![&self.node, channel, self.now])?;
        }
        batch.queue(&FORGET_CIRCUITS, args![&self.node, self.now])
    }
}

struct Fire {
    alert: Alert,
    active: Vec<Subject>,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for Fire {
    type Out = usize;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<usize, DbError> {
        let (alert, now) = (&self.alert, self.now);
        let is_current = args![&alert.id, alert.version];
        if batch.first(&ALERT_IS_ENABLED, is_current).await?.is_none() {
            return Ok(0);
        }
        for mut row in batch.query(&STATES, args![&alert.id]).await? {
            let subject = row.text(0)?;
            if !self.active.iter().any(|(active, _)| *active == subject) {
                batch.queue(&DELETE_STATE, args![&alert.id, &subject])?;
            }
        }
        let mut fired = 0;
        for (subject, data) in &self.active {
            let args = args![&alert.id, subject, now];
            if batch.execute(&INSERT_STATE, args).await? == 0 {
                continue;
            }
            fired += 1;
            let body = message(alert, data, false, now);
            let message_id = id::short_id("msg_");
            let args = args![&message_id, &alert.id, now, &body];
            batch.queue(&INSERT_DELIVERY, args)?;
        }
        Ok(fired)
    }
}

/// The body of a message.
pub(super) fn message(alert: &Alert, data: &Value, is_test: bool, now: Millis) -> String {
    let message = json!({
        "type": alert.kind.name(),
        "at": time_json(now),
        "alert_id": alert.id,
        "test": is_test,
        "data": data,
    });
    message.to_string()
}
