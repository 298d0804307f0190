//! The worker pool of this process: claims due tasks, renews their leases, and hands unfinished tasks back at shutdown.
//!
//! The task table is the queue. No state is carried from one turn of a loop to the next, so a restart, or another node doing
//! the work, is the ordinary path.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_core::{crash, id};
use tollgate_store::LeasedTask;

use crate::tasks::context::TaskContext;
use crate::tasks::worker;

/// Longest pause of the claiming loop: how late another node's submission may be seen.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// Shortest pause, if the next task is nearly due.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// Pause after a turn whose tasks found their channels at `max_concurrency` while other channels have capacity.
const CHANNELS_FULL_PAUSE: Duration = Duration::from_millis(20);
/// Time that shutdown takes beyond `drain_s`: for tasks that were told to stop, and for releasing the leases while the
/// database is away.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Leases that one write renews.
const RENEW_BATCH: usize = 500;

/// The tasks that this process works on.
pub struct WorkerPool {
    context: Arc<TaskContext>,
    /// The owner of this process's leases; new with every start.
    owner: String,
    /// Permits for tasks that are actively worked on.
    permits: Arc<Semaphore>,
    /// By task id.
    running: Mutex<HashMap<String, RunningTask>>,
    tracker: TaskTracker,
}

struct RunningTask {
    fence: i64,
    stop: CancellationToken,
}

impl WorkerPool {
    /// A pool that works on up to `max_tasks` tasks at the same time.
    pub fn new(context: Arc<TaskContext>, max_tasks: usize) -> Self {
        Self {
            context,
            owner: id::short_id("node_"),
            permits: Arc::new(Semaphore::new(max_tasks)),
            running: Mutex::default(),
            tracker: TaskTracker::new(),
        }
    }

    /// Stops the work on a task that has ended, if this process works on it.
    pub fn stop_task(&self, task_id: &str) {
        if let Some(running) = self.lock_running().get(task_id) {
            running.stop.cancel();
        }
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and runs tasks until `drain` fires, then waits up to `drain_timeout` for them and hands the rest back.
    pub async fn run(self: &Arc<Self>, drain: CancellationToken, drain_timeout: Duration) {
        let context = &self.context;
        let renewal = tokio::spawn(Arc::clone(self).renew_leases());
        loop {
            let may_be_more = tokio::select! {
                biased;
                () = drain.cancelled() => break,
                may_be_more = self.claim() => may_be_more,
            };
            let pause = if !context.reloadable.current().routing.has_capacity() {
                MAX_PAUSE
            } else if context.signals.take_full_channels() {
                CHANNELS_FULL_PAUSE
            } else if may_be_more {
                continue;
            } else {
                // While the database is away, this query may take long.
                tokio::select! {
                    () = drain.cancelled() => break,
                    pause = self.time_to_next_task() => pause,
                }
            };
            tokio::select! {
                () = drain.cancelled() => break,
                () = context.signals.woken() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
        context.signals.draining.cancel();
        self.tracker.close();
        if tokio::time::timeout(drain_timeout, self.tracker.wait())
            .await
            .is_err()
        {
            self.lock_running().values().for_each(|r| r.stop.cancel());
            // A task stops at once when told to; one that does not is cut off when the process ends.
            let _ = tokio::time::timeout(STOP_TIMEOUT, self.tracker.wait()).await;
        }
        renewal.abort();
        self.release_leases().await;
    }

    async fn release_leases(&self) {
        let (store, now) = (&self.context.store, self.context.clock.now());
        let released = store.release_leases(Some(&self.owner), now);
        match tokio::time::timeout(RELEASE_TIMEOUT, released).await {
            Ok(Ok(0)) => {}
            Ok(Ok(tasks)) => tracing::info!(tasks, "handed unfinished tasks back"),
            Ok(Err(e)) => {
                tracing::error!(error = %e, "cannot hand unfinished tasks back; their leases will run out");
            }
            Err(_) => {
                tracing::error!(
                    "the database does not take unfinished tasks back; their leases will run out"
                );
            }
        }
    }

    /// Claims as many tasks as there are permits, at least one; returns whether more may be due.
    async fn claim(self: &Arc<Self>) -> bool {
        let context = &self.context;
        if !context.reloadable.current().routing.has_capacity() {
            return false;
        }
        let Ok(first) = Arc::clone(&self.permits).acquire_owned().await else {
            return false;
        };
        let mut permits = vec![first];
        while let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
            permits.push(permit);
        }
        let now = context.clock.now();
        let lease_until = now + context.settings.leases.ms();
        let claimed = match context
            .store
            .claim_tasks(&self.owner, permits.len(), lease_until, now)
            .await
        {
            Ok(claimed) => claimed,
            Err(e) => {
                tracing::warn!(error = %e, "cannot claim tasks");
                return false;
            }
        };
        if !claimed.is_empty() {
            crash::point("run.after_claim");
        }
        let may_be_more = claimed.len() == permits.len();
        for (leased, permit) in claimed.into_iter().zip(permits) {
            self.start(leased, permit);
        }
        may_be_more
    }

    fn start(self: &Arc<Self>, leased: LeasedTask, permit: OwnedSemaphorePermit) {
        let stop = CancellationToken::new();
        let running = RunningTask {
            fence: leased.fence,
            stop: stop.clone(),
        };
        let id = leased.task.id.clone();
        // An earlier run under a lease that ran out (the database was away): its fence is stale, so its results cannot count.
        if let Some(stale) = self.lock_running().insert(id.clone(), running) {
            stale.stop.cancel();
        }
        let pool = Arc::clone(self);
        self.tracker.spawn(async move {
            let fence = leased.fence;
            worker::run(Arc::clone(&pool.context), leased, permit, stop).await;
            let mut running = pool.lock_running();
            // Under a later lease the task may be running here again.
            if running.get(&id).is_some_and(|r| r.fence == fence) {
                running.remove(&id);
            }
            drop(running);
            pool.context.signals.wake_pool();
        });
    }

    /// The time until the next task is due, within the bounds of a pause.
    async fn time_to_next_task(&self) -> Duration {
        let (store, clock) = (&self.context.store, &self.context.clock);
        let due_at = store.next_task_due_at().await.ok().flatten();
        let left = due_at.map_or(MAX_PAUSE, |due_at| {
            Duration::from_millis(u64::try_from(due_at - clock.now()).unwrap_or(0))
        });
        left.clamp(MIN_PAUSE, MAX_PAUSE)
    }

    /// Renews the leases of the running tasks, three times per lease. Never returns.
    async fn renew_leases(self: Arc<Self>) {
        let context = &self.context;
        let lease = context.settings.leases.ms();
        let third = Duration::from_millis(u64::try_from(lease / 3).unwrap_or(1).max(1));
        loop {
            tokio::time::sleep(third).await;
            let leases: Vec<(String, i64)> = {
                let running = self.lock_running();
                running
                    .iter()
                    .map(|(id, r)| (id.clone(), r.fence))
                    .collect()
            };
            // In batches, so that other writes do not wait for thousands of these.
            for batch in leases.chunks(RENEW_BATCH) {
                let until = context.clock.now() + lease;
                let renewed = context
                    .store
                    .renew_leases(&self.owner, batch.to_vec(), until);
                match renewed.await {
                    Ok(lost) => lost.iter().for_each(|id| self.stop_task(id)),
                    Err(e) => {
                        tracing::warn!(error = %e, "cannot renew leases");
                        break;
                    }
                }
            }
        }
    }
}
