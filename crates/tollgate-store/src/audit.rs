//! The audit: every money and task invariant, proved from the database in one snapshot.

mod chats;
mod work;

use crate::db::{DbError, Row, Sql, Tx, args};
use crate::model::{Charge, Delivered, Violation};
use crate::money::seal;
use tollgate_core::{Amount, TaskKind, TaskState};

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
        says: "balance, held, used; then the same from the entries",
        sql: Sql::both(
            "SELECT u.id, u.balance, u.held, u.used, l.balance, l.held, l.used FROM users u
             LEFT JOIN (SELECT user_id,
                CAST(SUM(CASE kind WHEN 'credit' THEN amount WHEN 'settle' THEN -amount WHEN 'charge' THEN -amount ELSE 0 END) AS BIGINT) AS balance,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount WHEN 'settle' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE WHEN kind IN ('settle', 'charge') THEN amount ELSE 0 END) AS BIGINT) AS used
                FROM entries GROUP BY user_id) l ON l.user_id = u.id
             WHERE u.balance <> COALESCE(l.balance, 0) OR u.held <> COALESCE(l.held, 0) OR u.used <> COALESCE(l.used, 0)",
        ),
    },
    Check {
        name: "unlimited_users",
        says: "unlimited; then whether the ledger says so",
        sql: Sql::both(
            "SELECT u.id, u.unlimited, l.ref FROM users u LEFT JOIN ledger l ON l.ref = u.id AND l.kind = 'unlimited'
             WHERE u.unlimited NOT IN (0, 1) OR (u.unlimited = 1) <> (l.ref IS NOT NULL)",
        ),
    },
    Check {
        name: "key_sums",
        says: "held, used, quota; then the same from the entries",
        sql: Sql::both(
            "SELECT k.id, k.held, k.used, k.quota, l.held, l.used, l.quota FROM keys k
             LEFT JOIN (SELECT key_id,
                CAST(SUM(CASE kind WHEN 'hold' THEN amount WHEN 'settle' THEN -amount WHEN 'release' THEN -amount ELSE 0 END) AS BIGINT) AS held,
                CAST(SUM(CASE WHEN kind IN ('settle', 'charge') THEN amount ELSE 0 END) AS BIGINT) AS used,
                CAST(SUM(CASE kind WHEN 'quota' THEN amount END) AS BIGINT) AS quota
                FROM entries WHERE key_id IS NOT NULL GROUP BY key_id) l ON l.key_id = k.id
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
        says: "a ledger entry without its charge or chat, user or key, of an unknown kind, negative where it may not be, or under another's name",
        sql: Sql::both(
            "SELECT l.ref, l.kind, l.user_id, l.key_id, l.amount FROM ledger l
             LEFT JOIN charges c ON c.id = l.ref LEFT JOIN chats t ON t.id = l.ref LEFT JOIN users u ON u.id = l.user_id LEFT JOIN keys k ON k.id = l.key_id
             WHERE u.id IS NULL OR l.kind NOT IN ('credit', 'unlimited', 'quota', 'hold', 'settle', 'release', 'charge')
                OR (l.kind IN ('credit', 'unlimited')) <> (l.key_id IS NULL)
                OR (l.kind = 'unlimited' AND (l.amount <> 0 OR l.ref <> l.user_id))
                OR (l.kind = 'quota' AND l.ref <> l.key_id)
                OR (l.key_id IS NOT NULL AND (k.id IS NULL OR k.user_id <> l.user_id OR l.amount < 0))
                OR (c.id IS NOT NULL AND t.id IS NOT NULL)
                OR (l.kind IN ('hold', 'settle', 'release')
                    AND (COALESCE(c.user_id, t.user_id, '') <> l.user_id OR COALESCE(c.key_id, t.key_id, '') <> l.key_id))
                OR (l.kind = 'charge' AND (t.id IS NULL OR t.user_id <> l.user_id OR t.key_id <> l.key_id))",
        ),
    },
    Check {
        name: "charge_owners",
        says: "user and key of a charge: one is missing, or the key is another user's",
        sql: Sql::both(
            "SELECT c.id, c.user_id, c.key_id FROM charges c
             LEFT JOIN users u ON u.id = c.user_id LEFT JOIN keys k ON k.id = c.key_id
             WHERE u.id IS NULL OR k.id IS NULL OR k.user_id <> c.user_id",
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
        says: "state, progress, ended_at: a final task has an end, a completed one a result, a failed one an error, others neither; only one in work has an owner",
        sql: Sql::both(
            "SELECT id, state, progress, ended_at FROM tasks
             WHERE state < 0 OR state > 4 OR progress < 0 OR progress > 100 OR (state < 2) <> (ended_at IS NULL)
                OR (state = 2) <> (result IS NOT NULL) OR (state IN (3, 4)) <> (error_code IS NOT NULL)
                OR (state = 4) <> (COALESCE(error_code, '') = 'cancelled')
                OR (state <> 1 AND owner IS NOT NULL) OR (state = 0 AND fence <> 0)
                OR (state < 4 AND (state = 0) <> (started_at IS NULL))",
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
    "SELECT id, user_id, key_id, seal, price, per, units, held, units_settled, settled, released FROM charges
     WHERE id > $1 ORDER BY id LIMIT 1000",
);
const RESULTS: Sql = Sql::both(
    "SELECT t.id, t.kind, t.result, c.units_settled, c.units FROM tasks t JOIN charges c ON c.id = t.id
     WHERE t.state = 2 AND t.id > $1 ORDER BY t.id LIMIT 1000",
);

/// Runs every check in the snapshot of `tx`.
pub(crate) async fn audit(tx: &mut Tx<'_>) -> Result<Vec<Violation>, DbError> {
    let mut found = Vec::new();
    for check in CHECKS.iter().chain(work::CHECKS).chain(chats::CHECKS) {
        for mut row in tx.query(&check.sql, &[]).await? {
            found.push(Violation {
                check: check.name,
                subject: row.text(0)?,
                detail: format!("{}: {}", check.says, cells(&row, 1)),
            });
        }
    }
    charge_arithmetic(tx, &mut found).await?;
    delivered_units(tx, &mut found).await?;
    chats::arithmetic(tx, &mut found).await?;
    Ok(found)
}

/// The cells of a row from column `first` on, as words.
fn cells(row: &Row, first: usize) -> String {
    let words = row.0[first..].iter().map(|cell| match cell {
        crate::db::Value::Null => "none".to_owned(),
        crate::db::Value::Int(n) => n.to_string(),
        crate::db::Value::Text(t) => t.to_string(),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Every hold and settlement is units × price, rounded half up once, and every charge is as it was sealed.
async fn charge_arithmetic(tx: &mut Tx<'_>, found: &mut Vec<Violation>) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&CHARGES, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            let (id, user, key) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let mut numbers = Vec::with_capacity(7);
            for column in 4..11 {
                numbers.extend(row.opt_int(column)?);
            }
            let mut wrong = |check, says| {
                found.push(Violation {
                    check,
                    subject: id.clone(),
                    detail: format!("{says}: {}", cells(&row, 3)),
                });
            };
            if !adds_up(&numbers) {
                wrong(
                    "charge_arithmetic",
                    "price, per, units, held, units settled, settled, released after the seal",
                );
            }
            if seal([&id, &user, &key], &numbers) != row.int(3)? {
                wrong(
                    "charge_seal",
                    "a cell is not as it was written, the seal and then price, per, units, held, units settled, settled, released",
                );
            }
            after = id;
        }
    }
}

/// Whether the numbers of a charge, open or closed, follow from each other.
fn adds_up(numbers: &[i64]) -> bool {
    let (order, end) = numbers.split_at(4.min(numbers.len()));
    let &[price, per, units, held] = order else {
        return false;
    };
    let (Ok(per), Ok(units)) = (u64::try_from(per), u64::try_from(units)) else {
        return false;
    };
    let price = Amount::from_nanos(price);
    let charge = Charge { price, per, units };
    let cost = |units| charge.cost(units).map(Amount::nanos);
    let ended_right = match *end {
        [] => true,
        [units_settled, settled, released] => {
            u64::try_from(units_settled)
                .is_ok_and(|paid| paid <= units && cost(paid) == Some(settled))
                && held.checked_sub(settled) == Some(released)
        }
        _ => false,
    };
    cost(units) == Some(held) && ended_right
}

/// A completed task pays for exactly the results that it shows; what came beyond the order is free.
async fn delivered_units(tx: &mut Tx<'_>, found: &mut Vec<Violation>) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&RESULTS, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            after = row.text(0)?;
            let kind = TaskKind::from_name(&row.text(1)?);
            let files = files_shown(&row.opt_text(2)?.unwrap_or_default());
            let (settled, ordered) = (row.opt_int(3)?, row.int(4)?);
            let worth = kind.zip(u64::try_from(ordered).ok());
            let worth = worth.map(|(kind, ordered)| Delivered::of(kind, files).units(ordered));
            let settled = settled.and_then(|units| u64::try_from(units).ok());
            if files == 0 || worth.is_none() || worth != settled {
                found.push(Violation {
                    check: "delivered_units",
                    subject: after.clone(),
                    detail: format!(
                        "{files} results shown, units ordered: {ordered}, settled: {settled:?}"
                    ),
                });
            }
        }
    }
}

/// How many files a result shows.
fn files_shown(result: &str) -> u64 {
    let result = serde_json::from_str::<serde_json::Value>(result).unwrap_or_default();
    let shown = ["files", "images"]
        .into_iter()
        .find_map(|name| result[name].as_array());
    shown.map_or(0, |files| files.len() as u64)
}

/// The numbers that the statements above have.
const _: () = assert!(
    TaskState::Completed as i64 == 2
        && TaskState::Failed as i64 == 3
        && TaskState::Cancelled as i64 == 4
);
