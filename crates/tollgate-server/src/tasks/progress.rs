//! Writes the progress of a task to the store at intervals.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tollgate_core::Clock;
use tollgate_store::{LeasedTask, Store};

use crate::spawn::spawn_detached;

/// Shortest time between two writes of a task's progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// The progress of a task in percent, written to the store at intervals.
pub struct Progress {
    store: Store,
    clock: Arc<dyn Clock>,
    task_id: String,
    fence: i64,
    percent: AtomicU8,
    last_write: Mutex<Instant>,
}

impl Progress {
    /// The progress of the task with that lease.
    pub fn new(store: &Store, clock: &Arc<dyn Clock>, leased: &LeasedTask) -> Arc<Self> {
        Arc::new(Self {
            store: store.clone(),
            clock: Arc::clone(clock),
            task_id: leased.task.id.clone(),
            fence: leased.fence,
            percent: AtomicU8::new(u8::try_from(leased.task.progress.clamp(0, 99)).unwrap_or(0)),
            last_write: Mutex::new(Instant::now()),
        })
    }

    /// The task's id, for the log.
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// Reports progress; a task that is not completed has at most 99. Does nothing if `percent` is not higher than before. It is written unless the
    /// last write was less than `PROGRESS_INTERVAL` ago; then only a later, higher value is written.
    pub fn report(&self, percent: u8) {
        let percent = percent.min(99);
        if self.percent.fetch_max(percent, Ordering::Relaxed) >= percent {
            return;
        }
        {
            let mut last_write = self
                .last_write
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if last_write.elapsed() < PROGRESS_INTERVAL {
                return;
            }
            *last_write = Instant::now();
        }
        let (store, task_id, fence) = (self.store.clone(), self.task_id.clone(), self.fence);
        let now = self.clock.now();
        // Not awaited: if a write is lost, the next report or the end of the task corrects it.
        spawn_detached(async move {
            let _ = store.set_progress(&task_id, fence, percent, now).await;
        });
    }
}
