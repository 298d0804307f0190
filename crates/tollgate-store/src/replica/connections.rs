//! The connections to a replica.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::state::State;
use crate::db::{DbError, Row, Sql, Value, postgres};
use crate::error::StoreError;

/// How long a read of the replica may take before the primary is read instead.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Slow reads: how many may run at the same time, and how long each.
const SLOW_CONNECTIONS: usize = 3;
const SLOW_LIMIT: Duration = Duration::from_secs(5);

/// The connections to a replica, and how far it has replayed.
pub(crate) struct Replica {
    readers: postgres::Readers,
    slow_readers: postgres::Readers,
    state: Mutex<State>,
}

impl Replica {
    /// A replica to which connections are opened when it is first used.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let in_setup = |e: DbError| StoreError::from(e).in_setup("database.replica_url");
        let config = postgres::config(url).map_err(in_setup)?;
        let slow = postgres::Readers::slow(&config, SLOW_CONNECTIONS, SLOW_LIMIT);
        Ok(Self {
            readers: postgres::Readers::new(&config).map_err(in_setup)?,
            slow_readers: slow.map_err(in_setup)?,
            state: Mutex::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may be read: it has everything up to a recent moment.
    pub(super) fn is_fresh(&self) -> bool {
        self.lock().fresh(Instant::now()).is_some()
    }

    /// Records that this process has changed an ended task or chat, which is read from the primary until the replica has the change.
    pub(crate) fn note_change(&self) {
        self.lock().changed_at = Some(Instant::now());
    }

    /// Runs a query on the replica. `None` if it does not respond in time.
    pub(crate) async fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Option<Vec<Row>> {
        let rows = tokio::time::timeout(READ_TIMEOUT, self.readers.query(sql, args)).await;
        self.rows_or_lose(rows.unwrap_or(Err(DbError::QueryTimeout)))
    }

    /// The same for a slow query, which ends at `until`. `None` if the replica does not respond.
    ///
    /// # Errors
    /// [`StoreError::QueryTimeout`] if the replica responds and the query takes too long: it would take as long on the primary.
    pub(super) async fn query_slow(
        &self,
        sql: &Sql,
        args: &[Value<'_>],
        until: Instant,
    ) -> Result<Option<Vec<Row>>, StoreError> {
        let limit = until.saturating_duration_since(Instant::now());
        let limit = limit.min(SLOW_LIMIT);
        let rows = tokio::time::timeout(limit, self.slow_readers.query(sql, args)).await;
        match rows.unwrap_or(Err(DbError::QueryTimeout)) {
            Err(DbError::QueryTimeout) if self.is_fresh() => Err(DbError::QueryTimeout.into()),
            rows => Ok(self.rows_or_lose(rows)),
        }
    }

    fn rows_or_lose(&self, rows: Result<Vec<Row>, DbError>) -> Option<Vec<Row>> {
        rows.inspect_err(|e| {
            // Until the next comparison, other reads need not wait for the replica.
            self.lock().lose();
            tracing::warn!(error = %e, "the replica does not respond; the primary is read");
        })
        .ok()
    }

    /// The first row of a query, within a second.
    pub(super) async fn query_first(&self, sql: &Sql) -> Result<Row, String> {
        let rows = tokio::time::timeout(READ_TIMEOUT, self.readers.query(sql, &[])).await;
        let rows = rows.map_err(|_| "it does not respond within 1 s".to_owned())?;
        let first = rows.map_err(|e| e.to_string())?.into_iter().next();
        first.ok_or_else(|| "it returns no row".to_owned())
    }
}
