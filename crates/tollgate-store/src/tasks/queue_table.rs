//! Selects the table with the state of unfinished tasks: the narrow table `queue` or, while nodes of a version before that table are alive, `tasks`.
//!
//! The state moves once, in one transaction, when no such node is alive any more (`queue_move.rs`). Each batch of this version takes a shared lock
//! before it reads which table leads, and keeps it until its end; the move takes the same lock exclusively. So no batch writes to a table that has
//! just ceased to lead. Once a process has read that the state has moved, it does not check again.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use tollgate_core::Millis;

use super::shards::Shards;
use crate::db::{DbError, Sql, Tx};

pub(super) const HAS_MOVED: Sql = Sql::both("SELECT value FROM meta WHERE name = 'queue_moved'");
/// The lock that batches share and that the move takes exclusively.
const SHARE_LOCK: &str = "SELECT pg_advisory_xact_lock_shared(7053117)";

/// The table with the state of unfinished tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueTable {
    /// The table `queue`.
    Queue,
    /// The table `tasks`, as before schema version 24.
    Tasks,
}

/// A statement on the state of unfinished tasks, for each table that may contain it. Both texts have the same parameters.
pub(crate) struct QueueSql {
    pub(crate) queue: Sql,
    pub(crate) tasks: Sql,
}

impl QueueSql {
    /// The statement for that table.
    pub(crate) fn on(&self, table: QueueTable) -> &Sql {
        match table {
            QueueTable::Queue => &self.queue,
            QueueTable::Tasks => &self.tasks,
        }
    }
}

/// What this process knows about the queue.
#[derive(Debug)]
pub(crate) struct QueueState {
    has_moved: AtomicBool,
    /// The shards that this node claims first.
    own_shards: AtomicU64,
    /// When to search for expired leases again.
    expiry_check_at: AtomicI64,
}

impl Default for QueueState {
    fn default() -> Self {
        Self {
            has_moved: AtomicBool::default(),
            own_shards: AtomicU64::new(Shards::ALL.bits()),
            expiry_check_at: AtomicI64::default(),
        }
    }
}

impl QueueState {
    /// The shards that this node claims first.
    pub(crate) fn own_shards(&self) -> Shards {
        Shards::from_bits(self.own_shards.load(Ordering::Relaxed))
    }

    /// Sets the shards that this node claims first.
    pub(super) fn set_own_shards(&self, shards: Shards) {
        self.own_shards.store(shards.bits(), Ordering::Relaxed);
    }

    /// The table that leads until the end of the transaction `tx`.
    pub(crate) async fn lock(&self, tx: &mut Tx<'_>) -> Result<QueueTable, DbError> {
        if self.has_moved() {
            return Ok(QueueTable::Queue);
        }
        if let Tx::Postgres(pg) = tx {
            pg.run_script(SHARE_LOCK).await?;
        }
        let row = tx.first(&HAS_MOVED, &[]).await?;
        let value = row.map_or(Ok(0), |row| row.int(0))?;
        Ok(self.note(value))
    }

    /// Whether to search for expired leases now, with at most `interval` between two searches.
    pub(crate) fn is_expiry_check_due(&self, now: Millis, interval: Millis) -> bool {
        let at = self.expiry_check_at.load(Ordering::Relaxed);
        // A search is never planned further ahead than `interval`: if it is, the clock was set back since.
        now >= at || at - now > interval
    }

    /// Sets the time of the next search: the first of the existing leases ends at `first_end`.
    pub(crate) fn note_expiry_check(&self, latest: Millis, first_end: Option<Millis>) {
        let at = first_end.map_or(latest, |end| end.min(latest));
        self.expiry_check_at.store(at, Ordering::Relaxed);
    }

    /// Records a new lease.
    pub(crate) fn note_lease(&self, until: Millis) {
        self.expiry_check_at.fetch_min(until, Ordering::Relaxed);
    }

    pub(super) fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Relaxed)
    }

    /// Records the value of `queue_moved`.
    pub(super) fn note(&self, value: i64) -> QueueTable {
        if value == 0 {
            return QueueTable::Tasks;
        }
        self.has_moved.store(true, Ordering::Relaxed);
        QueueTable::Queue
    }
}
