//! Converts the tables of tasks to partitioned ones without downtime, however many rows they have.
//!
//! 1. A constraint requires that all ids are before a day in the near future. It is added without checking existing rows, and applies to new ones
//!    from then on.
//! 2. PostgreSQL validates it: it reads the tables while all other work continues.
//! 3. In one transaction each table becomes the first partition of a new table with its name, which takes milliseconds.
//!
//! The progress is stored only in the database, so that a new leader continues with it. If the conversion has not ended shortly before that day
//! (there was no leader, or a backup blocked it for long), the constraint is dropped before it would reject new tasks, and the conversion begins
//! again.

use tollgate_core::Millis;
use tollgate_core::clock::DAY;
use tollgate_core::id;

use super::days::{day_name, next_day};
use super::limits::LIMITS;
use crate::db::{Sql, postgres};
use crate::error::StoreError;

/// How long the steps may take.
const TIME: Millis = 2 * DAY;
/// If less than this is left of that time, it is too late.
const TOO_LATE: Millis = DAY;

const TABLES: [(&str, &str); 4] = [
    ("tasks", "id"),
    ("attempts", "task_id"),
    ("callbacks", "task_id"),
    ("callback_tries", "task_id"),
];
const NAME: &str = "before_first_partition_ends";
/// The id in the constraint of `tasks`; the constraints of the other tables have the same id.
const BOUND: Sql = Sql::both(
    "SELECT substring(pg_get_constraintdef(oid) from '''(task_[0-9a-z]+)''') FROM pg_constraint
     WHERE conrelid = CAST('tasks' AS regclass) AND conname = 'before_first_partition_ends'",
);

/// Runs the remaining steps.
pub(super) async fn run(
    connection: &mut postgres::Connection,
    now: Millis,
) -> Result<(), StoreError> {
    let bound = match read_bound(connection).await? {
        Some(bound) if id::task_id_time(&bound) >= Some(now + TOO_LATE) => bound,
        Some(_) => {
            change(connection, |(table, _)| {
                format!("ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {NAME}")
            })
            .await?;
            return Ok(());
        }
        None => {
            let bound = id::min_task_id_at(next_day(now + TIME));
            change(connection, |(table, id)| {
                format!(
                    "ALTER TABLE {table} ADD CONSTRAINT {NAME} CHECK ({id} < '{bound}') NOT VALID"
                )
            })
            .await?;
            bound
        }
    };
    for (table, _) in TABLES {
        let mut tx = connection.begin();
        tx.run_script(&format!("ALTER TABLE {table} VALIDATE CONSTRAINT {NAME}"))
            .await?;
        tx.commit().await?;
    }
    let day = day_name(id::task_id_time(&bound).unwrap_or_default());
    let script = include_str!("convert.sql")
        .replace("{bound}", &bound)
        .replace("{day}", &day);
    let mut tx = connection.begin();
    tx.run_script(LIMITS).await?;
    tx.run_script(&script).await?;
    tx.commit().await?;
    tracing::info!(
        until = day,
        "the tables of tasks have partitions from now on"
    );
    Ok(())
}

/// Reads the bound in the constraints. `None` if there are none.
async fn read_bound(connection: &mut postgres::Connection) -> Result<Option<String>, StoreError> {
    let mut tx = connection.begin_snapshot();
    let mut rows = tx.query(&BOUND, &[]).await?;
    tx.commit().await?;
    Ok(rows.first_mut().map(|row| row.text(0)).transpose()?)
}

/// Runs a statement for each table in one transaction.
async fn change(
    connection: &mut postgres::Connection,
    statement: impl Fn((&str, &str)) -> String,
) -> Result<(), StoreError> {
    let mut tx = connection.begin();
    tx.run_script(LIMITS).await?;
    for table in TABLES {
        tx.run_script(&statement(table)).await?;
    }
    tx.commit().await?;
    Ok(())
}
