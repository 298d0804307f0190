//! Deletes expired task records, idempotency keys and stored files. Runs on the leader of the nodes, except for files in folders.

use std::sync::Arc;
use std::time::Duration;

use crate::tasks::context::TaskContext;

/// Time between two rounds; shorter if records or links are kept for less than four times this.
const INTERVAL: Duration = Duration::from_secs(60);
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Deletes expired records and files at intervals. Never returns.
pub async fn run(context: Arc<TaskContext>) {
    let expiry = &context.settings.expiry;
    let record_ttl = expiry.tasks_ms();
    let shortest_ttl = record_ttl.min(expiry.images_ms()).min(expiry.long_ms());
    let quarter = Duration::from_millis(u64::try_from(shortest_ttl / 4).unwrap_or(0));
    let interval = quarter.clamp(MIN_INTERVAL, INTERVAL);
    loop {
        tokio::time::sleep(interval).await;
        let now = context.clock.now();
        let is_leader = context.live_nodes.is_leader();
        context.files.delete_expired(now, is_leader).await;
        if !is_leader {
            continue;
        }
        if let Err(e) = context.store.maintain_partitions(record_ttl, now).await {
            tracing::warn!(error = %e, "cannot maintain the partitions of tasks");
        }
        loop {
            match context.store.purge_expired(now - record_ttl, now).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "deleted expired records"),
                Err(e) => {
                    tracing::warn!(error = %e, "cannot delete expired records");
                    break;
                }
            }
        }
        if let Err(e) = context.store.purge_deleted_channels(now).await {
            tracing::warn!(error = %e, "cannot delete the rows of deleted channels");
        }
    }
}
