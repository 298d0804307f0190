//! The roll-up: adds what is pending to the hours and the days.

use async_trait::async_trait;

use crate::db::{DbError, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

pub(crate) const IS_PENDING: Sql = Sql::both("SELECT hour FROM usage_pending LIMIT 1");

/// Adds the rows of a table to the sums of their hours or days.
macro_rules! add_to_sums {
    ($table:literal $period:literal $start:literal $from:literal) => {
        concat!(
            "INSERT INTO ", $table, " (", $period, ", model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
             SELECT ", $start, ", model, user_id, key_id, channel, CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT),
                    CAST(SUM(tokens) AS BIGINT), CAST(SUM(images) AS BIGINT), CAST(SUM(seconds) AS BIGINT),
                    CAST(SUM(failed) AS BIGINT)
             FROM ", $from, " WHERE true GROUP BY ", $start, ", model, user_id, key_id, channel
             ON CONFLICT (", $period, ", model, user_id, key_id, channel) DO UPDATE SET
                cost = ", $table, ".cost + excluded.cost, requests = ", $table, ".requests + excluded.requests,
                tokens = ", $table, ".tokens + excluded.tokens, images = ", $table, ".images + excluded.images,
                seconds = ", $table, ".seconds + excluded.seconds, failed = ", $table, ".failed + excluded.failed"
        )
    };
}
/// SQLite has one writer, so all statements see the same rows. PostgreSQL may commit rows between two statements, so there it is one.
const ADD_TO_HOURS_SQLITE: Sql =
    Sql::both(add_to_sums!("usage_hourly" "hour" "hour" "usage_pending"));
const ADD_TO_DAYS_SQLITE: Sql =
    Sql::both(add_to_sums!("usage_daily" "day" "hour - hour % 86400000" "usage_pending"));
const CLEAR_SQLITE: Sql = Sql::both("DELETE FROM usage_pending");
const ROLL_UP_POSTGRES: Sql = Sql::both(concat!(
    "WITH taken AS (DELETE FROM usage_pending RETURNING *), days AS (",
    add_to_sums!("usage_daily" "day" "hour - hour % 86400000" "taken"),
    ") ",
    add_to_sums!("usage_hourly" "hour" "hour" "taken")
));
/// Until the end of the transaction.
const TRY_LOCK_POSTGRES: Sql = Sql::both(
    "SELECT CAST(CASE WHEN pg_try_advisory_xact_lock(7053117) THEN 1 ELSE 0 END AS BIGINT)",
);

/// Rolling up.
impl Store {
    /// Adds what is pending to the hours and days. Several processes may call it at the same time: one of them does it, the others nothing.
    pub async fn roll_up_usage(&self) -> Result<(), StoreError> {
        if self.query(&IS_PENDING, args![]).await?.is_empty() {
            return Ok(());
        }
        let is_shared = self.is_shared();
        self.write(RollUp { is_shared }).await
    }
}

struct RollUp {
    is_shared: bool,
}

#[async_trait(?Send)]
impl Write for RollUp {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        if !self.is_shared {
            batch.execute(&ADD_TO_HOURS_SQLITE, args![]).await?;
            batch.execute(&ADD_TO_DAYS_SQLITE, args![]).await?;
            batch.execute(&CLEAR_SQLITE, args![]).await?;
            return Ok(());
        }
        let lock = batch.first(&TRY_LOCK_POSTGRES, args![]).await?;
        if lock.map(|row| row.int(0)).transpose()? == Some(1) {
            batch.execute(&ROLL_UP_POSTGRES, args![]).await?;
        }
        Ok(())
    }
}
