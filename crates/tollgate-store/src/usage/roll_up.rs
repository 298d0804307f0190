//! The roll-up: adds pending usage to the hours, the days and the totals of each dimension. Also repairs days and totals to which an older program
//! did not add: a program before schema 19 or 27 that still runs while nodes are upgraded one by one.

use async_trait::async_trait;
use tollgate_core::Millis;
use tollgate_core::clock::DAY;

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
/// The sums of a table's rows by hour and day for each dimension.
macro_rules! totals_of {
    ($from:literal) => {
        concat!(
            "SELECT p.period_ms, d.dimension, hour - hour % p.period_ms AS begins_at,
                    CASE d.dimension WHEN 'model' THEN model WHEN 'user' THEN user_id WHEN 'key' THEN key_id WHEN 'channel' THEN channel
                                     ELSE '' END AS name,
                    CAST(SUM(cost) AS BIGINT) AS cost, CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(tokens) AS BIGINT) AS tokens,
                    CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds, CAST(SUM(failed) AS BIGINT) AS failed
             FROM ", $from, "
             CROSS JOIN (SELECT 'all' AS dimension UNION ALL SELECT 'model' UNION ALL SELECT 'user' UNION ALL SELECT 'key'
                         UNION ALL SELECT 'channel') d
             CROSS JOIN (SELECT 3600000 AS period_ms UNION ALL SELECT 86400000) p
             GROUP BY 1, 2, 3, 4"
        )
    };
}
macro_rules! add_to_totals {
    ($from:literal) => {
        concat!(
            "INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
             SELECT * FROM (", totals_of!($from), ") t WHERE true
             ON CONFLICT (period_ms, dimension, begins_at, name) DO UPDATE SET
                cost = usage_totals.cost + excluded.cost, requests = usage_totals.requests + excluded.requests,
                tokens = usage_totals.tokens + excluded.tokens, images = usage_totals.images + excluded.images,
                seconds = usage_totals.seconds + excluded.seconds, failed = usage_totals.failed + excluded.failed"
        )
    };
}
/// SQLite has one writer, so all statements see the same rows. PostgreSQL may commit rows between two statements, so there everything is one
/// statement.
///
/// The rows are added up first: so many chats cause one addition to the total of each dimension and period, and not ten additions for each chat.
const LAST_PENDING_SQLITE: Sql = Sql::both("SELECT MAX(rowid) FROM usage_pending");
const ADD_UP_PENDING_SQLITE: Sql = Sql::both(
    "INSERT INTO usage_pending (hour, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
     SELECT hour, model, user_id, key_id, channel, SUM(cost), SUM(requests), SUM(tokens), SUM(images), SUM(seconds), SUM(failed)
     FROM usage_pending GROUP BY hour, model, user_id, key_id, channel",
);
const CLEAR_ADDED_UP_SQLITE: Sql = Sql::both("DELETE FROM usage_pending WHERE rowid <= $1");
const ADD_TO_HOURS_SQLITE: Sql =
    Sql::both(add_to_sums!("usage_hourly" "hour" "hour" "usage_pending"));
const ADD_TO_DAYS_SQLITE: Sql =
    Sql::both(add_to_sums!("usage_daily" "day" "hour - hour % 86400000" "usage_pending"));
const ADD_TO_TOTALS_SQLITE: Sql = Sql::both(add_to_totals!("usage_pending"));
const CLEAR_SQLITE: Sql = Sql::both("DELETE FROM usage_pending");
const ROLL_UP_POSTGRES: Sql = Sql::both(concat!(
    "WITH taken AS (DELETE FROM usage_pending RETURNING *), days AS (",
    add_to_sums!("usage_daily" "day" "hour - hour % 86400000" "taken"),
    "), totals AS (",
    add_to_totals!("taken"),
    ") ",
    add_to_sums!("usage_hourly" "hour" "hour" "taken")
));
/// The lock is kept until the end of the transaction.
const TRY_LOCK_POSTGRES: Sql = Sql::both(
    "SELECT CAST(CASE WHEN pg_try_advisory_xact_lock(7053119) THEN 1 ELSE 0 END AS BIGINT)",
);

const LOCK_POSTGRES: Sql = Sql::both("SELECT pg_advisory_xact_lock(7053119)");

/// The sums by day of the hours since $1.
macro_rules! days_of_hours {
    () => {
        "SELECT hour - hour % 86400000 AS day, model, user_id, key_id, channel, CAST(SUM(cost) AS BIGINT) AS cost,
                CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(tokens) AS BIGINT) AS tokens, CAST(SUM(images) AS BIGINT) AS images,
                CAST(SUM(seconds) AS BIGINT) AS seconds, CAST(SUM(failed) AS BIGINT) AS failed
         FROM usage_hourly WHERE hour >= $1 GROUP BY hour - hour % 86400000, model, user_id, key_id, channel"
    };
}
/// Only cost and requests are compared: if any other sum differs, a request or a refund is missing, and then one of these differs too.
const DIFFERS: Sql = Sql::both(concat!(
    "SELECT h.day FROM (", days_of_hours!(), ") h
     LEFT JOIN usage_daily d ON d.day = h.day AND d.model = h.model AND d.user_id = h.user_id AND d.key_id = h.key_id AND d.channel = h.channel
     WHERE d.day IS NULL OR d.cost <> h.cost OR d.requests <> h.requests LIMIT 1"
));
const SET_DAYS: Sql = Sql::both(concat!(
    "INSERT INTO usage_daily (day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed)
     SELECT * FROM (", days_of_hours!(), ") h WHERE true
     ON CONFLICT (day, model, user_id, key_id, channel) DO UPDATE SET
        cost = excluded.cost, requests = excluded.requests, tokens = excluded.tokens, images = excluded.images,
        seconds = excluded.seconds, failed = excluded.failed
     WHERE usage_daily.cost <> excluded.cost OR usage_daily.requests <> excluded.requests"
));

