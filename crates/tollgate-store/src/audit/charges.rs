//! Checks of charges that need more than SQL: rounding, checksums, and the files in a result.

use tollgate_core::{Amount, TaskKind};

use super::check::{AuditViolation, cells_to_text};
use crate::db::{DbError, Sql, Tx, args};
use crate::ledger::charges::{Charge, Delivered};
use crate::ledger::checksum::{refund_checksum_numbers, row_checksum};

const READ_CHARGES_AFTER: Sql = Sql::both(
    "SELECT id, user_id, key_id, seal, price, per, units, held, units_settled, settled, released, refunded FROM charges
     WHERE id > $1 ORDER BY id LIMIT 1000",
);
const READ_RESULTS_AFTER: Sql = Sql::both(
    "SELECT t.id, t.kind, t.result, c.units_settled, c.units FROM tasks t JOIN charges c ON c.id = t.id
     WHERE t.state = 2 AND t.id > $1 ORDER BY t.id LIMIT 1000",
);

/// Checks that every hold and settlement is units × price ÷ per, rounded half up once, and the checksum of every charge.
pub(super) async fn check_amounts(
    tx: &mut Tx<'_>,
    found: &mut Vec<AuditViolation>,
) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&READ_CHARGES_AFTER, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            let (id, user, key) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let mut numbers = Vec::with_capacity(9);
            for column in 4..11 {
                numbers.extend(row.opt_int(column)?);
            }
            let mut violated = |check, details| {
                found.push(AuditViolation {
                    check,
                    subject: id.clone(),
                    detail: format!("{details}: {}", cells_to_text(&row, 3)),
                });
            };
            if !amounts_agree(&numbers) {
                violated(
                    "charge_arithmetic",
                    "the checksum, then price, per, units, held, units settled, settled, released, refunded",
                );
            }
            numbers.extend(refund_checksum_numbers(row.int(11)?));
            if row_checksum([&id, &user, &key], &numbers) != row.int(3)? {
                violated(
                    "charge_seal",
                    "the checksum does not match: the checksum, then price, per, units, held, units settled, settled, released, refunded",
                );
            }
            after = id;
        }
    }
}

/// Whether the numbers of a charge, open or closed, are consistent.
fn amounts_agree(numbers: &[i64]) -> bool {
    let (opened, closed) = numbers.split_at(4.min(numbers.len()));
    let &[price, per, units, held] = opened else {
        return false;
    };
    let (Ok(per), Ok(units)) = (u64::try_from(per), u64::try_from(units)) else {
        return false;
    };
    let price = Amount::from_nanos(price);
    let charge = Charge {
        price,
        units_per_price: per,
        units,
    };
    let cost = |units| charge.cost(units).map(Amount::nanos);
    let is_closed_correctly = match *closed {
        [] => true,
        [units_settled, settled, released] => {
            u64::try_from(units_settled)
                .is_ok_and(|paid| paid <= units && cost(paid) == Some(settled))
                && held.checked_sub(settled) == Some(released)
        }
        _ => false,
    };
    cost(units) == Some(held) && is_closed_correctly
}

/// Checks that a completed task is charged for exactly the files in its result; files beyond the ordered number are free.
pub(super) async fn check_delivered_units(
    tx: &mut Tx<'_>,
    found: &mut Vec<AuditViolation>,
) -> Result<(), DbError> {
    let mut after = String::new();
    loop {
        let rows = tx.query(&READ_RESULTS_AFTER, args![&after]).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for mut row in rows {
            after = row.text(0)?;
            let kind = TaskKind::from_name(&row.text(1)?);
            let files = files_in_result(&row.opt_text(2)?.unwrap_or_default());
            let (settled, ordered) = (row.opt_int(3)?, row.int(4)?);
            let expected = kind.zip(u64::try_from(ordered).ok());
            let expected =
                expected.map(|(kind, ordered)| Delivered::from_files(kind, files).units(ordered));
            let settled = settled.and_then(|units| u64::try_from(units).ok());
            if files == 0 || expected.is_none() || expected != settled {
                found.push(AuditViolation {
                    check: "delivered_units",
                    subject: after.clone(),
                    detail: format!(
                        "{files} files in the result, units ordered: {ordered}, settled: {settled:?}"
                    ),
                });
            }
        }
    }
}

/// The number of files in a result.
fn files_in_result(result: &str) -> u64 {
    let result = serde_json::from_str::<serde_json::Value>(result).unwrap_or_default();
    let files = ["files", "images"]
        .into_iter()
        .find_map(|name| result[name].as_array());
    files.map_or(0, |files| files.len() as u64)
}
