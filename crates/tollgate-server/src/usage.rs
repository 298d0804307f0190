//! Rolls usage up in the background, on the leader of the nodes, so that reports read few rows.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::Clock;
use tollgate_core::clock::DAY;
use tollgate_store::Store;

use crate::cluster::live_nodes::LiveNodes;

/// Time between two roll-ups. Reports also read what is not rolled up yet.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two searches for sums to which a node of an older version did not add.
const REPAIR_INTERVAL: Duration = Duration::from_mins(10);
/// How far back these searches go, in milliseconds: the first one after a start, and later ones.
const REPAIRED_AT_START: i64 = 31 * DAY;
const REPAIRED_LATER: i64 = DAY;

/// Rolls up at intervals. Never returns.
pub async fn run(store: Store, clock: Arc<dyn Clock>, live_nodes: Arc<LiveNodes>) {
    let mut next_repair = Instant::now();
    let mut repaired = REPAIRED_AT_START;
    let mut has_all_totals = false;
    loop {
        tokio::time::sleep(INTERVAL).await;
        if !live_nodes.is_leader() {
            continue;
        }
        if let Err(e) = store.roll_up_usage().await {
            tracing::warn!(error = %e, "cannot roll up usage: this will be retried");
        }
        if !has_all_totals {
            match store.fill_usage_totals().await {
                Ok(has_more) => has_all_totals = !has_more,
                Err(e) => {
                    tracing::warn!(error = %e, "cannot fill in the totals of usage: this will be retried")
                }
            }
        }
        if !has_all_totals || Instant::now() < next_repair {
            continue;
        }
        next_repair = Instant::now() + REPAIR_INTERVAL;
        match store.repair_usage_sums(clock.now() - repaired).await {
            Ok(has_repaired) => {
                repaired = REPAIRED_LATER;
                if has_repaired {
                    tracing::info!(
                        "corrected sums of usage: a node of an older version had added only to the sums by hour"
                    );
                }
            }
            Err(e) => {
                tracing::warn!(error = %e, "cannot compare the sums of usage with the sums by hour");
            }
        }
    }
}
