//! Heartbeats of nodes (table `nodes`), and the release of the holds of chat requests whose node died.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use tollgate_core::{Millis, clock};

use super::parts::ChatParts;
use super::prices::TokenCounts;
use super::record::ChatEnd;
use crate::db::{DbError, Sql, args};
use crate::error::StoreError;
use crate::ledger::account::Account;
use crate::ledger::chats::close_chat;
use crate::store::Store;
use crate::writer::batch::Batch;
use crate::writer::{AccountIds, Write};

/// The longest time of a chat request. An older hold is orphaned, whichever node has it. The row of a dead node is kept as long.
const MAX_AGE: Millis = clock::DAY;

/// The condition that open chats `c` (with their nodes `n`) are orphaned: too old, or of another node that is not alive.
macro_rules! is_orphaned {
    ($opened_until:literal, $own_node:literal, $alive_until:literal) => {
        concat!(
            "c.node IS NOT NULL AND (c.opened_at <= ",
            $opened_until,
            " OR (c.node <> ",
            $own_node,
            " AND COALESCE(n.alive_until, 0) <= ",
            $alive_until,
            "))"
        )
    };
}

pub(crate) const ORPHANED_CHATS: Sql = Sql::both(concat!(
    "SELECT c.id, c.user_id, c.key_id FROM chats c LEFT JOIN nodes n ON n.id = c.node WHERE ",
    is_orphaned!("$1", "$2", "$3"),
    " LIMIT 500"
));
pub(crate) const STILL_ORPHANED: Sql = Sql::both(concat!(
    "SELECT c.id FROM chats c LEFT JOIN nodes n ON n.id = c.node WHERE c.id = $1 AND ",
    is_orphaned!("$2", "$3", "$4")
));
pub(crate) const OPEN_CHAT: Sql =
    Sql::both("SELECT id FROM chats WHERE id = $1 AND node IS NOT NULL");
pub(crate) const HEARTBEAT: Sql = Sql::both(
    "INSERT INTO nodes (id, alive_until) VALUES ($1, $2)
     ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until",
);
pub(crate) const OLD_NODES: Sql = Sql::both(
    "SELECT id FROM nodes WHERE id <> $1 AND alive_until <= $2
     AND NOT EXISTS (SELECT 1 FROM chats WHERE chats.node = nodes.id)
     AND NOT EXISTS (SELECT 1 FROM grants WHERE grants.node = nodes.id)",
);
pub(crate) const DELETE_NODE: Sql = Sql::both(
    "DELETE FROM nodes WHERE id = $1 AND alive_until <= $2
     AND NOT EXISTS (SELECT 1 FROM chats WHERE chats.node = nodes.id)
     AND NOT EXISTS (SELECT 1 FROM grants WHERE grants.node = nodes.id)",
);

/// Nodes and their orphaned chats.
impl Store {
    /// Declares `node` alive until `alive_until`. A node calls this before its first hold, and again before that time. Each start of a process is a
    /// new node.
    pub async fn heartbeat(&self, node: &str, alive_until: Millis) -> Result<(), StoreError> {
        let node = node.to_owned();
        self.write(Heartbeat { node, alive_until }).await
    }

    /// Releases the holds of orphaned chats: those of nodes that are not alive (if no other process shares the database: of all nodes except
    /// `own_node`), and those of any node that are older than a day. Returns the number of chats. Call it at start and as often as
    /// [`Store::heartbeat`].
    pub async fn release_orphaned_chats(
        &self,
        now: Millis,
        own_node: &str,
    ) -> Result<u64, StoreError> {
        let orphaned = Orphaned {
            opened_until: now - MAX_AGE,
            own_node: own_node.to_owned(),
            alive_until: if self.is_shared() { now } else { Millis::MAX },
        };
        let mut released = 0;
        loop {
            let args = args![orphaned.opened_until, own_node, orphaned.alive_until];
            let mut rows = self.query(&ORPHANED_CHATS, args).await?;
            let mut writes = Vec::with_capacity(rows.len());
            for row in &mut rows {
                writes.push(self.write(ReleaseChat {
                    id: row.text(0)?,
                    user_id: row.text(1)?,
                    key_id: row.text(2)?,
                    reason: ReleaseReason::Orphaned(orphaned.clone()),
                    now,
                }));
            }
            let outcomes = try_join_all(writes).await?;
            let count = outcomes.into_iter().filter(|released| *released).count() as u64;
            released += count;
            if count == 0 {
                break;
            }
        }
        // A dead node is kept for a day, so that a node that was only suspended still finds its row.
        let dead_since = now - MAX_AGE;
        for mut row in self.query(&OLD_NODES, args![own_node, dead_since]).await? {
            let node = row.text(0)?;
            self.write(DeleteNode { node, dead_since }).await?;
        }
        Ok(released)
    }
}

/// Releases the hold of a chat that nobody will settle. Returns false if the chat is closed, or not orphaned any more.
pub(super) struct ReleaseChat {
    pub(super) id: String,
    pub(super) user_id: String,
    pub(super) key_id: String,
    pub(super) reason: ReleaseReason,
    pub(super) now: Millis,
}

/// Why a chat will not be settled.
pub(super) enum ReleaseReason {
    /// The caller that requested the hold stopped waiting for it.
    Abandoned,
    /// The chat matched [`ORPHANED_CHATS`] with these parameters, and must still match.
    Orphaned(Orphaned),
}

/// The parameters of [`ORPHANED_CHATS`].
#[derive(Clone)]
pub(super) struct Orphaned {
    /// The chat is orphaned if it was opened until then,
    opened_until: Millis,
    /// or if it is of a node other than this one,
    own_node: String,
    /// which is not alive after this time.
    alive_until: Millis,
}

#[async_trait(?Send)]
impl Write for ReleaseChat {
    type Out = bool;

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.user_id, &self.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<bool, DbError> {
        let open = match &self.reason {
            ReleaseReason::Abandoned => batch.first(&OPEN_CHAT, args![&self.id]).await?,
            ReleaseReason::Orphaned(Orphaned {
                opened_until,
                own_node,
                alive_until,
            }) => {
                let args = args![&self.id, *opened_until, own_node, *alive_until];
                batch.first(&STILL_ORPHANED, args).await?
            }
        };
        if open.is_none() {
            return Ok(false);
        }
        let end = ChatEnd {
            tokens: TokenCounts::default(),
            estimated: false,
            clamped: 0,
            parts: ChatParts::default(),
            channel: None,
            upstream_model: None,
            attempts: String::new(),
            dropped: None,
            outcome: ChatEnd::OUTCOME_LOST,
            ended_at: self.now,
        };
        let account = Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        };
        let closed = close_chat(batch, &self.id, account, &end).await?;
        Ok(closed.is_some())
    }
}

struct Heartbeat {
    node: String,
    alive_until: Millis,
}

#[async_trait(?Send)]
impl Write for Heartbeat {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&HEARTBEAT, args![&self.node, self.alive_until])
    }
}

/// Deletes a node that has not been alive since `dead_since` and has neither an open chat nor a grant.
struct DeleteNode {
    node: String,
    dead_since: Millis,
}

#[async_trait(?Send)]
impl Write for DeleteNode {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(&DELETE_NODE, args![&self.node, self.dead_since])
    }
}
