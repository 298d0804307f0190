//! Keeps what this node may do of the channels' `max_concurrency` what it needs, as far as the other nodes leave it (docs/redis.md).

use std::time::Duration;

use tokio::time::sleep;

use crate::reloadable::ReloadableHandle;

/// How often permits are compared with what is needed.
const INTERVAL: Duration = Duration::from_millis(50);

/// Compares and asks Redis where they differ. Never returns.
pub async fn run(reloadable: ReloadableHandle) {
    loop {
        sleep(INTERVAL).await;
        reloadable.current().routing.adjust_permits().await;
    }
}
