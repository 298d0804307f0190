//! The heartbeat of this node in the database, and the release of chat holds of nodes whose heartbeat stopped.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::{Clock, Millis};
use tollgate_store::{Store, StoreError};

/// Heartbeats in the time that one is valid (`leases.seconds`): several may be lost before other nodes take this one for dead.
const BEATS_PER_LEASE: u64 = 6;

/// A commit this recent proves that the database takes writes.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How often grants are looked after.
const GRANT_INTERVAL: Duration = Duration::from_millis(250);

/// The heartbeat of this process.
pub struct Heartbeat {
    /// Nodes and chat holds.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// This process's name in the database.
    pub node: String,
    /// How long one heartbeat is valid.
    pub lease: Millis,
    /// When a heartbeat was last on disk.
    pub last_beat: Mutex<Option<Instant>>,
    /// How many nodes were alive at the last heartbeat, this one included; at least 1. `None` if nobody needs to know.
    pub live_nodes: Option<Arc<AtomicU32>>,
}

impl Heartbeat {
    /// The first heartbeat, before any hold for a chat. A node that is alone also releases the holds that its last run left.
    ///
    /// # Errors
    /// The store's.
    pub async fn start(&self) -> Result<(), StoreError> {
        let now = self.clock.now();
        self.store.release_orphaned_chats(now, &self.node).await?;
        self.beat(now).await?;
        self.count_live_nodes(now).await
    }

    /// Whether the database commits: writes a heartbeat unless one was written within a second.
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
        let sent = Instant::now();
        self.store.heartbeat(&self.node, now + self.lease).await?;
        *self.lock_last_beat() = Some(Instant::now());
        self.store.allow_grants(&self.node, sent, now, self.lease);
        Ok(())
    }

    async fn count_live_nodes(&self, now: Millis) -> Result<(), StoreError> {
        let Some(live_nodes) = &self.live_nodes else {
            return Ok(());
        };
        let nodes = self.store.live_nodes(now).await?;
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX).max(1);
        live_nodes.store(count, Ordering::Relaxed);
        Ok(())
    }

    fn lock_last_beat(&self) -> MutexGuard<'_, Option<Instant>> {
        self.last_beat
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Beats at intervals. Never returns.
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
            match self.store.release_orphaned_chats(now, &self.node).await {
                Ok(0) => {}
                Ok(n) => tracing::info!(chats = n, "released the chat holds of a node that died"),
                Err(e) => tracing::warn!(error = %e, "cannot release the chat holds of dead nodes"),
            }
            match self.store.release_orphaned_grants(now, &self.node).await {
                Ok(0) => {}
                Ok(n) => tracing::info!(grants = n, "released the grants of a node that died"),
                Err(e) => tracing::warn!(error = %e, "cannot release the grants of dead nodes"),
            }
        }
    }

    /// Gives back, several times a second, what this node does not need of its grants. Never returns.
    pub async fn return_grants(&self) {
        loop {
            tokio::time::sleep(GRANT_INTERVAL).await;
            let now = self.clock.now();
            if let Err(e) = self.store.return_unused_grants(now).await {
                tracing::warn!(error = %e, "cannot give back grants of this node");
            }
        }
    }
}
