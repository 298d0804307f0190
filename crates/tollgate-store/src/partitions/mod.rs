//! Partitions of the tables of tasks on PostgreSQL: ranges of task ids, which begin with the time. Purging drops a partition once all its tasks are
//! old, instead of deleting their rows one by one.
//!
//! The leader maintains them at intervals ([`Store::maintain_partitions`]). It is no problem if it is late: a row without a partition is stored in
//! the default partition, and is moved to its own partition when that is added.

mod convert;
mod days;
mod limits;

use tollgate_core::clock::{DAY, HOUR};
use tollgate_core::{Millis, id};

use crate::db::{DbError, Row, Sql, args, postgres};
use crate::error::StoreError;
use crate::store::{Readers, Store};
use days::{day_name, next_day};
use limits::LIMITS;

/// The number of partitions for the time that ended tasks are kept. Statements that find the partition only when they run lock all of them.
const PARTITIONS_OF_RETENTION: i64 = 6;
/// How long before the end of the last partition the next one is added.
const ADDED_BEFORE: Millis = DAY;
/// Tasks seldom take longer than this. A partition is checked for tasks that prevent its dropping only when this time has passed after its end.
const DROPPED_AFTER: Millis = HOUR;
// The bounds of a partition as ids; an empty text if there is none. The default partition has neither.
const PARTITIONS: Sql = Sql::both(
    "SELECT name, COALESCE(substring(bounds from 'FROM \\(''(task_[0-9a-z]+)''\\)'), ''),
            COALESCE(substring(bounds from 'TO \\(''(task_[0-9a-z]+)''\\)'), '')
     FROM (SELECT CAST(c.relname AS TEXT) AS name, pg_get_expr(c.relpartbound, c.oid) AS bounds
           FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = CAST('tasks' AS regclass)) AS partitions",
);
// The newest first, because the tasks that were submitted just before the partition's end ended last.
const NOT_EXPIRED: Sql = Sql::both(
    "SELECT id FROM tasks WHERE id >= $1 AND id < $2 AND (ended_at IS NULL OR ended_at > $3) ORDER BY id DESC LIMIT 1",
);

/// A partition for a range of ids.
struct Partition {
    /// The part of its name after the name of the table.
    suffix: String,
    /// The first id that it may contain; empty for the first partition.
    from: String,
    /// The first id after the partition.
    until: String,
}

impl Partition {
    /// Reads a row; `None` for the default partition.
    fn read(row: &mut Row) -> Result<Option<Self>, DbError> {
        let (name, from, until) = (row.text(0)?, row.text(1)?, row.text(2)?);
        let Some(suffix) = name.strip_prefix("tasks") else {
            return Ok(None);
        };
        Ok((!until.is_empty()).then(|| Self {
            suffix: suffix.to_owned(),
            from,
            until,
        }))
    }

    /// The time in the first id after the partition.
    fn ends_at(&self) -> Millis {
        id::task_id_time(&self.until).unwrap_or_default()
    }
}

/// Partitions of the tables of tasks.
impl Store {
    /// Runs one round of the leader: converts the tables to partitioned ones if they are not, adds the next partition in time, and drops partitions
    /// whose tasks all ended longer than `retention` ago. Does nothing on SQLite.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if others had locks that were needed. Everything works without this round too; the next one completes it.
    pub async fn maintain_partitions(
        &self,
        retention: Millis,
        now: Millis,
    ) -> Result<(), StoreError> {
        let Readers::Postgres { config, .. } = &*self.readers else {
            return Ok(());
        };
        if !self.move_queue(now).await? {
            return Ok(());
        }
        // A transaction of either database stays on one thread.
        let (config, runtime) = (config.clone(), tokio::runtime::Handle::current());
        let round = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                let mut connection = postgres::Connection::open(&config).await?;
                run_round(&mut connection, retention, now).await
            })
        });
        let result = round.await;
        result.map_err(|e| StoreError::Broken(format!("a round of partitions ended: {e}")))?
    }

    /// The first id from which ended tasks are not deleted row by row: tasks that ended until `ended_until` are deleted that way, unless their
    /// partition will be dropped soon.
    pub(crate) async fn first_id_kept(
        &self,
        ended_until: Millis,
        now: Millis,
    ) -> Result<String, StoreError> {
        let first_kept = id::min_task_id_at(ended_until + 1);
        let retention = now - ended_until;
        // Partitions are at least a day long: with a shorter retention, tasks would be kept for too long.
        if !self.is_shared() || retention < PARTITIONS_OF_RETENTION * DAY {
            return Ok(first_kept);
        }
        let mut rows = self.query(&PARTITIONS, &[]).await?;
        let Some(first) = read_partitions(&mut rows)?.into_iter().next() else {
            return Ok(first_kept);
        };
        // Tasks in a partition that a task of unusual length has kept from being dropped.
        let overdue = id::min_task_id_at(ended_until + 1 - 2 * period(retention));
        // The first partition contains all rows from before the conversion.
        let limit = match first.from.as_str() {
            "" => first.until.max(overdue),
            _ => overdue,
        };
        Ok(limit.min(first_kept))
    }
}

