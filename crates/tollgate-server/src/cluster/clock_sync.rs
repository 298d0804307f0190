//! Keeps the process's clock equal to its reference: the database's time if nodes share one, else this machine's. So leases and deadlines are
//! consistent among nodes even if their machines' clocks differ or make a step. A node whose clock is far off is not ready, because its signatures
//! and its log would have the wrong time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Clock as _, Millis, SteadyClock, SystemClock, clock};
use tollgate_store::{Store, StoreError};

use super::readiness::Readiness;

/// Time between two comparisons; shorter if leases are short.
const MAX_INTERVAL: Duration = Duration::from_secs(5);
/// Comparisons during the length of a lease.
const COMPARISONS_PER_LEASE: u32 = 6;
/// Clocks may differ by a lease divided by this number.
const MAX_OFFSET_PART: Millis = 4;
/// If the database's response took longer than this, its time is too imprecise.
const MAX_ROUND_TRIP: Duration = Duration::from_millis(400);
/// The longest time that tasks wait for their next attempt. Tasks that wait for their deadline may wait longer; these may be tried early.
const MAX_TASK_PAUSE: Millis = clock::MINUTE;

/// How far, in milliseconds, a node's clock may differ from the database's if leases have this length.
pub fn max_offset(lease: Millis) -> Millis {
    lease / MAX_OFFSET_PART
}

/// Returns a clock that shows the reference's time. Also makes tasks and webhooks due that wait for a time too far in the future.
///
/// # Errors
/// The store's.
pub async fn start(store: &Store) -> Result<SteadyClock, StoreError> {
    let now = match store.is_shared() {
        true => store.database_now().await?,
        false => SystemClock.now(),
    };
    // They wait for such a time if the clock was ahead when the last run ended.
    store.release_stranded(MAX_TASK_PAUSE, now).await?;
    Ok(SteadyClock::new(now))
}

/// Compares the process's clock, and this machine's, with the database's.
pub struct ClockSync {
    store: Store,
    steady: Arc<SteadyClock>,
    readiness: Arc<Readiness>,
    /// The length of a lease.
    lease: Millis,
}

impl ClockSync {
    /// Keeps `steady` equal to its reference.
    pub fn new(
        store: Store,
        steady: Arc<SteadyClock>,
        readiness: Arc<Readiness>,
        lease: Millis,
    ) -> Self {
        Self {
            store,
            steady,
            readiness,
            lease,
        }
    }

    /// Compares at intervals. Never returns.
    pub async fn run(&self) {
        let lease = Duration::from_millis(self.lease.unsigned_abs());
        let interval = (lease / COMPARISONS_PER_LEASE).min(MAX_INTERVAL);
        loop {
            tokio::time::sleep(interval).await;
            self.compare().await;
        }
    }

    /// Compares once; does nothing if the reference's time cannot be read.
    pub async fn compare(&self) {
        let Some(reference) = self.read_reference().await else {
            return;
        };
        // A node that does not share its database needs no agreement with others, even if its machine's clock makes a step.
        if self.store.is_shared() {
            self.report_offset(reference);
        }
        let Some(step) = self.steady.observe(reference) else {
            return;
        };
        tracing::warn!(
            step_ms = step,
            "the reference clock was stepped: leases and deadlines follow it"
        );
        if step < 0
            && let Err(e) = self
                .store
                .release_stranded(MAX_TASK_PAUSE, self.steady.now())
                .await
        {
            tracing::warn!(error = %e, "cannot make tasks due whose due time is too far in the future");
        }
    }

    /// Compares this machine's clock and the process's with the database's, and reports the larger difference.
    fn report_offset(&self, reference: Millis) {
        let of_machine = SystemClock.now() - reference;
        let of_process = self.steady.now() - reference;
        let offset = match of_machine.abs() >= of_process.abs() {
            true => of_machine,
            false => of_process,
        };
        self.readiness
            .set_clock_offset(offset, max_offset(self.lease));
    }

    /// The reference's time. `None` if the database does not return it, or took too long.
    async fn read_reference(&self) -> Option<Millis> {
        if !self.store.is_shared() {
            return Some(SystemClock.now());
        }
        let started = Instant::now();
        match self.store.database_now().await {
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
}
