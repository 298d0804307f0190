//! The records of nodes (table `nodes`; heartbeats are in `chats/orphans.rs`), and which node is the leader (table `leader`).

use async_trait::async_trait;
use tollgate_core::Millis;

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

const RECORD_NODE: Sql = Sql::both(
    "INSERT INTO nodes (id, alive_until, version, started_at, last_seen_at, config_version, config_error, schema_version,
                        clock_offset, settings, not_ready)
     VALUES ($1, 0, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, started_at = excluded.started_at,
        last_seen_at = excluded.last_seen_at, config_version = excluded.config_version, config_error = excluded.config_error,
        schema_version = excluded.schema_version, clock_offset = excluded.clock_offset, settings = excluded.settings,
        not_ready = excluded.not_ready",
);
const LIVE_NODES: Sql = Sql::both(
    "SELECT n.id, n.version, n.started_at, n.last_seen_at, n.config_version, n.config_error, n.schema_version, n.clock_offset,
            n.settings, n.not_ready, CASE WHEN l.until > $1 THEN 1 ELSE 0 END
     FROM nodes n LEFT JOIN leader l ON l.node = n.id
     WHERE n.alive_until > $1 AND n.started_at IS NOT NULL ORDER BY n.started_at DESC, n.id DESC",
);
// A node whose heartbeat has ended counts as dead for the others at once.
pub(crate) const END_NODE: Sql =
    Sql::both("UPDATE nodes SET alive_until = $1 WHERE id = $2 AND alive_until > $1");
pub(crate) const LEAD: Sql = Sql::both(
    "UPDATE leader SET node = $1, until = $2 WHERE name = 'leader' AND (node = $1 OR until <= $3)",
);
const STOP_LEADING: Sql = Sql::both("UPDATE leader SET until = 0 WHERE node = $1");
pub(crate) const OLDEST_COMPATIBLE: Sql =
    Sql::both("SELECT value FROM meta WHERE name = 'oldest_compatible'");

/// The record of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its name: each start of a process is a new node.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// When it started.
    pub started_at: Millis,
    /// When it last wrote its record.
    pub last_seen_at: Millis,
    /// The version of the database's configuration that it applies.
    pub config_version: i64,
    /// The parts of that configuration that it cannot use. `None` if it uses all of it.
    pub config_error: Option<String>,
    /// The newest schema version that its program knows. `None` if an older program wrote the record.
    pub schema_version: Option<i64>,
    /// How far its machine's clock is ahead of the database's, in milliseconds. `None` if it has not been measured.
    pub clock_offset: Option<Millis>,
    /// Its settings that must be the same on all nodes, as a JSON object. `None` if an older program wrote the record.
    pub settings: Option<String>,
    /// Why it is not ready. `None` if it is.
    pub not_ready: Option<String>,
    /// Whether it is the leader. [`Store::record_node`] does not write this.
    pub is_leader: bool,
}

/// Nodes.
impl Store {
    /// Writes the record of a node, after its first heartbeat.
    ///
    /// # Errors
    /// The database's.
    pub async fn record_node(&self, node: NodeRecord) -> Result<(), StoreError> {
        self.write(RecordNode(node)).await
    }

    /// The nodes that are alive, the newest first.
    ///
    /// # Errors
    /// The database's.
    pub async fn live_nodes(&self, now: Millis) -> Result<Vec<NodeRecord>, StoreError> {
        let mut rows = self.query(&LIVE_NODES, args![now]).await?;
        Ok(rows.iter_mut().map(read_node).collect::<Result<_, _>>()?)
    }

    /// Makes a node the leader until `until`, if it is already the leader or there is none. Returns whether it is.
    ///
    /// # Errors
    /// The database's.
    pub async fn acquire_leadership(
        &self,
        node: &str,
        until: Millis,
        now: Millis,
    ) -> Result<bool, StoreError> {
        let node = node.to_owned();
        self.write(AcquireLeadership { node, until, now }).await
    }

    /// Ends a node that has released all it held: other nodes no longer count it and do not wait for its heartbeat to expire.
    ///
    /// # Errors
    /// The database's.
    pub async fn end_node(&self, node: &str, now: Millis) -> Result<(), StoreError> {
        let node = node.to_owned();
        self.write(EndNode { node, now }).await
    }

    /// The oldest schema version whose programs may use this database: programs that know only older ones must stop.
    ///
    /// # Errors
    /// The database's.
    pub async fn oldest_compatible_schema(&self) -> Result<i64, StoreError> {
        let oldest = self
            .first(&OLDEST_COMPATIBLE, &[], |row| row.int(0))
            .await?;
        Ok(oldest.unwrap_or_default())
    }
}

struct AcquireLeadership {
    node: String,
    until: Millis,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for AcquireLeadership {
    type Out = bool;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let args = args![&self.node, self.until, self.now];
        Ok(batch.execute(&LEAD, args).await? == 1)
    }
}

struct EndNode {
    node: String,
    now: Millis,
}

#[async_trait(?Send)]
impl Write for EndNode {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&STOP_LEADING, args![&self.node])?;
        batch.queue(&END_NODE, args![self.now, &self.node])
    }
}

struct RecordNode(NodeRecord);

#[async_trait(?Send)]
impl Write for RecordNode {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        let node = &self.0;
        batch.queue(
            &RECORD_NODE,
            args![
                &node.id,
                &node.version,
                node.started_at,
                node.last_seen_at,
                node.config_version,
                node.config_error.as_deref(),
                node.schema_version,
                node.clock_offset,
                node.settings.as_deref(),
                node.not_ready.as_deref()
            ],
        )
    }
}

fn read_node(row: &mut Row) -> Result<NodeRecord, DbError> {
    Ok(NodeRecord {
        id: row.text(0)?,
        version: row.text(1)?,
        started_at: row.int(2)?,
        last_seen_at: row.int(3)?,
        config_version: row.int(4)?,
        config_error: row.opt_text(5)?,
        schema_version: row.opt_int(6)?,
        clock_offset: row.opt_int(7)?,
        settings: row.opt_text(8)?,
        not_ready: row.opt_text(9)?,
        is_leader: row.int(10)? != 0,
    })
}
