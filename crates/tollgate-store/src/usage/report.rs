//! Sums of usage over hours and days, for charts.

use std::time::{Duration, Instant};

use tollgate_core::clock::{DAY, HOUR};
use tollgate_core::{Amount, Millis, money};

use crate::db::{DbError, Row, Sql, args};
use crate::db::{list_arg, one_of};
use crate::error::StoreError;
use crate::store::Store;

/// The hourly and daily sums by model, user, key and channel.
macro_rules! sums_of_all {
    () => {
        "SELECT * FROM usage_hourly WHERE hour > $6 AND hour < $7
                   UNION ALL SELECT * FROM usage_daily WHERE day >= $7 AND day < $8
                   UNION ALL SELECT * FROM usage_hourly WHERE hour >= $8 AND hour < $9"
    };
}
/// The hourly and daily sums of one dimension, in the same columns.
macro_rules! sums_of_dimension {
    ($dimension:literal $columns:literal) => {
        concat!(
            sums_of_dimension!("3600000" $dimension $columns), "begins_at > $6 AND begins_at < $7 UNION ALL ",
            sums_of_dimension!("86400000" $dimension $columns), "begins_at >= $7 AND begins_at < $8 UNION ALL ",
            sums_of_dimension!("3600000" $dimension $columns), "begins_at >= $8 AND begins_at < $9"
        )
    };
    ($period_ms:literal $dimension:literal $columns:literal) => {
        concat!(
            "SELECT begins_at AS hour, ", $columns, ", cost, requests, tokens, images, seconds, failed FROM usage_totals
             WHERE period_ms = ", $period_ms, " AND dimension = '", $dimension, "' AND "
        )
    };
}
macro_rules! usage {
    ($database:ident $sums:expr) => {
        concat!(
            "SELECT period, model, user_id, key_id, channel, units, nanos, requests, tokens, images, seconds, failed FROM (
             SELECT COALESCE(hour - hour % NULLIF(CAST($1 AS BIGINT), 0), 0) AS period,
                    CASE WHEN CAST($2 AS BIGINT) = 1 THEN model ELSE '' END AS model,
                    CASE WHEN CAST($3 AS BIGINT) = 1 THEN user_id ELSE '' END AS user_id,
                    CASE WHEN CAST($4 AS BIGINT) = 1 THEN key_id ELSE '' END AS key_id,
                    CASE WHEN CAST($5 AS BIGINT) = 1 THEN channel ELSE '' END AS channel,
                    CAST(SUM(cost / 1000000000) AS BIGINT) AS units, CAST(SUM(cost % 1000000000) AS BIGINT) AS nanos,
                    CAST(SUM(requests) AS BIGINT) AS requests, CAST(SUM(tokens) AS BIGINT) AS tokens,
                    CAST(SUM(images) AS BIGINT) AS images, CAST(SUM(seconds) AS BIGINT) AS seconds,
                    CAST(SUM(failed) AS BIGINT) AS failed
             FROM (", $sums, "
                   UNION ALL SELECT * FROM usage_pending WHERE hour > $6 AND hour < $9) hours WHERE ",
            one_of!($database "model" "$10"), " AND ", one_of!($database "user_id" "$11"), " AND ",
            one_of!($database "key_id" "$12"), " AND ", one_of!($database "channel" "$13"),
            " GROUP BY 1, 2, 3, 4, 5) sums
             WHERE (-period, model, user_id, key_id, channel) > ($14, $15, $16, $17, $18)
             ORDER BY period DESC, model, user_id, key_id, channel LIMIT $19"
        )
    };
}
macro_rules! usage_of_dimension {
    ($dimension:literal $columns:literal) => {
        Sql::per_database(
            usage!(sqlite sums_of_dimension!($dimension $columns)),
            usage!(postgres sums_of_dimension!($dimension $columns)),
        )
    };
}
const USAGE: Sql = Sql::per_database(
    usage!(sqlite sums_of_all!()),
    usage!(postgres sums_of_all!()),
);
const USAGE_IN_ALL: Sql =
    usage_of_dimension!("all" "'' AS model, '' AS user_id, '' AS key_id, '' AS channel");
