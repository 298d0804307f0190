//! The audit: every money and task invariant, proved from the database in one snapshot.

use crate::db::{DbError, Row, Sql, Tx, args};
use crate::model::{Charge, Violation};
use tollgate_core::{Amount, TaskState};

/// One invariant as a query: each row that comes back is a violation, its first column the row's name, the
/// others what is there and what should be.
struct Check {
    name: &'static str,
    says: &'static str,
    sql: Sql,
}

const CHECKS: &[Check] = &[
    Check {
        name: "user_sums",
        says: "balance, held, used; then the same from the ledger",
        sql: Sql::both(
            "SELECT u.id, u.balance, u.held, u.used, l.balance, l.held, l.used FROM users u
             LEFT JOIN (SELECT user_id,
                CAST(SUM(CASE kind WHEN 'credit' THEN amount WHEN 'settle' THEN -amount ELSE 0 END) AS BIGINT) AS balance,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount WHEN 'settle' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE kind WHEN 'settle' THEN amount ELSE 0 END) AS BIGINT) AS used
                FROM ledger GROUP BY user_id) l ON l.user_id = u.id
             WHERE u.balance <> COALESCE(l.balance, 0) OR u.held <> COALESCE(l.held, 0) OR u.used <> COALESCE(l.used, 0)",
        ),
    },
    Check {
        name: "key_sums",
        says: "held, used, quota; then the same from the ledger",
        sql: Sql::both(
            "SELECT k.id, k.held, k.used, k.quota, l.held, l.used, l.quota FROM keys k
             LEFT JOIN (SELECT key_id,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount WHEN 'settle' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE kind WHEN 'settle' THEN amount ELSE 0 END) AS BIGINT) AS used,
                CAST(SUM(CASE kind WHEN 'quota' THEN amount END) AS BIGINT) AS quota
                FROM ledger WHERE key_id IS NOT NULL GROUP BY key_id) l ON l.key_id = k.id
             WHERE k.held <> COALESCE(l.held, 0) OR k.used <> COALESCE(l.used, 0)
                OR COALESCE(k.quota, -1) <> COALESCE(l.quota, -1)",
        ),
    },
    Check {
        name: "never_overdrawn",
        says: "balance and held of a limited user",
        sql: Sql::both(
            "SELECT id, balance, held FROM users WHERE (unlimited = 0 AND balance - held < 0) OR held < 0 OR used < 0",
        ),
    },
    Check {
        name: "quota_kept",
        says: "quota, held, used",
        sql: Sql::both("SELECT id, quota, held, used FROM keys WHERE held < 0 OR used < 0 OR held + used > quota"),
    },
    Check {
        name: "charge_entries",
        says: "held, settled, released; then the same from the ledger",
        sql: Sql::both(
            "SELECT c.id, c.held, c.settled, c.released, l.held, l.settled, l.released FROM charges c
             LEFT JOIN (SELECT ref,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE kind WHEN 'settle' THEN amount ELSE 0 END) AS BIGINT) AS settled,
                CAST(SUM(CASE kind WHEN 'release' THEN amount ELSE 0 END) AS BIGINT) AS released
                FROM ledger WHERE kind IN ('hold', 'settle', 'release') GROUP BY ref) l ON l.ref = c.id
             WHERE c.held <> COALESCE(l.held, 0) OR COALESCE(c.settled, 0) <> COALESCE(l.settled, 0)
                OR COALESCE(c.released, 0) <> COALESCE(l.released, 0)
                OR (c.closed_at IS NULL) <> (c.settled IS NULL) OR (c.closed_at IS NULL) <> (c.released IS NULL)
                OR (c.closed_at IS NULL) <> (c.units_settled IS NULL)
                OR (c.closed_at IS NOT NULL AND c.settled + c.released <> c.held)",
        ),
    },
    Check {
        name: "entry_owners",
        says: "a ledger entry without its charge, user or key, of an unknown kind, negative where it may not be, or under another's name",
        sql: Sql::both(
            "SELECT l.ref, l.kind, l.user_id, l.key_id, l.amount FROM ledger l
             LEFT JOIN charges c ON c.id = l.ref LEFT JOIN users u ON u.id = l.user_id LEFT JOIN keys k ON k.id = l.key_id
             WHERE u.id IS NULL OR l.kind NOT IN ('credit', 'quota', 'hold', 'settle', 'release')
                OR (l.kind <> 'credit' AND (k.id IS NULL OR l.amount < 0))
                OR (l.kind IN ('hold', 'settle', 'release')
                    AND (c.id IS NULL OR c.user_id <> l.user_id OR c.key_id <> l.key_id))",
        ),
    },
    Check {
        name: "task_charges",
        says: "state and cost of a task; then what its charge settled and when it closed",
        sql: Sql::both(
            "SELECT t.id, t.state, t.cost, c.settled, c.closed_at FROM tasks t LEFT JOIN charges c ON c.id = t.id
             WHERE c.id IS NULL OR c.user_id <> t.user_id OR c.key_id <> t.key_id OR t.cost <> COALESCE(c.settled, 0)
                OR (t.state < 2) <> (c.closed_at IS NULL)
                OR (t.state IN (3, 4) AND COALESCE(c.units_settled, 0) <> 0)
                OR (t.state = 2 AND COALESCE(c.units_settled, 0) < 1)",
        ),
    },
    Check {
        name: "open_charges",
        says: "a charge is open and no unfinished task has it",
        sql: Sql::both(
            "SELECT c.id, c.held FROM charges c LEFT JOIN tasks t ON t.id = c.id WHERE c.closed_at IS NULL AND t.id IS NULL",
        ),
    },
    Check {
        name: "task_shape",
        says: "state, progress, ended_at: a final task has an end, a completed one a result, a failed one an error, others neither",
        sql: Sql::both(
            "SELECT id, state, progress, ended_at FROM tasks
             WHERE state < 0 OR state > 4 OR progress < 0 OR progress > 100 OR (state < 2) <> (ended_at IS NULL)
                OR (state = 2) <> (result IS NOT NULL) OR (state IN (3, 4)) <> (error_code IS NOT NULL)",
        ),
    },
    Check {
        name: "idempotency_tasks",
        says: "an idempotency key whose charge does not exist",
        sql: Sql::both(
            "SELECT i.key, i.task_id FROM idempotency i LEFT JOIN charges c ON c.id = i.task_id WHERE c.id IS NULL",
        ),
    },
];

