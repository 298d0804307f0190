//! Where the state of unfinished tasks is: in the narrow table `queue`, or, while nodes of a version before that table are alive, in `tasks`.
//!
//! The state moves once, in one transaction, when no such node is alive any more ([`Store::move_queue`]). Each batch of this version holds a shared
//! lock from before it learns which table leads until its end, and the move holds that lock alone: so no batch writes to the table that has just lost
//! the lead. Once a process has seen that the state has moved, it never asks again.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use tollgate_core::Millis;

use super::shards::Shards;
use crate::db::migrate::{QUEUE_SCHEMA, move_queue};
use crate::db::{DbError, Row, Sql, Tx, Value, args, postgres};
use crate::error::StoreError;
use crate::store::{Readers, Store};

const HAS_MOVED: Sql = Sql::both("SELECT value FROM meta WHERE name = 'queue_moved'");
// A node that has just started has not said yet which schema it knows.
const OLDER_NODES: Sql = Sql::both(
    "SELECT id FROM nodes WHERE alive_until > $1 AND COALESCE(schema_version, 0) < $2 LIMIT 1",
);
/// The lock that batches share and the move has alone.
const SHARE_LOCK: &str = "SELECT pg_advisory_xact_lock_shared(7053117)";
/// Clients wait while the move waits for a lock or copies: so it gives up early, and is tried again later.
const LOCK_ALONE: &str = "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '3s'; SELECT pg_advisory_xact_lock(7053117);
    LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE";

/// Which table has the state of unfinished tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueTable {
    /// `queue`.
    Queue,
    /// `tasks`, as before schema version 24.
    Tasks,
}

/// A statement on the state of unfinished tasks, for each table that may have it. Both have the same parameters.
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

/// What this process knows of the queue.
#[derive(Debug)]
pub(crate) struct QueueState {
    has_moved: AtomicBool,
    /// The shards that this node claims first.
    own_shards: AtomicU64,
    /// When to look for expired leases again.
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

    /// Which table leads in the transaction `tx`, until its end.
    pub(crate) async fn lock(&self, tx: &mut Tx<'_>) -> Result<QueueTable, DbError> {
        if self.has_moved() {
            return Ok(QueueTable::Queue);
        }
        if let Tx::Postgres(pg) = tx {
            pg.script(SHARE_LOCK).await?;
        }
        let row = tx.first(&HAS_MOVED, &[]).await?;
        let value = row.map_or(Ok(0), |row| row.int(0))?;
        Ok(self.note(value))
    }

    /// Whether to look for expired leases now, with `interval` between two looks at most.
    pub(crate) fn is_expiry_check_due(&self, now: Millis, interval: Millis) -> bool {
        let at = self.expiry_check_at.load(Ordering::Relaxed);
        // It is never set further off: the clock went back.
        now >= at || at - now > interval
    }

    /// Notes when to look again: of the leases that there are, the first ends at `first_end`.
    pub(crate) fn note_expiry_check(&self, latest: Millis, first_end: Option<Millis>) {
        let at = first_end.map_or(latest, |end| end.min(latest));
        self.expiry_check_at.store(at, Ordering::Relaxed);
    }

    /// Notes a new lease.
    pub(crate) fn note_lease(&self, until: Millis) {
        self.expiry_check_at.fetch_min(until, Ordering::Relaxed);
    }

    fn has_moved(&self) -> bool {
        self.has_moved.load(Ordering::Relaxed)
    }

    /// Notes the value of `queue_moved`.
    fn note(&self, value: i64) -> QueueTable {
        if value == 0 {
            return QueueTable::Tasks;
        }
        self.has_moved.store(true, Ordering::Relaxed);
        QueueTable::Queue
    }
}

/// The table of the queue.
impl Store {
    /// Sets which shards this node claims first, and puts what it accepts into. Until then, all.
    pub fn set_own_shards(&self, shards: Shards) {
        let own = &self.writer.queue_state.own_shards;
        own.store(shards.bits(), Ordering::Relaxed);
    }

    /// Runs a query on a reader's connection. One that waited while the state moved, or that came just before, fails on the old columns: then it is run on
    /// the table that leads now.
    pub(crate) async fn query_queue(
        &self,
        sql: &QueueSql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        let table = self.queue_table().await?;
        let rows = self.query(sql.on(table), args).await;
        let may_have_moved = table == QueueTable::Tasks && rows.is_err();
        if may_have_moved && self.queue_table().await? == QueueTable::Queue {
            return self.query(&sql.queue, args).await;
        }
        rows
    }

    /// Which table leads now. Until the state has moved, it may do so before the next read.
    pub(crate) async fn queue_table(&self) -> Result<QueueTable, StoreError> {
        let state = &self.writer.queue_state;
        if state.has_moved() {
            return Ok(QueueTable::Queue);
        }
        let value = self.first(&HAS_MOVED, &[], |row| row.int(0)).await?;
        Ok(state.note(value.unwrap_or_default()))
    }

    /// Moves the state of unfinished tasks to the table `queue` once no node of an older version is alive. Returns whether it is there. The leader calls
    /// this until it is: while it is not, all works as before, only with larger writes.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if a long read of the table `tasks` is in the way: try again later.
    pub async fn move_queue(&self, now: Millis) -> Result<bool, StoreError> {
        let Readers::Postgres { config, .. } = &*self.readers else {
            return Ok(true);
        };
        if self.queue_table().await? == QueueTable::Queue {
            return Ok(true);
        }
        let older = self.query(&OLDER_NODES, args![now, QUEUE_SCHEMA]).await?;
        if !older.is_empty() {
            return Ok(false);
        }
        // A transaction of either database stays on one thread.
        let (config, runtime) = (config.clone(), tokio::runtime::Handle::current());
        let moved =
            tokio::task::spawn_blocking(move || runtime.block_on(move_on_postgres(&config, now)));
        moved
            .await
            .map_err(|e| StoreError::Broken(format!("the move of the queue ended: {e}")))??;
        Ok(self.queue_table().await? == QueueTable::Queue)
    }
}

async fn move_on_postgres(config: &tokio_postgres::Config, now: Millis) -> Result<(), StoreError> {
    let mut connection = postgres::Connection::open(config).await?;
    let mut tx = Tx::Postgres(connection.begin());
    if let Tx::Postgres(pg) = &mut tx {
        pg.script(LOCK_ALONE).await?;
    }
    // Another leader may have moved it meanwhile, or an older node have come.
    let moved = tx.first(&HAS_MOVED, &[]).await?;
    let moved = moved.map_or(Ok(0), |row| row.int(0))? != 0;
    let older = tx.query(&OLDER_NODES, args![now, QUEUE_SCHEMA]).await?;
    let moves = !moved && older.is_empty();
    if moves {
        move_queue(&mut tx).await?;
    }
    if let Tx::Postgres(pg) = tx {
        pg.commit().await?;
    }
    if moves {
        tracing::info!("the state of unfinished tasks has moved to the table queue");
    }
    Ok(())
}
