//! Checks of usage: the hourly sums and the pending ones together are equal to the sums over the ledger.

use super::check::Check;
use crate::db::Sql;

/// When tasks are purged, their attempts are deleted, and with them their channel: so channels are not compared.
pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "usage",
        details: "cost in billionths, requests and tokens that usage has beyond the ledger in this hour, of this model, user and key",
        sql: Sql::both(
            "SELECT CAST(hour AS TEXT) || ' ' || model || ' ' || user_id || ' ' || key_id,
                    CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT)
             FROM (
                SELECT hour, model, user_id, key_id, cost, requests, tokens FROM usage_hourly
                UNION ALL
                SELECT hour, model, user_id, key_id, cost, requests, tokens FROM usage_pending
                UNION ALL
                SELECT closed_at - closed_at % 3600000, model, user_id, key_id, -settled, -1,
                       -(input + cached_input + cache_write + output + reasoning)
                FROM chats WHERE closed_at IS NOT NULL
                UNION ALL
                SELECT closed_at - closed_at % 3600000, model, user_id, key_id, -settled, -1, 0
                FROM charges WHERE closed_at IS NOT NULL
                UNION ALL
                SELECT l.at - l.at % 3600000, COALESCE(c.model, h.model, ''), l.user_id, COALESCE(l.key_id, ''), l.amount, 0, 0
                FROM ledger l LEFT JOIN charges c ON c.id = substr(l.ref, 1, length(l.ref) - 20)
                              LEFT JOIN chats h ON h.id = substr(l.ref, 1, length(l.ref) - 20)
                WHERE l.kind = 'refund'
             ) compared GROUP BY hour, model, user_id, key_id
             HAVING SUM(cost) <> 0 OR SUM(requests) <> 0 OR SUM(tokens) <> 0",
        ),
    },
    Check {
        name: "usage_counts",
        details: "requests, tokens, images, seconds and failed of usage: below 0, or more failed than there are requests",
        sql: Sql::both(
            "SELECT CAST(hour AS TEXT) || ' ' || model || ' ' || user_id || ' ' || key_id || ' ' || channel,
                    requests, tokens, images, seconds, failed
             FROM usage_hourly
             WHERE requests < 0 OR tokens < 0 OR images < 0 OR seconds < 0 OR failed < 0 OR failed > requests",
        ),
    },
    Check {
        name: "usage_days",
        details: "cost in billionths, requests and tokens that the sums of this day have beyond those of its hours, of this model, user, key and channel",
        sql: Sql::both(
            "SELECT CAST(day AS TEXT) || ' ' || model || ' ' || user_id || ' ' || key_id || ' ' || channel,
                    CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT)
             FROM (
                SELECT day, model, user_id, key_id, channel, cost, requests, tokens, images, seconds, failed FROM usage_daily
                UNION ALL
                SELECT hour - hour % 86400000, model, user_id, key_id, channel, -cost, -requests, -tokens, -images, -seconds, -failed FROM usage_hourly
             ) compared GROUP BY day, model, user_id, key_id, channel
             HAVING SUM(cost) <> 0 OR SUM(requests) <> 0 OR SUM(tokens) <> 0 OR SUM(images) <> 0 OR SUM(seconds) <> 0 OR SUM(failed) <> 0",
        ),
    },
    Check {
        name: "usage_totals",
        details: "cost in billionths, requests and tokens that the total of this period has beyond the sums of its hours, of this dimension and name",
        sql: Sql::both(
            "SELECT CAST(period_ms AS TEXT) || ' ' || CAST(begins_at AS TEXT) || ' ' || dimension || ' ' || name,
                    CAST(SUM(cost) AS BIGINT), CAST(SUM(requests) AS BIGINT), CAST(SUM(tokens) AS BIGINT)
             FROM (
                SELECT period_ms, begins_at, dimension, name, cost, requests, tokens, images, seconds, failed FROM usage_totals
                WHERE begins_at >= (SELECT value FROM meta WHERE name = 'usage_totals_from')
                UNION ALL
                SELECT p.period_ms, hour - hour % p.period_ms, d.dimension,
                       CASE d.dimension WHEN 'model' THEN model WHEN 'user' THEN user_id WHEN 'key' THEN key_id WHEN 'channel' THEN channel ELSE '' END,
                       -cost, -requests, -tokens, -images, -seconds, -failed
                FROM usage_hourly
                CROSS JOIN (SELECT 'all' AS dimension UNION ALL SELECT 'model' UNION ALL SELECT 'user' UNION ALL SELECT 'key'
                            UNION ALL SELECT 'channel') d
                CROSS JOIN (SELECT 3600000 AS period_ms UNION ALL SELECT 86400000) p
                WHERE hour >= (SELECT value FROM meta WHERE name = 'usage_totals_from')
             ) compared GROUP BY period_ms, begins_at, dimension, name
             HAVING SUM(cost) <> 0 OR SUM(requests) <> 0 OR SUM(tokens) <> 0 OR SUM(images) <> 0 OR SUM(seconds) <> 0 OR SUM(failed) <> 0",
        ),
    },
];
