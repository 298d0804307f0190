//! Checks of budgets: the spent amount is equal to the usage since the period began.

use super::check::Check;
use crate::db::Sql;

pub(super) const CHECKS: &[Check] = &[
    Check {
        name: "budgets",
        details: "what was spent of a budget since its period began; then the same from usage",
        sql: Sql::both(
            "SELECT b.id, b.owner_id, b.spent, COALESCE(s.cost, 0) FROM budgets b
             LEFT JOIN (SELECT b.id, CAST(SUM(u.cost) AS BIGINT) AS cost FROM budgets b
                        JOIN (SELECT hour, user_id, key_id, cost FROM usage_hourly
                              UNION ALL SELECT hour, user_id, key_id, cost FROM usage_pending) u
                          ON u.hour >= b.period_start AND (u.user_id = b.owner_id OR u.key_id = b.owner_id)
                        GROUP BY b.id) s ON s.id = b.id
             WHERE b.spent <> COALESCE(s.cost, 0)",
        ),
    },
    Check {
        name: "budget_owners",
        details: "budgets that a user or key counts; then those that it has",
        sql: Sql::both(
            "SELECT o.id, o.budgets, COALESCE(b.budgets, 0)
             FROM (SELECT id, budgets FROM users UNION ALL SELECT id, budgets FROM keys) o
             LEFT JOIN (SELECT owner_id, COUNT(*) AS budgets FROM budgets GROUP BY owner_id) b ON b.owner_id = o.id
             WHERE o.budgets <> COALESCE(b.budgets, 0)
             UNION ALL
             SELECT b.owner_id, 0, 1 FROM budgets b
             LEFT JOIN users u ON u.id = b.owner_id LEFT JOIN keys k ON k.id = b.owner_id
             WHERE (u.id IS NULL) = (k.id IS NULL)",
        ),
    },
];
