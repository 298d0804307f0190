//! A streaming replica of the database (`database.replica_url`), from which data is read that does not change any more: ended tasks, and the older
//! part of lists of tasks and chats.
//!
//! It is read only while it is fresh: `Store::watch_replica` ([`reads`]) has found within [`MAX_AGE`] that it had replayed everything that was
//! committed up to a moment, and this process has refunded nothing since that moment. Money, unfinished tasks and recently written data are read from
//! the primary, and so is everything for which the replica does not respond.

mod reads;

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::{Millis, clock};

use crate::db::{DbError, Row, Sql, Value, postgres};
use crate::error::StoreError;

/// The maximum age of the moment up to which the replica is known to have everything.
const MAX_AGE: Duration = Duration::from_secs(2);
/// Positions of the primary that are remembered until the replica has reached them.
const MAX_POSITIONS: usize = 16;
/// How long a read of the replica may take before the primary is read instead.
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Slow reads: how many may run at the same time, and how long each.
const SLOW_CONNECTIONS: usize = 3;
const SLOW_LIMIT: Duration = Duration::from_secs(5);
/// The longest time between the time in a task's id and the commit of its row.
pub(crate) const TASK_WRITE_TIME: Millis = 30 * clock::SECOND;
/// The same for chats, whose rows are written when they end.
pub(crate) const CHAT_WRITE_TIME: Millis = clock::DAY;

/// The connections to a replica, and how far it has replayed.
pub(crate) struct Replica {
    readers: postgres::Readers,
    slow_readers: postgres::Readers,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Positions of the primary that the replica has not reached yet, and when each was read.
    positions: VecDeque<Position>,
    /// The last position that it has reached.
    reached: Option<Position>,
    /// When this process last changed an ended task or chat.
    changed_at: Option<Instant>,
    /// Whether it was verified to be a replica of this database.
    is_known: bool,
}

/// A position in the primary's write-ahead log.
#[derive(Debug, Clone, Copy)]
struct Position {
    bytes: i64,
    read_at: Instant,
    /// The time of the read by the primary's clock.
    time: Millis,
}

impl State {
    /// The last position that the replica has reached, if it is recent.
    fn fresh(&self, now: Instant) -> Option<Position> {
        let reached = self.reached?;
        let is_recent = now.saturating_duration_since(reached.read_at) <= MAX_AGE;
        let is_later = self.changed_at.is_none_or(|at| at < reached.read_at);
        (is_recent && is_later).then_some(reached)
    }

    fn note(&mut self, primary: Position, replayed: i64) {
        if self.positions.len() == MAX_POSITIONS {
            self.positions.pop_front();
        }
        self.positions.push_back(primary);
        while let Some(first) = self.positions.front()
            && first.bytes <= replayed
        {
            self.reached = self.positions.pop_front();
        }
    }

    /// Records that the replica does not respond, or is not a replica.
    fn lose(&mut self) {
        self.positions.clear();
        self.reached = None;
        self.is_known = false;
    }
}

impl Replica {
    /// A replica to which connections are opened when it is first used.
    fn new(url: &str) -> Result<Self, StoreError> {
        let in_setup = |e: DbError| StoreError::from(e).in_setup("database.replica_url");
        let config = postgres::config(url).map_err(in_setup)?;
        let slow = postgres::Readers::slow(&config, SLOW_CONNECTIONS, SLOW_LIMIT);
        Ok(Self {
            readers: postgres::Readers::new(&config).map_err(in_setup)?,
            slow_readers: slow.map_err(in_setup)?,
            state: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it may be read: it has everything up to a recent moment.
    fn is_fresh(&self) -> bool {
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
    pub(crate) async fn query_slow(
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
    async fn one(&self, sql: &Sql) -> Result<Row, String> {
        let rows = tokio::time::timeout(READ_TIMEOUT, self.readers.query(sql, &[])).await;
        let rows = rows.map_err(|_| "it does not respond within 1 s".to_owned())?;
        let first = rows.map_err(|e| e.to_string())?.into_iter().next();
        first.ok_or_else(|| "it returns no row".to_owned())
    }
}

/// The database that rows are read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Primary,
    Replica,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(bytes: i64, read_at: Instant) -> Position {
        Position {
            bytes,
            read_at,
            time: bytes,
        }
    }

    #[test]
    fn a_replica_is_fresh_while_it_has_reached_a_recent_position() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut state = State::default();
        assert!(state.fresh(start).is_none());
        state.note(position(100, at(0)), 99);
        assert!(state.fresh(at(0)).is_none());
        // The replica has reached the first position, but not the second.
        state.note(position(200, at(500)), 150);
        assert_eq!(state.fresh(at(2_000)).unwrap().bytes, 100);
        assert!(state.fresh(at(2_001)).is_none());
        state.note(position(300, at(1_000)), 300);
        assert_eq!(state.fresh(at(3_000)).unwrap().bytes, 300);
        // After a change of this process, the replica is not fresh until it has reached a later position.
        state.changed_at = Some(at(1_200));
        assert!(state.fresh(at(1_300)).is_none());
        state.note(position(400, at(1_500)), 400);
        assert_eq!(state.fresh(at(1_500)).unwrap().bytes, 400);
        state.lose();
        assert!(state.fresh(at(1_500)).is_none());
    }

    #[test]
    fn the_number_of_unreached_positions_is_limited() {
        let start = Instant::now();
        let mut state = State::default();
        for n in 0..100 {
            state.note(position(100 + n, start), 0);
        }
        assert_eq!(state.positions.len(), MAX_POSITIONS);
    }
}
