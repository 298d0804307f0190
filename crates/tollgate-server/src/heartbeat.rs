//! This process says that it lives, and releases the chat holds of those that do not any more.

use std::sync::Arc;
use std::time::Duration;

use tollgate_store::StoreError;

use crate::app::App;

/// Beats in the time that one lasts (`leases.seconds`): several may be lost before others take this process for dead.
const BEATS: u64 = 6;

/// The first beat, before any chat is held for. A node that is alone also releases what its last run left held.
///
/// # Errors
/// The store's.
pub async fn first(app: &App) -> Result<(), StoreError> {
    let now = app.clock.now();
    app.store.release_dead_chats(now, &app.node).await?;
    let alive_until = now + app.config.leases.ms();
    app.store.beat(&app.node, alive_until).await
}

/// Beats for as long as the process lives.
pub async fn beat(app: Arc<App>) {
    let pause = Duration::from_millis(app.config.leases.ms().unsigned_abs() / BEATS);
    loop {
        tokio::time::sleep(pause).await;
        let now = app.clock.now();
        if let Err(e) = app
            .store
            .beat(&app.node, now + app.config.leases.ms())
            .await
        {
            tracing::warn!(error = %e, "cannot say that this node lives");
            continue;
        }
        match app.store.release_dead_chats(now, &app.node).await {
            Ok(0) => {}
            Ok(n) => tracing::info!(chats = n, "released the holds of a node that died"),
            Err(e) => tracing::warn!(error = %e, "cannot look for holds of dead nodes"),
        }
    }
}
