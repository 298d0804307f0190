//! Reads from the replica, and compares it with the primary.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tollgate_core::Millis;

use super::connections::Replica;
use super::state::{MAX_AGE, Position};
use crate::db::{DbError, Row, Sql, Value};
use crate::error::StoreError;
use crate::store::Store;

/// How often the replica is compared with the primary.
const INTERVAL: Duration = Duration::from_millis(500);

const POSITION: Sql = Sql::both(
    "SELECT CAST(pg_current_wal_lsn() - '0/0' AS BIGINT), CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
);
const REPLAYED: Sql = Sql::both(
    "SELECT CAST(pg_last_wal_replay_lsn() - '0/0' AS BIGINT), CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END",
);
// Identifies the server's data, which is the same for a streaming replica and its primary, and the database in it.
const IDENTITY: Sql = Sql::both(
    "SELECT CAST(system_identifier AS TEXT) || '/' || CAST(current_database() AS TEXT) FROM pg_control_system()",
);

/// The database that rows are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Primary,
    Replica,
}

/// The replica.
impl Store {
    /// The same store, with a streaming replica of its PostgreSQL from which it reads data that does not change any more. [`Store::watch_replica`]
    /// must run.
    ///
    /// # Errors
    /// [`StoreError::Setup`] if the URL is invalid. It is no error if the replica does not respond.
    pub fn with_replica(mut self, url: &str) -> Result<Self, StoreError> {
        self.replica = Some(Arc::new(Replica::new(url)?));
        Ok(self)
    }

    /// The replica, if it may be read now.
    pub(crate) fn fresh_replica(&self) -> Option<&Replica> {
        self.replica.as_deref().filter(|replica| replica.is_fresh())
    }

    /// The time until which rows, by the time in their ids, may be read from the replica if they are committed within `write_time` of it. `None` if
    /// none may be.
    pub(crate) fn replica_complete_until(&self, write_time: Millis) -> Option<Millis> {
        let fresh = self.replica.as_ref()?.lock().fresh(Instant::now())?;
        Some(fresh.time - write_time)
    }

    /// As [`Store::query_slow_until`], on the replica; on the primary if `source` is the primary, or the replica does not respond.
    pub(crate) async fn query_slow_from(
        &self,
        source: Source,
        sql: &'static Sql,
        args: &[Value<'_>],
        until: Instant,
    ) -> Result<Vec<Row>, StoreError> {
        if source == Source::Replica
            && let Some(replica) = self.fresh_replica()
            && let Some(rows) = replica.query_slow(sql, args, until).await?
        {
            return Ok(rows);
        }
        self.query_slow_until(sql, args, until).await
    }

    /// Compares the replica with the primary once. `None` without a replica; else by how many milliseconds it is behind at most, or why it is not
    /// read.
    pub async fn check_replica(&self) -> Option<Result<Millis, String>> {
        let replica = self.replica.as_ref()?;
        let compared = self.compare_replica(replica).await;
        if compared.is_err() {
            replica.lock().lose();
        }
        Some(compared.and_then(|behind| {
            let behind = behind.ok_or_else(|| "it has not caught up yet".to_owned())?;
            let ms = behind.as_millis();
            if behind > MAX_AGE {
                return Err(format!("it is {ms} ms behind"));
            }
            Ok(Millis::try_from(ms).unwrap_or(Millis::MAX))
        }))
    }

    /// How far the replica is behind at most; `None` if it has not reached any position yet.
    ///
    /// # Errors
    /// Why it must not be read at all.
    async fn compare_replica(&self, replica: &Replica) -> Result<Option<Duration>, String> {
        let read_at = Instant::now();
        let of_primary = async |sql: &Sql| {
            let rows = self.query(sql, &[]).await.map_err(|e| e.to_string())?;
            let first = rows.into_iter().next();
            first.ok_or_else(|| "the primary returns no row".to_owned())
        };
        let in_row = |e: DbError| e.to_string();
        let position = of_primary(&POSITION).await?;
        let position = Position {
            bytes: position.int(0).map_err(in_row)?,
            time: position.int(1).map_err(in_row)?,
            read_at,
        };
        if !replica.lock().is_known {
            let own = of_primary(&IDENTITY).await?.text(0).map_err(in_row)?;
            let other = replica
                .query_first(&IDENTITY)
                .await?
                .text(0)
                .map_err(in_row)?;
            if own != other {
                return Err("it is a replica of another database".to_owned());
            }
            replica.lock().is_known = true;
        }
        let replayed = replica.query_first(&REPLAYED).await?;
        if replayed.int(1).map_err(in_row)? == 0 {
            return Err("it is no replica: it is not in recovery".to_owned());
        }
        let bytes = replayed.opt_int(0).map_err(in_row)?.unwrap_or_default();
        let mut state = replica.lock();
        state.note(position, bytes);
        let reached = state.reached.map(|reached| reached.read_at);
        Ok(reached.map(|at| read_at.saturating_duration_since(at)))
    }

    /// Compares the replica with the primary in an endless loop, and calls `report` with each outcome. Returns at once without a replica.
    pub async fn watch_replica(&self, report: impl Fn(&Result<Millis, String>)) {
        while let Some(compared) = self.check_replica().await {
            report(&compared);
            tokio::time::sleep(INTERVAL).await;
        }
    }
}
