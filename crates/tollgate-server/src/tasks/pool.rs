//! The worker pool of this process: claims due tasks, renews their leases, and returns unfinished tasks to the queue at shutdown.
//!
//! The task table is the queue. Loops keep no state from one turn to the next, so continuing after a restart or on another node is the normal path.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_config::Fairness;
use tollgate_core::{crash, id};
use tollgate_store::{CancelOutcome, LeasedTask, Task, TaskClaim};

use crate::redis::NodeMessage;
use crate::spawn::spawn_detached;
use crate::supervise::run_forever;
use crate::tasks::cancel::{cancel_at_provider, trace_forced_end};
use crate::tasks::context::TaskContext;
use crate::tasks::finish::time_limit_message;
use crate::tasks::work_permit::WorkPermit;
use crate::tasks::worker;

/// Longest pause of the claiming loop, and so the longest delay until a submission on another node is noticed.
const MAX_PAUSE: Duration = Duration::from_millis(500);
/// Shortest pause, if the next task is nearly due.
const MIN_PAUSE: Duration = Duration::from_millis(5);
/// Pause after a claim if a task has found all its channels at `max_concurrency` since the claim before, while other channels have capacity.
const CHANNELS_FULL_PAUSE: Duration = Duration::from_millis(20);
/// Additional time for shutdown beyond `drain_s`: for tasks that must stop, and for releasing the leases while the database is unavailable.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// Seconds between two searches for tasks whose deadline has passed.
const DEADLINE_INTERVAL_S: u64 = 5;
/// Leases that one write renews.
const RENEW_BATCH: usize = 500;

/// The tasks that this process works on.
pub struct WorkerPool {
    context: Arc<TaskContext>,
    /// The owner of this process's leases; a new name at every start.
    owner: String,
    /// The weights of users, by name.
    weights: HashMap<String, u32>,
    /// Where the next claim continues. It is only a hint: any value is correct.
    turn: Mutex<Turn>,
    /// By task id.
    running: Mutex<HashMap<String, RunningTask>>,
    tracker: TaskTracker,
}

#[derive(Default)]
struct Turn {
    /// The number of claims.
    number: u64,
    /// The user whose tasks were claimed last.
    last_user: String,
}

/// The result of a claim.
enum Claimed {
    /// Another claim may find more at once.
    MayBeMore,
    /// No further tasks are due.
    All,
    /// Due tasks cannot be claimed now: no permit is free, all channels are full, users have the maximum in work, the node is not ready, or the
    /// database failed.
    HeldBack,
}

struct RunningTask {
    fence: i64,
    stop: CancellationToken,
}

/// An entry of [`WorkerPool::running`], which is removed when the task's turn ends. If the turn panics, the lease is not renewed any more, and the
/// task is claimed again.
struct RunningGuard {
    pool: Arc<WorkerPool>,
    id: String,
    fence: i64,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        let mut running = self.pool.lock_running();
        // The task may already run here again under a later lease.
        if running.get(&self.id).is_some_and(|r| r.fence == self.fence) {
            running.remove(&self.id);
        }
        drop(running);
        let context = &self.pool.context;
        if std::thread::panicking() {
            tracing::error!(
                task = self.id,
                "a turn of a task panicked: the task is due again when its lease expires"
            );
            context.metrics.background_failure("task");
        }
        context.signals.wake_pool();
    }
}

impl WorkerPool {
    /// A pool without tasks in work.
    pub fn new(context: Arc<TaskContext>, fairness: &Fairness) -> Self {
        let weights = fairness.weights.iter();
        Self {
            weights: weights
                .map(|(name, weight)| (name.clone(), weight.0))
                .collect(),
            turn: Mutex::default(),
            context,
            owner: id::short_id("node_"),
            running: Mutex::default(),
            tracker: TaskTracker::new(),
        }
    }

    /// Stops the work on a task that has ended, on whichever node it runs.
    pub fn stop_task(&self, task_id: &str) {
        if !self.stop_task_here(task_id) {
            self.context
                .notify_nodes(NodeMessage::StopTask(task_id.to_owned()));
        }
    }

