//! The heartbeat of this node in the database, with which it also becomes the leader if there is none, and the release of what dead nodes held. The
//! leader also moves the queue to its own table once no older node is alive.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::{Clock, Millis};
use tollgate_store::{NodeRecord, Shards, Store, StoreError};

use super::live_nodes::LiveNodes;
use super::readiness::Readiness;
use crate::metrics::Metrics;

/// Heartbeats during the time that one is valid (`leases.seconds`): several may be lost before other nodes consider this one dead.
const BEATS_PER_LEASE: u64 = 6;

/// A commit within this time proves that the database accepts writes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often unneeded grants are returned.
const GRANT_INTERVAL: Duration = Duration::from_millis(250);

/// The heartbeat of this process.
pub struct Heartbeat {
    /// The store, for nodes and chat holds.
    pub store: Store,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// This process's name in the database.
    pub node: String,
    /// How long one heartbeat is valid.
    pub lease: Millis,
    /// When a heartbeat was last on disk.
    pub last_beat: Mutex<Option<Instant>>,
    /// The nodes that are alive, by the last heartbeat.
    pub live_nodes: Arc<LiveNodes>,
    /// Whether this node is ready, and so may become the leader.
    pub readiness: Arc<Readiness>,
    /// Metrics: how many nodes are alive, and whether this one leads.
    pub metrics: Arc<Metrics>,
}

impl Heartbeat {
    /// Releases the holds for chats of dead nodes, or without a shared database those that the last run left, then writes the first heartbeat. Called
    /// before any hold for a chat.
    ///
    /// # Errors
    /// The store's.
    pub async fn start(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.store.release_orphaned_chats(now, &self.node).await?;
        self.beat(now).await?;
        self.count_live_nodes(now).await
    }

    /// Checks that the database commits: writes a heartbeat unless one was written within a second.
    ///
    /// # Errors
    /// The store's.
    pub async fn check_commit(&self) -> Result<(), StoreError> {
        let last_beat = *self.lock_last_beat();
        if last_beat.is_some_and(|at| at.elapsed() < CHECK_INTERVAL) {
            return Ok(());
        }
        self.beat(self.clock.now()).await
    }

    async fn beat(&self, now: Millis) -> Result<(), StoreError> {
        let (sent, until) = (Instant::now(), now + self.lease);
        let lead = async {
            match self.store.is_shared() && self.readiness.is_ready() {
                true => self.store.acquire_leadership(&self.node, until, now).await,
                false => Ok(false),
            }
        };
        // Both writes run concurrently, so that one commit contains both.
        let beat = self.store.heartbeat(&self.node, until);
        let (beat, leads) = futures_util::join!(beat, lead);
        beat?;
        *self.lock_last_beat() = Some(Instant::now());
        self.store.allow_grants(&self.node, sent, now, self.lease);
        let lease = Duration::from_millis(self.lease.unsigned_abs());
        self.live_nodes.set_leader(leads?, sent, lease);
        Ok(())
    }

    async fn count_live_nodes(&self, now: Millis) -> Result<(), StoreError> {
        if self.store.is_shared() {
            let nodes = self.store.live_nodes(now).await?;
            self.live_nodes.set(&nodes, &self.node);
            self.store.set_own_shards(self.own_shards(&nodes));
        }
        let is_leader = self.live_nodes.is_leader();
        self.metrics.set_nodes(self.live_nodes.count(), is_leader);
        Ok(())
    }

    /// The shards of the queue that this node claims first. Nodes that are not ready claim no tasks.
    fn own_shards(&self, nodes: &[NodeRecord]) -> Shards {
        let others = nodes.iter().filter(|node| node.id != self.node);
        let others = others.filter(|node| node.not_ready.is_none());
        let own = self.readiness.is_ready().then_some(self.node.as_str());
        Shards::of_node(&self.node, others.map(|node| node.id.as_str()).chain(own))
    }

    fn lock_last_beat(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_beat
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes heartbeats at intervals. Never returns.
    pub async fn run(&self) {
        let interval = Duration::from_millis(self.lease.unsigned_abs() / BEATS_PER_LEASE);
        loop {
            tokio::time::sleep(interval).await;
            let now = self.clock.now();
            if let Err(e) = self.beat(now).await {
                tracing::warn!(error = %e, "cannot write this node's heartbeat");
                continue;
            }
            if let Err(e) = self.count_live_nodes(now).await {
                tracing::warn!(error = %e, "cannot count the live nodes");
            }
            if self.live_nodes.is_leader()
                && let Err(e) = self.store.move_queue(now).await
            {
                tracing::warn!(error = %e, "cannot move the queue to its own table yet");
            }
            match self.store.release_orphaned_chats(now, &self.node).await {
                Ok(0) => {}
                Ok(n) => tracing::info!(chats = n, "released the chat holds of dead nodes"),
                Err(e) => tracing::warn!(error = %e, "cannot release the chat holds of dead nodes"),
            }
            match self.store.release_orphaned_grants(now, &self.node).await {
                Ok(0) => {}
                Ok(n) => tracing::info!(grants = n, "released the grants of dead nodes"),
                Err(e) => tracing::warn!(error = %e, "cannot release the grants of dead nodes"),
            }
        }
    }

    /// Releases, several times a second, the part of this node's grants that it does not need. Never returns.
    pub async fn return_grants(&self) {
        loop {
            tokio::time::sleep(GRANT_INTERVAL).await;
            let now = self.clock.now();
            if let Err(e) = self.store.return_unused_grants(now).await {
                tracing::warn!(error = %e, "cannot release unused grants of this node");
            }
            self.metrics.set_grants(self.store.count_grants());
        }
    }
}