/// The length of a partition: a number of complete days.
fn period(retention: Millis) -> Millis {
    let days = retention / PARTITIONS_OF_RETENTION;
    (days + DAY - 1).div_euclid(DAY).max(1) * DAY
}

/// The partitions for ranges, in the order of their ids.
fn read_partitions(rows: &mut [Row]) -> Result<Vec<Partition>, DbError> {
    let read = rows.iter_mut().map(Partition::read);
    let mut partitions: Vec<_> = read
        .filter_map(Result::transpose)
        .collect::<Result<_, _>>()?;
    partitions.sort_unstable_by(|a, b| a.until.cmp(&b.until));
    Ok(partitions)
}

async fn run_round(
    connection: &mut postgres::Connection,
    retention: Millis,
    now: Millis,
) -> Result<(), StoreError> {
    let partitions = list(connection).await?;
    let Some(last) = partitions.last() else {
        return convert::run(connection, now).await;
    };
    if last.ends_at() < now + ADDED_BEFORE {
        add(connection, last, now + period(retention)).await?;
    }
    let ended_until = now - retention;
    for partition in &partitions {
        if partition.ends_at() + DROPPED_AFTER > ended_until {
            break;
        }
        drop_if_expired(connection, partition, ended_until).await?;
    }
    Ok(())
}

/// The partitions in the order of their ids. Empty if the tables are not partitioned.
async fn list(connection: &mut postgres::Connection) -> Result<Vec<Partition>, StoreError> {
    let mut tx = connection.begin_snapshot();
    let mut rows = tx.query(&PARTITIONS, &[]).await?;
    tx.commit().await?;
    Ok(read_partitions(&mut rows)?)
}

/// Adds a partition after `last` until at least `until`.
async fn add(
    connection: &mut postgres::Connection,
    last: &Partition,
    until: Millis,
) -> Result<(), StoreError> {
    let until = next_day(until.max(last.ends_at() + DAY));
    let script = include_str!("add.sql")
        .replace("{from}", &last.until)
        .replace("{until}", &id::min_task_id_at(until))
        .replace("{day}", &day_name(until));
    let mut tx = connection.begin();
    tx.run_script(LIMITS).await?;
    tx.run_script(&script).await?;
    tx.commit().await?;
    tracing::info!(until = day_name(until), "added partitions for tasks");
    Ok(())
}

/// Drops a partition of each table, unless it contains a task that did not end until `ended_until`.
async fn drop_if_expired(
    connection: &mut postgres::Connection,
    partition: &Partition,
    ended_until: Millis,
) -> Result<(), StoreError> {
    let (suffix, ends_at) = (&partition.suffix, partition.ends_at());
    let mut tx = connection.begin_snapshot();
    let of_partition = args![&partition.from, &partition.until, ended_until];
    let kept = tx.query(&NOT_EXPIRED, of_partition).await?;
    tx.commit().await?;
    if !kept.is_empty() {
        return Ok(());
    }
    let mut tx = connection.begin();
    tx.run_script(LIMITS).await?;
    tx.run_script("LOCK TABLE ONLY tasks, ONLY attempts, ONLY callbacks, ONLY callback_tries IN ACCESS EXCLUSIVE MODE")
        .await?;
    tx.run_script(&format!(
        "DROP TABLE tasks{suffix}, attempts{suffix}, callbacks{suffix}, callback_tries{suffix}"
    ))
    .await?;
    tx.commit().await?;
    tracing::info!(until = day_name(ends_at), "dropped partitions of old tasks");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_partitions_depends_on_the_retention() {
        for (retention, days) in [
            (0, 1),
            (HOUR, 1),
            (6 * DAY, 1),
            (6 * DAY + 6, 2),
            (30 * DAY, 5),
            (31 * DAY, 6),
        ] {
            assert_eq!(period(retention), days * DAY, "{retention}");
        }
        assert_eq!(next_day(0), 0);
        assert_eq!(next_day(1), DAY);
        assert_eq!(day_name(1_790_000_000_000), "20260921");
    }
}
