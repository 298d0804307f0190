//! Adds blocks of ended chats and tasks in the background, on the leader of the nodes, so that lists with filters read few rows.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Clock;
use tollgate_store::Store;

use crate::cluster::live_nodes::LiveNodes;

/// Time between two checks for rows to add.
const INTERVAL: Duration = Duration::from_secs(1);
/// Pause between two blocks if there are more; after an upgrade, blocks are added for all stored rows.
const PAUSE: Duration = Duration::from_millis(10);

/// Adds blocks at intervals. Never returns.
pub async fn run(store: Store, clock: Arc<dyn Clock>, live_nodes: Arc<LiveNodes>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        while live_nodes.is_leader() {
            match store.build_list_blocks(clock.now()).await {
                Ok(true) => tokio::time::sleep(PAUSE).await,
                Ok(false) => break,
                Err(e) => {
                    tracing::warn!(error = %e, "cannot add blocks of lists: this will be retried");
                    break;
                }
            }
        }
    }
}