/// By model, user, key and channel.
const USAGE_OF_DIMENSIONS: [Sql; 4] = [
    usage_of_dimension!("model" "name AS model, '' AS user_id, '' AS key_id, '' AS channel"),
    usage_of_dimension!("user" "'' AS model, name AS user_id, '' AS key_id, '' AS channel"),
    usage_of_dimension!("key" "'' AS model, '' AS user_id, name AS key_id, '' AS channel"),
    usage_of_dimension!("channel" "'' AS model, '' AS user_id, '' AS key_id, name AS channel"),
];

/// The last hour with usage, and the time from which totals exist.
const TIMES: Sql = Sql::both(
    "SELECT COALESCE(MAX(hour), 0), (SELECT value FROM meta WHERE name = 'usage_totals_from')
     FROM (SELECT MAX(hour) AS hour FROM usage_hourly UNION ALL SELECT MAX(hour) FROM usage_pending) h",
);

/// Periods that are read first, and the factor by which more are read while they have no rows.
const FIRST_PERIODS: i64 = 2;
const PERIODS_GROWTH: i64 = 4;
/// The time limit for all queries of a report together.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Which usage to sum up, and how to group it.
#[derive(Debug, Clone, Default)]
pub struct UsageQuery {
    /// The length in milliseconds of the periods of UTC to group by. `None` if sums are not grouped by time.
    pub period: Option<Millis>,
    /// Whether to group by model.
    pub by_model: bool,
    /// Whether to group by user.
    pub by_user: bool,
    /// Whether to group by key.
    pub by_key: bool,
    /// Whether to group by channel.
    pub by_channel: bool,
    /// Only hours that end after this time.
    pub from: Millis,
    /// Only hours that begin before this time.
    pub to: Millis,
    /// Only of these models.
    pub models: Option<Vec<String>>,
    /// Only of these users.
    pub user_ids: Option<Vec<String>>,
    /// Only of these keys.
    pub key_ids: Option<Vec<String>>,
    /// Only by these channels.
    pub channels: Option<Vec<String>>,
}

impl UsageQuery {
    /// The statement that reads the fewest rows: sums of one dimension are stored if there are totals; others are computed from the sums of all four
    /// dimensions.
    fn sql(&self, has_totals: bool) -> &'static Sql {
        if !has_totals {
            return &USAGE;
        }
        let dimensions = [
            self.by_model || self.models.is_some(),
            self.by_user || self.user_ids.is_some(),
            self.by_key || self.key_ids.is_some(),
            self.by_channel || self.channels.is_some(),
        ];
        let mut used = (0..dimensions.len()).filter(|index| dimensions[*index]);
        match (used.next(), used.next()) {
            (None, _) => &USAGE_IN_ALL,
            (Some(dimension), None) => &USAGE_OF_DIMENSIONS[dimension],
            (Some(_), Some(_)) => &USAGE,
        }
    }
}

/// Hours that begin after this time end after `from`.
fn after_hour(from: Millis) -> Millis {
    from.saturating_sub(HOUR)
}

/// The beginning of the first and the end of the last day whose sums are read instead of those of their hours: days with all hours in that time.
/// Empty (`to` twice) if sums are grouped by hour.
fn complete_days([from, to]: [Millis; 2], period: Option<Millis>) -> [Millis; 2] {
    let first = (after_hour(from).div_euclid(DAY) + 1).saturating_mul(DAY);
    // The last hour of the last day begins before `to`.
    let last = to.saturating_sub(1 + 23 * HOUR).div_euclid(DAY);
    let end = (last + 1).saturating_mul(DAY);
    let has_hours = period.is_some_and(|period| period % DAY != 0);
    match has_hours || first >= end {
        true => [to; 2],
        false => [first, end],
    }
}

/// The position of a row in a list: its period, then model, user, key and channel. Values that are not grouped by are 0 or empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsagePosition {
    /// When the period begins, in milliseconds since 1970.
    pub period: Millis,
    /// Model, user, key and channel; the channel is empty if no channel served the request.
    pub names: [String; 4],
}

/// A sum of usage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageRow {
    /// The group of the sum.
    pub position: UsagePosition,
    /// Settlements minus refunds.
    pub cost: Amount,
    /// Tasks and chats that ended.
    pub requests: i64,
    /// Tokens of chats, of all five kinds.
    pub tokens: i64,
    /// Images that were delivered.
    pub images: i64,
    /// Seconds of video that were delivered.
    pub seconds: i64,
    /// Tasks and chats that failed.
    pub failed: i64,
}