    /// Stops the work on a task that has ended, if this process works on it; returns whether it does.
    pub fn stop_task_here(&self, task_id: &str) -> bool {
        let running = self.lock_running();
        let stop = running.get(task_id).map(|running| running.stop.cancel());
        stop.is_some()
    }

    fn lock_running(&self) -> MutexGuard<'_, HashMap<String, RunningTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and runs tasks until `drain` fires, then waits up to `drain_timeout` for them and returns the others to the queue.
    pub async fn run(self: &Arc<Self>, drain: CancellationToken, drain_timeout: Duration) {
        let context = &self.context;
        // The helpers are stopped when this future is dropped.
        let mut helpers = JoinSet::new();
        let supervised = |pool: &Arc<Self>| (Arc::clone(pool), Arc::clone(&pool.context.metrics));
        let (pool, metrics) = supervised(self);
        let renewal = move || Arc::clone(&pool).renew_leases();
        helpers.spawn(run_forever(
            "lease renewal",
            metrics,
            CancellationToken::new(),
            renewal,
        ));
        let (pool, metrics) = supervised(self);
        let deadlines = move || Arc::clone(&pool).enforce_deadlines();
        helpers.spawn(run_forever(
            "deadlines",
            metrics,
            CancellationToken::new(),
            deadlines,
        ));
        loop {
            let claimed = tokio::select! {
                biased;
                () = drain.cancelled() => break,
                claimed = self.claim() => claimed,
            };
            let pause = match claimed {
                Claimed::MayBeMore if !context.signals.take_full_channels() => continue,
                Claimed::MayBeMore => CHANNELS_FULL_PAUSE,
                Claimed::HeldBack => MAX_PAUSE,
                // While the database is unavailable, this query may take long.
                Claimed::All => tokio::select! {
                    () = drain.cancelled() => break,
                    pause = self.time_to_next_task() => pause,
                },
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
            // Tasks stop at once if requested; one that does not is cut off when the process ends.
            let _ = tokio::time::timeout(STOP_TIMEOUT, self.tracker.wait()).await;
        }
        drop(helpers);
        self.release_leases().await;
    }

    async fn release_leases(&self) {
        let (store, now) = (&self.context.store, self.context.clock.now());
        let released = store.release_leases(Some(&self.owner), now);
        match tokio::time::timeout(RELEASE_TIMEOUT, released).await {
            Ok(Ok(0)) => {}
            Ok(Ok(tasks)) => {
                self.context.notify_nodes(NodeMessage::WakeWorkers);
                tracing::info!(tasks, "returned unfinished tasks to the queue");
            }
            Ok(Err(e)) => {
                tracing::error!(error = %e, "cannot return unfinished tasks to the queue: they are due again when their leases expire");
            }
            Err(_) => {
                tracing::error!(
                    "timed out returning unfinished tasks to the queue: they are due again when their leases expire"
                );
            }
        }
    }

    /// Claims as many tasks as there are permits; none if the node is not ready. While all channels are full, claims only tasks of users who have
    /// none in work: these wait for a channel in turns, and further claims would only postpone tasks.
    async fn claim(self: &Arc<Self>) -> Claimed {
        let context = &self.context;
        let workload = &context.signals.workload;
        let limit = workload.free();
        if limit == 0 || !context.readiness.is_ready() {
            return Claimed::HeldBack;
        }
        let mut share = workload.share();
        let has_capacity = context.reloadable.current().routing.has_capacity();
        if !has_capacity {
            share.reserve = limit;
        }
        share.weights.clone_from(&self.weights);
        {
            let mut turn = self.lock_turn();
            turn.number += 1;
            share.turn = turn.number;
            share.after_user.clone_from(&turn.last_user);
        }
        let now = context.clock.now();
        let claim = TaskClaim {
            owner: self.owner.clone(),
            limit,
            until: now + context.settings.leases.ms(),
            now,
            share,
        };
        let claimed = match context.store.claim_in_turns(claim).await {
            Ok(claimed) => claimed,
            Err(e) => {
                tracing::warn!(error = %e, "cannot claim tasks");
                return Claimed::HeldBack;
            }
        };
        self.lock_turn().last_user = claimed.last_user;
        if !claimed.tasks.is_empty() {
            crash::point("run.after_claim");
        }
        for leased in claimed.tasks {
            let work = workload.start(&leased.task.user_id);
            self.start(leased, work);
        }
        if claimed.may_be_more && workload.free() == 0 {
            // Other nodes may have free workers for the tasks.
            context.notify_nodes(NodeMessage::WakeWorkers);
        }
        match (claimed.may_be_more, claimed.is_held_back) {
            (true, _) if has_capacity => Claimed::MayBeMore,
            (true, _) | (_, true) => Claimed::HeldBack,
            _ => Claimed::All,
        }
    }

    fn lock_turn(&self) -> MutexGuard<'_, Turn> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, leased: LeasedTask, work: WorkPermit) {
        let stop = CancellationToken::new();
        let running = RunningTask {
            fence: leased.fence,
            stop: stop.clone(),
        };
        let id = leased.task.id.clone();
        // An earlier run under a lease that expired (the database was unavailable): its fence is stale, so its results are rejected.
        if let Some(stale) = self.lock_running().insert(id.clone(), running) {
            stale.stop.cancel();
        }
        let running = RunningGuard {
            pool: Arc::clone(self),
            id,
            fence: leased.fence,
        };
        spawn_detached(self.tracker.track_future(async move {
            worker::run(Arc::clone(&running.pool.context), leased, work, stop).await;
            running.pool.context.signals.workload.grow();
        }));
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

    /// Fails tasks whose deadline passed longer ago than a lease lasts, whoever has their lease: their worker hangs or does not exist any more, or
    /// they were never claimed. After a crash it also allows one more call at the same time per second. Never returns.
    async fn enforce_deadlines(self: Arc<Self>) {
        let context = &self.context;
        let mut seconds: u64 = 0;
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if !context.signals.workload.grow() {
                context.signals.wake_pool();
            }
            seconds += 1;
            if !seconds.is_multiple_of(DEADLINE_INTERVAL_S) {
                continue;
            }
            let now = context.clock.now();
            let overdue = context
                .store
                .overdue_tasks(now - context.settings.leases.ms());
            match overdue.await {
                Ok(tasks) => {
                    for task in &tasks {
                        self.time_out(task).await;
                    }
                }
                Err(e) => tracing::warn!(error = %e, "cannot read the overdue tasks"),
            }
        }
    }

