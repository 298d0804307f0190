//! What nodes say of themselves (table `nodes`; heartbeats are in `chats/orphans.rs`).

use async_trait::async_trait;
use tollgate_core::Millis;

use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::writer::Write;
use crate::writer::batch::Batch;

const RECORD_NODE: Sql = Sql::both(
    "INSERT INTO nodes (id, alive_until, version, started_at, last_seen_at, config_version, config_error)
     VALUES ($1, 0, $2, $3, $4, $5, $6)
     ON CONFLICT (id) DO UPDATE SET version = excluded.version, started_at = excluded.started_at,
        last_seen_at = excluded.last_seen_at, config_version = excluded.config_version, config_error = excluded.config_error",
);
const LIVE_NODES: Sql = Sql::both(
    "SELECT id, version, started_at, last_seen_at, config_version, config_error FROM nodes
     WHERE alive_until > $1 AND started_at IS NOT NULL ORDER BY started_at DESC, id DESC",
);

/// What a node says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord {
    /// Its name: each start of a process is a new node.
    pub id: String,
    /// The version of its program.
    pub version: String,
    /// When it started.
    pub started_at: Millis,
    /// When it said so last.
    pub last_seen_at: Millis,
    /// The version of the database's configuration that it applies.
    pub config_version: i64,
    /// What it cannot use of that configuration. `None` if it uses all of it.
    pub config_error: Option<String>,
}

/// Nodes.
impl Store {
    /// Writes down what a node says of itself, after its first heartbeat.
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
                node.config_error.as_deref()
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
    })
}
