//! Rolls usage up in the background, so that reports read few rows.

use std::time::Duration;

use tollgate_store::Store;

/// Time between two roll-ups. Reports also read what is not rolled up yet.
const INTERVAL: Duration = Duration::from_secs(1);

/// Rolls up at intervals. Never returns.
pub async fn run(store: Store) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        if let Err(e) = store.roll_up_usage().await {
            tracing::warn!(error = %e, "usage was not rolled up: it will be tried again");
        }
    }
}