    async fn time_out(&self, task: &Task) {
        let context = &self.context;
        let message = time_limit_message(context, task);
        let now = context.clock.now();
        match context.store.time_out_task(task, &message, now).await {
            Ok(CancelOutcome::Cancelled) => {
                tracing::warn!(task = task.id, "failed a task whose deadline had passed");
                context.metrics.task_ended(&task.family, "failed");
                self.stop_task(&task.id);
                cancel_at_provider(context, task);
                trace_forced_end(context, task, "timeout");
                if task.callback_url.is_some() {
                    context.webhook_due.notify_one();
                }
            }
            Ok(CancelOutcome::AlreadyFinal | CancelOutcome::NotFound) => {}
            Err(e) => tracing::warn!(task = task.id, error = %e, "cannot fail an overdue task"),
        }
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
            // In batches, so that other writes do not wait for thousands of renewals.
            for batch in leases.chunks(RENEW_BATCH) {
                let until = context.clock.now() + lease;
                let renewed = context
                    .store
                    .renew_leases(&self.owner, batch.to_vec(), until);
                match renewed.await {
                    Ok(lost) => {
                        for id in &lost {
                            self.stop_task_here(id);
                        }
                    }
                    Err(e) => {
                        tracing::warn!(error = %e, "cannot renew leases");
                        break;
                    }
                }
            }
        }
    }
}