const CHARGES: Sql = Sql::both(
    "SELECT id, price, per, units, held, units_settled, settled FROM charges WHERE id > $1 ORDER BY id LIMIT 1000",
);
const RESULTS: Sql = Sql::both(
    "SELECT t.id, t.result, c.units_settled FROM tasks t JOIN charges c ON c.id = t.id
     WHERE t.state = 2 AND t.id > $1 ORDER BY t.id LIMIT 1000",
);

/// Runs every check in the snapshot of `tx`.
pub(crate) async fn audit(tx: &mut Tx<'_>) -> Result<Vec<Violation>, DbError> {
    let mut found = Vec::new();
    for check in CHECKS {
        for mut row in tx.query(&check.sql, &[]).await? {
            found.push(Violation {
                check: check.name,
                subject: row.text(0)?,
                detail: format!("{}: {}", check.says, cells(&row)),
            });
        }
    }
    charge_arithmetic(tx, &mut found).await?;
    delivered_units(tx, &mut found).await?;
    Ok(found)
}

fn cells(row: &Row) -> String {
    let words = row.0[1..].iter().map(|cell| match cell {
        crate::db::Value::Null => "none".to_owned(),
        crate::db::Value::Int(n) => n.to_string(),
        crate::db::Value::Text(t) => t.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Every hold and settlement is units × price, rounded half up once.
async fn charge_arithmetic(tx: &mut Tx<'_>, found: &mut Vec<Violation>) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&CHARGES, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            after = row.text(0)?;
            let number = |n: i64| u64::try_from(n).unwrap_or(u64::MAX);
            let charge = Charge {
                price: row.amount(1)?,
                per: number(row.int(2)?),
                units: number(row.int(3)?),
            };
            let settled_right = match (row.opt_int(5)?, row.opt_int(6)?) {
                (Some(units), Some(settled)) => {
                    number(units) <= charge.units
                        && charge.cost(number(units)) == Some(Amount::from_nanos(settled))
                }
                (units, settled) => units.is_none() && settled.is_none(),
            };
            if charge.cost(charge.units) != Some(row.amount(4)?) || !settled_right {
                found.push(Violation {
                    check: "charge_arithmetic",
                    subject: after.clone(),
                    detail: format!(
                        "price, per, units, held, units settled, settled: {}",
                        cells(&row)
                    ),
                });
            }
        }
    }
}

/// A completed task pays for exactly the results that it shows.
async fn delivered_units(tx: &mut Tx<'_>, found: &mut Vec<Violation>) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&RESULTS, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            after = row.text(0)?;
            let result = row.opt_text(1)?.unwrap_or_default();
            let shown = serde_json::from_str::<serde_json::Value>(&result)
                .ok()
                .and_then(|r| r["images"].as_array().map(Vec::len));
            if shown.map(|n| n as i64) != row.opt_int(2)? {
                found.push(Violation {
                    check: "delivered_units",
                    subject: after.clone(),
                    detail: format!(
                        "{} results shown, units settled: {:?}",
                        shown.unwrap_or(0),
                        row.opt_int(2)?
                    ),
                });
            }
        }
    }
}

/// The numbers that the statements above have.
const _: () = assert!(
    TaskState::Completed as i64 == 2
        && TaskState::Failed as i64 == 3
        && TaskState::Cancelled as i64 == 4
);
