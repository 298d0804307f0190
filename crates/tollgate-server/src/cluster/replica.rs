//! Watches the replica of the database: the log and a metric show whether it is used. A node is ready even without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tollgate_core::Millis;
use tollgate_store::Store;

use crate::metrics::Metrics;

/// Compares the replica with the primary, twice a second.
pub struct ReplicaWatch {
    store: Store,
    metrics: Arc<Metrics>,
    is_read: AtomicBool,
}

impl ReplicaWatch {
    /// A watch for a store with a replica, which counts as not used at first.
    pub fn new(store: Store, metrics: Arc<Metrics>) -> Self {
        metrics.set_replica_up(false);
        Self {
            store,
            metrics,
            is_read: AtomicBool::new(false),
        }
    }

    /// Compares in a loop. Never returns.
    pub async fn run(&self) {
        self.store.watch_replica(|found| self.record(found)).await;
        std::future::pending().await
    }

    /// Sets the metric, and logs a change: `found` is how far the replica is behind, or why it is not used.
    fn record(&self, found: &Result<Millis, String>) {
        self.metrics.set_replica_up(found.is_ok());
        let was_read = self.is_read.swap(found.is_ok(), Ordering::Relaxed);
        match found {
            Ok(_) if !was_read => tracing::info!("the replica of the database is used for reads"),
            Err(reason) if was_read => tracing::warn!(
                reason,
                "the replica of the database is not used any more: the primary is read"
            ),
            _ => {}
        }
    }
}
