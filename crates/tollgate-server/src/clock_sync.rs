//! Keeps the process's clock with its reference: the database's time where nodes share one, else this machine's. Leases and
//! deadlines of nodes whose own clocks differ, or make a step, agree all the same.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Clock as _, Millis, SteadyClock, SystemClock, clock};
use tollgate_store::{Store, StoreError};

/// Time between two comparisons.
const INTERVAL: Duration = Duration::from_secs(5);
/// An answer of the database that took longer says too little about the time.
const MAX_ROUND_TRIP: Duration = Duration::from_millis(400);
/// Tasks wait no longer for their next attempt, but for those that wait for their deadline: these may be tried early.
const MAX_TASK_PAUSE: Millis = clock::MINUTE;

/// A clock that shows the reference's time.
///
/// # Errors
/// The store's.
pub async fn start(store: &Store) -> Result<SteadyClock, StoreError> {
    let now = match store.is_shared() {
        true => store.database_now().await?,
        false => SystemClock.now(),
    };
    // Whatever the clock was when the last run ended, nothing waits for a time far off.
    store.release_stranded(MAX_TASK_PAUSE, now).await?;
    Ok(SteadyClock::new(now))
}

/// Compares the clock with its reference at intervals. Never returns.
pub async fn run(store: Store, steady: Arc<SteadyClock>) {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let Some(reference) = read_reference(&store).await else {
            continue;
        };
        let Some(step) = steady.observe(reference) else {
            continue;
        };
        tracing::warn!(
            step_ms = step,
            "the time made a step; leases and deadlines follow it"
        );
        if step < 0
            && let Err(e) = store.release_stranded(MAX_TASK_PAUSE, steady.now()).await
        {
            tracing::warn!(error = %e, "cannot make tasks due that wait for a time far off");
        }
    }
}

/// `None` if the database does not tell, or took too long.
async fn read_reference(store: &Store) -> Option<Millis> {
    if !store.is_shared() {
        return Some(SystemClock.now());
    }
    let started = Instant::now();
    match store.database_now().await {
        Ok(now) => {
            let took = started.elapsed();
            let half = Millis::try_from(took.as_millis() / 2).unwrap_or(0);
            (took <= MAX_ROUND_TRIP).then_some(now + half)
        }
        Err(e) => {
            tracing::debug!(error = %e, "cannot read the database's time");
            None
        }
    }
}
