//! Totals over all tasks, webhooks and users, for metrics and the health check.

use tollgate_core::{Amount, Millis, money};

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::tasks::queue_table::QueueSql;

pub(crate) const UNFINISHED: QueueSql = QueueSql {
    queue: Sql::both(
        "SELECT COUNT(CASE WHEN started_at IS NULL THEN 1 END), COUNT(started_at), MIN(CASE WHEN started_at IS NULL THEN due_at END),
                (SELECT COUNT(*) FROM callbacks WHERE state = 'waiting')
         FROM queue",
    ),
    tasks: Sql::both(
        "SELECT COUNT(CASE state WHEN 0 THEN 1 END), COUNT(CASE state WHEN 1 THEN 1 END), MIN(CASE state WHEN 0 THEN due_at END),
                (SELECT COUNT(*) FROM callbacks WHERE state = 'waiting')
         FROM tasks WHERE state < 2",
    ),
};
// Only unfinished rows are counted, and only up to the limit.
pub(crate) const UNFINISHED_OF_USER: QueueSql = QueueSql {
    queue: Sql::both(
        "SELECT COUNT(*) FROM (SELECT 1 FROM queue WHERE due_at IS NOT NULL AND user_id = $1
                               UNION ALL SELECT 1 FROM queue WHERE due_at IS NULL AND user_id = $1 LIMIT $2) AS counted",
    ),
    tasks: Sql::both(
        "SELECT COUNT(*) FROM (SELECT 1 FROM tasks WHERE state < 2 AND user_id = $1 LIMIT $2) AS counted",
    ),
};
pub(crate) const WAITING_WEBHOOKS_OF_USER: Sql = Sql::both(
    "SELECT COUNT(*) FROM (SELECT 1 FROM callbacks WHERE state = 'waiting' AND user_id = $1 LIMIT $2) AS counted",
);
// Units and billionths are summed separately: the sum of many balances in billionths may exceed 64 bits.
const SUMS: Sql = Sql::both(
    "SELECT CAST(COALESCE(SUM(balance / 1000000000), 0) AS BIGINT), CAST(COALESCE(SUM(balance % 1000000000), 0) AS BIGINT),
            CAST(COALESCE(SUM(held / 1000000000), 0) AS BIGINT),
            CAST(COALESCE(SUM(held % 1000000000), 0) - COALESCE((SELECT SUM(amount) FROM grants), 0) AS BIGINT),
            CAST(COALESCE(SUM(used / 1000000000), 0) AS BIGINT), CAST(COALESCE(SUM(used % 1000000000), 0) AS BIGINT),
            CAST(COALESCE(SUM(CASE WHEN unlimited = 0 AND balance < 0 THEN -balance / 1000000000 END), 0) AS BIGINT),
            CAST(COALESCE(SUM(CASE WHEN unlimited = 0 AND balance < 0 THEN -balance % 1000000000 END), 0) AS BIGINT)
     FROM users",
);

/// Totals for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreTotals {
    /// Tasks that wait for their first lease.
    pub submitted: i64,
    /// Tasks in progress.
    pub in_progress: i64,
    /// When the oldest waiting task became due. `None` if none waits for its first lease.
    pub oldest_due_at: Option<Millis>,
    /// Webhooks that are still to be delivered.
    pub pending_webhooks: i64,
    /// The balances of all users, saturating.
    pub balance: Amount,
    /// The held amounts of all users, without the grants of nodes; saturating.
    pub held: Amount,
    /// The settled charges of all users less refunds, saturating.
    pub used: Amount,
    /// The debts of limited users with a negative balance, saturating.
    pub debt: Amount,
}

/// Totals.
impl Store {
    /// How many unfinished tasks a user has, counted up to `max`.
    pub async fn unfinished_tasks(&self, user_id: &str, max: u32) -> Result<u32, StoreError> {
        let args = args![user_id, i64::from(max)];
        let rows = self.query_queue(&UNFINISHED_OF_USER, args).await?;
        read_count(&rows, max)
    }

    /// How many webhooks of a user's tasks wait to be delivered, counted up to `max`.
    pub async fn waiting_webhooks(&self, user_id: &str, max: u32) -> Result<u32, StoreError> {
        let args = args![user_id, i64::from(max)];
        let rows = self.query(&WAITING_WEBHOOKS_OF_USER, args).await?;
        read_count(&rows, max)
    }

    /// The totals; an error if the database does not respond.
    pub async fn totals(&self) -> Result<StoreTotals, StoreError> {
        let unfinished = UNFINISHED.on(self.queue_table().await?);
        let unfinished = self.query_slow(unfinished, &[]).await?;
        let sums = self.query_slow(&SUMS, &[]).await?;
        match (&unfinished[..], &sums[..]) {
            ([unfinished], [sums]) => Ok(read_totals(unfinished, sums)?),
            _ => Err(StoreError::Broken("totals: no row".to_owned())),
        }
    }
}

/// The number in a row, at most `max`.
fn read_count(rows: &[Row], max: u32) -> Result<u32, StoreError> {
    let count = rows.first().map_or(Ok(0), |row| row.int(0))?;
    Ok(u32::try_from(count).unwrap_or(max))
}

/// Computes the totals from the rows of [`UNFINISHED`] and [`SUMS`].
fn read_totals(unfinished: &Row, sums: &Row) -> Result<StoreTotals, DbError> {
    let sum = |at: usize| -> Result<Amount, DbError> {
        let nanos = sums.int(at)?.saturating_mul(money::NANOS);
        Ok(Amount::from_nanos(nanos.saturating_add(sums.int(at + 1)?)))
    };
    Ok(StoreTotals {
        submitted: unfinished.int(0)?,
        in_progress: unfinished.int(1)?,
        oldest_due_at: unfinished.opt_int(2)?,
        pending_webhooks: unfinished.int(3)?,
        balance: sum(0)?,
        held: sum(2)?,
        used: sum(4)?,
        debt: sum(6)?,
    })
}