/// A missing request or refund is also missing in the totals over all names.
const TOTALS_DIFFER: Sql = Sql::both(
    "SELECT h.hour FROM (SELECT hour, SUM(cost) AS cost, SUM(requests) AS requests FROM usage_hourly
                         WHERE hour >= $1 AND hour >= (SELECT value FROM meta WHERE name = 'usage_totals_from') GROUP BY hour) h
     LEFT JOIN usage_totals t ON t.period_ms = 3600000 AND t.dimension = 'all' AND t.begins_at = h.hour AND t.name = ''
     WHERE t.name IS NULL OR t.cost <> h.cost OR t.requests <> h.requests LIMIT 1",
);
const SET_TOTALS: Sql = Sql::both(concat!(
    "INSERT INTO usage_totals (period_ms, dimension, begins_at, name, cost, requests, tokens, images, seconds, failed)
     SELECT * FROM (", totals_of!("(SELECT * FROM usage_hourly WHERE hour >= $1 AND hour < $2) hours"), ") h WHERE true
     ON CONFLICT (period_ms, dimension, begins_at, name) DO UPDATE SET
        cost = excluded.cost, requests = excluded.requests, tokens = excluded.tokens, images = excluded.images,
        seconds = excluded.seconds, failed = excluded.failed
     WHERE usage_totals.cost <> excluded.cost OR usage_totals.requests <> excluded.requests"
));
/// The time from which the totals are complete, and the last hour before that.
const TOTALS_STATE: Sql = Sql::both(
    "SELECT value, (SELECT MAX(hour) FROM usage_hourly WHERE hour < value) FROM meta WHERE name = 'usage_totals_from'",
);
const SET_TOTALS_FROM: Sql =
    Sql::both("UPDATE meta SET value = $1 WHERE name = 'usage_totals_from' AND value > $1");

/// The roll-up.
impl Store {
    /// Adds what is pending to the hours, days and totals. Several processes may call it at the same time: one of them does the work, the others
    /// nothing.
    pub async fn roll_up_usage(&self) -> Result<(), StoreError> {
        if self.query(&IS_PENDING, args![]).await?.is_empty() {
            return Ok(());
        }
        let is_shared = self.is_shared();
        self.write(RollUp { is_shared }).await
    }

    /// Sets the days and totals since `since` to the sums of their hours, if one of them differs; returns whether one did. Does nothing if only this
    /// process uses the database.
    pub async fn repair_usage_sums(&self, since: Millis) -> Result<bool, StoreError> {
        let since = since - since.rem_euclid(DAY);
        if !self.is_shared() {
            return Ok(false);
        }
        for sql in [&DIFFERS, &TOTALS_DIFFER] {
            if !self.query(sql, args![since]).await?.is_empty() {
                self.write(RepairSums { since }).await?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Computes the totals of the last day before the complete ones, for a database with usage from before totals existed. Returns whether there may
    /// be another day.
    pub async fn fill_usage_totals(&self) -> Result<bool, StoreError> {
        let rows = self.query_slow(&TOTALS_STATE, args![]).await?;
        let Some(row) = rows.first() else {
            return Ok(false);
        };
        let until = row.int(0)?;
        let from = row.opt_int(1)?.map_or(0, |hour| hour - hour % DAY);
        if until > 0 {
            let is_shared = self.is_shared();
            let fill = FillTotals {
                is_shared,
                from,
                until,
            };
            self.write(fill).await?;
        }
        Ok(from > 0)
    }
}

struct RepairSums {
    since: Millis,
}

#[async_trait(?Send)]
impl Write for RepairSums {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        // The lock prevents a roll-up between reading the hours and writing the sums.
        batch.execute(&LOCK_POSTGRES, args![]).await?;
        batch.execute(&SET_DAYS, args![self.since]).await?;
        batch
            .execute(&SET_TOTALS, args![self.since, Millis::MAX])
            .await?;
        Ok(())
    }
}

struct FillTotals {
    is_shared: bool,
    from: Millis,
    until: Millis,
}

#[async_trait(?Send)]
impl Write for FillTotals {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let Self {
            is_shared,
            from,
            until,
        } = *self;
        if is_shared {
            batch.execute(&LOCK_POSTGRES, args![]).await?;
        }
        batch.execute(&SET_TOTALS, args![from, until]).await?;
        batch.execute(&SET_TOTALS_FROM, args![from]).await?;
        Ok(())
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
            let last = batch.first(&LAST_PENDING_SQLITE, args![]).await?;
            let last = last.map_or(Ok(None), |row| row.opt_int(0))?;
            batch.execute(&ADD_UP_PENDING_SQLITE, args![]).await?;
            batch.execute(&CLEAR_ADDED_UP_SQLITE, args![last]).await?;
            batch.execute(&ADD_TO_HOURS_SQLITE, args![]).await?;
            batch.execute(&ADD_TO_DAYS_SQLITE, args![]).await?;
            batch.execute(&ADD_TO_TOTALS_SQLITE, args![]).await?;
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
