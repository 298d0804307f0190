//! Adjusts this node's permits on channels with a `max_concurrency` to what it needs, as far as the other nodes do not use them (docs/redis.md).

use std::time::Duration;

use tokio::time::sleep;

use crate::reloadable::ReloadableHandle;

/// How often permits are compared with what is needed.
const INTERVAL: Duration = Duration::from_millis(50);

/// Compares, and sends a request to Redis if they differ. Never returns.
pub async fn run(reloadable: ReloadableHandle) {
    loop {
        sleep(INTERVAL).await;
        reloadable.current().routing.adjust_permits().await;
    }
}
