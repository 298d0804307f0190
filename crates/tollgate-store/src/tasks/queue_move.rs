//! Reads the state of unfinished tasks from the table that contains it, and moves it to the table `queue`.

use tollgate_core::Millis;

use super::queue_table::{HAS_MOVED, QueueSql, QueueTable};
use super::shards::Shards;
use crate::db::migrate::{QUEUE_SCHEMA, move_queue};
use crate::db::{Row, Sql, Tx, Value, args, postgres};
use crate::error::StoreError;
use crate::store::{Readers, Store};

// A node that has just started has not recorded yet which schema it knows.
const OLDER_NODES: Sql = Sql::both(
    "SELECT id FROM nodes WHERE alive_until > $1 AND COALESCE(schema_version, 0) < $2 LIMIT 1",
);
/// Clients wait while the move waits for a lock or copies rows, so it gives up early and is retried later.
const LOCK_ALONE: &str = "SET LOCAL lock_timeout = '500ms'; SET LOCAL statement_timeout = '3s'; SELECT pg_advisory_xact_lock(7053117);
    LOCK TABLE tasks IN ACCESS EXCLUSIVE MODE";

/// The table of the queue.
impl Store {
    /// Sets the shards that this node claims first, and into which it puts the tasks that it accepts. Before the first call, these are all shards.
    pub fn set_own_shards(&self, shards: Shards) {
        self.writer.queue_state.set_own_shards(shards);
    }

    /// Runs a query on a reader's connection. If it runs while the state is moved, or just before, it fails on the old columns: then it is run on the
    /// table that leads now.
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

    /// The table that leads now. If the state has not moved yet, it may do so before the next read.
    pub(crate) async fn queue_table(&self) -> Result<QueueTable, StoreError> {
        let state = &self.writer.queue_state;
        if state.has_moved() {
            return Ok(QueueTable::Queue);
        }
        let value = self.first(&HAS_MOVED, &[], |row| row.int(0)).await?;
        Ok(state.note(value.unwrap_or_default()))
    }

    /// Moves the state of unfinished tasks to the table `queue` once no node of an older version is alive. Returns whether it is there. The leader
    /// calls this until it is; before that everything works, only with larger writes.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] if a long read of the table `tasks` blocks the move: retry later.
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
        pg.run_script(LOCK_ALONE).await?;
    }
    // Another leader may have moved it in between, or an older node may have started.
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