impl UsageRow {
    fn read(row: &mut Row) -> Result<Self, DbError> {
        Ok(Self {
            position: UsagePosition {
                period: row.int(0)?,
                names: [row.text(1)?, row.text(2)?, row.text(3)?, row.text(4)?],
            },
            // Units and billionths are summed separately, because together they may exceed 64 bits.
            cost: Amount::from_nanos(
                (row.int(5)?.saturating_mul(money::NANOS)).saturating_add(row.int(6)?),
            ),
            requests: row.int(7)?,
            tokens: row.int(8)?,
            images: row.int(9)?,
            seconds: row.int(10)?,
            failed: row.int(11)?,
        })
    }
}

/// The parameters that all statements of one report share.
struct UsagePart<'a> {
    query: &'a UsageQuery,
    sql: &'static Sql,
    after: &'a UsagePosition,
    until: Instant,
}

/// Usage.
impl Store {
    /// Sums, the last period first, after the position `after`.
    pub async fn usage(
        &self,
        query: &UsageQuery,
        after: Option<&UsagePosition>,
        limit: usize,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let first = UsagePosition {
            period: i64::MAX,
            names: Default::default(),
        };
        let after = after.unwrap_or(&first);
        let until = Instant::now() + TIME_LIMIT;
        let [last_hour, totals_from] = self.usage_times(until).await?;
        let has_totals = totals_from == 0 || totals_from <= after_hour(query.from);
        let part = UsagePart {
            query,
            sql: query.sql(has_totals),
            after,
            until,
        };
        let Some(length) = query.period else {
            return self
                .usage_between(&part, [query.from, query.to], limit)
                .await;
        };
        // The last periods come first, so earlier ones are read only if these have too few rows.
        let mut rows = Vec::new();
        let mut end = query.to.min(after.period.saturating_add(length));
        end = end.min(last_hour.saturating_add(HOUR));
        let (mut periods, mut periods_read) = (FIRST_PERIODS, 0);
        while rows.len() < limit && end > query.from {
            let begin = end.saturating_sub(1).div_euclid(length) - (periods - 1);
            let begin = begin.saturating_mul(length).max(query.from);
            let rest = limit - rows.len();
            rows.extend(self.usage_between(&part, [begin, end], rest).await?);
            end = begin;
            periods_read += periods;
            // The number of periods that contain the remaining rows, if they are like the previous ones.
            periods = match i64::try_from(rows.len()) {
                Ok(found @ 1..) => ((limit as i64 - found) * periods_read / found + 1).max(1),
                _ => periods_read * PERIODS_GROWTH,
            };
        }
        Ok(rows)
    }

    /// When the last hour with usage begins, 0 if there is none; and the time from which totals exist.
    async fn usage_times(&self, until: Instant) -> Result<[Millis; 2], StoreError> {
        let rows = self.query_slow_until(&TIMES, args![], until).await?;
        match rows.first() {
            Some(row) => Ok([row.int(0)?, row.int(1)?]),
            None => Ok([0, Millis::MAX]),
        }
    }

    /// The sums of a part of the query's time. The part begins and ends at the bounds of a period or of the query's time.
    async fn usage_between(
        &self,
        part: &UsagePart<'_>,
        [from, to]: [Millis; 2],
        limit: usize,
    ) -> Result<Vec<UsageRow>, StoreError> {
        let UsagePart { query, after, .. } = *part;
        let lists = [
            &query.models,
            &query.user_ids,
            &query.key_ids,
            &query.channels,
        ];
        let [models, users, keys, channels] = lists.map(|list| list_arg(list.as_ref()));
        let [model, user, key, channel] = &after.names;
        let [days_from, days_to] = complete_days([from, to], query.period);
        let args = args![
            query.period.unwrap_or(0),
            query.by_model,
            query.by_user,
            query.by_key,
            query.by_channel,
            after_hour(from),
            days_from,
            days_to,
            to,
            models.as_ref(),
            users.as_ref(),
            keys.as_ref(),
            channels.as_ref(),
            after.period.saturating_neg(),
            model,
            user,
            key,
            channel,
            limit as i64
        ];
        let mut rows = self.query_slow_until(part.sql, args, part.until).await?;
        Ok(rows
            .iter_mut()
            .map(UsageRow::read)
            .collect::<Result<_, _>>()?)
    }
}
