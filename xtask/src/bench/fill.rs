//! Fills a gateway's database with finished tasks: copies of one that the gateway created itself, with their charges and their entries in the ledger.
//! All sums stay correct; only `tollgate audit` can distinguish the copies, by the checksums of their charges.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

/// The first bytes of a database file.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The tables that contain rows of a task, each with the column of the task's id.
const TABLES: &[(&str, &str)] = &[
    ("tasks", "id"),
    ("charges", "id"),
    ("ledger", "ref"),
    ("attempts", "task_id"),
];
/// The digits of task ids, in ascending order.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// The length of `task_` and the ten digits of the time.
const PREFIX: usize = 15;

/// The id of copy `number` of the task `original`, with the same creation time.
pub(super) fn copy_id(original: &str, number: u64) -> String {
    // An odd factor distributes the copies like random ids and keeps their ids distinct.
    let mut rest = u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let mut id = original[..PREFIX.min(original.len())].to_owned();
    for _ in 0..20 {
        id.push(char::from(DIGITS[usize::try_from(rest & 31).unwrap_or(0)]));
        rest >>= 5;
    }
    id
}

/// Adds `count` copies of the finished task `original` to the database in `data`. The gateway of the database must not be running.
pub(super) fn add_task_copies(data: &Path, original: &str, count: u64) -> Result<(), String> {
    let path = find_database(data)?;
    let failed = |e: rusqlite::Error| format!("cannot fill {}: {e}", path.display());
    let mut connection = Connection::open(&path).map_err(failed)?;
    connection
        .execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -500000;")
        .map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    for (table, column) in TABLES {
        copy_rows(&transaction, table, column, original, count).map_err(failed)?;
    }
    deduct_costs(&transaction, original, count).map_err(failed)?;
    transaction.commit().map_err(failed)?;
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .map_err(failed)?;
    // Bytes that the system has not written yet must not slow down the next measurement.
    let written = fs::File::open(&path).and_then(|file| file.sync_all());
    written.map_err(|e| format!("cannot write {}: {e}", path.display()))
}

fn copy_rows(
    db: &Connection,
    table: &str,
    column: &str,
    original: &str,
    count: u64,
) -> rusqlite::Result<()> {
    let mut select = db.prepare(&format!("SELECT * FROM {table} WHERE {column} = ?1"))?;
    let own = select.column_index(column)?;
    let width = select.column_count();
    let rows = select.query_map([original], |row| (0..width).map(|at| row.get(at)).collect())?;
    let mut rows = rows.collect::<rusqlite::Result<Vec<Vec<Value>>>>()?;
    let placeholders = vec!["?"; width].join(", ");
    let mut insert = db.prepare(&format!("INSERT INTO {table} VALUES ({placeholders})"))?;
    for number in 0..count {
        let id = copy_id(original, number);
        for row in &mut rows {
            row[own] = Value::Text(id.clone());
            insert.execute(params_from_iter(row.iter()))?;
        }
    }
    Ok(())
}

/// Deducts the costs of the copies from their user and key.
fn deduct_costs(db: &Connection, original: &str, count: u64) -> rusqlite::Result<()> {
    let query = "SELECT settled, user_id, key_id FROM charges WHERE id = ?1";
    let (cost, user, key): (i64, String, String) = db.query_row(query, [original], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    })?;
    let spent = cost * i64::try_from(count).unwrap_or(0);
    db.execute(
        "UPDATE users SET balance = balance - ?1, used = used + ?1 WHERE id = ?2",
        params![spent, user],
    )?;
    db.execute(
        "UPDATE keys SET used = used + ?1 WHERE id = ?2",
        params![spent, key],
    )?;
    Ok(())
}

/// The database file in a data directory, recognised by its first bytes.
pub(super) fn find_database(data: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(data).map_err(|e| format!("{}: {e}", data.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let found = paths.find(|path| {
        let mut first = [0; 16];
        let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut first));
        read.is_ok() && first == *MAGIC
    });
    found.ok_or_else(|| format!("no database in {}", data.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn copies_have_ids_of_their_own_and_of_the_same_form() {
        let original = "task_0123456789abcdefghjkmnpqrstvw0";
        let ids: BTreeSet<String> = (0..1000).map(|n| copy_id(original, n)).collect();
        assert_eq!(ids.len(), 1000);
        assert!(
            ids.iter()
                .all(|id| id.len() == 35 && id.starts_with("task_0123456789"))
        );
    }
}
