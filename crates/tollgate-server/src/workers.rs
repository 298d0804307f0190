//! The workers of this process: they claim due tasks, keep their leases and clean up behind time.
//!
//! The task table is the queue. Nothing is carried from one turn of a loop to the next, so a restart, or another
//! node doing the work, is the ordinary path.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_core::{Millis, crash, id};
use tollgate_store::Leased;

use crate::app::App;
use crate::config;
use crate::run;

/// Longest sleep of the claiming loop: how late another node's submission may be seen.
const LONGEST_NAP: Duration = Duration::from_millis(500);
/// Shortest sleep, where the next task is nearly due.
const SHORTEST_NAP: Duration = Duration::from_millis(5);
/// Sleep after a turn whose tasks found their channels full while others have room.
const CROWDED_NAP: Duration = Duration::from_millis(20);
/// What a drain takes beyond its patience: for what was told to stop, and for handing the rest back while the
/// database is away.
const STOPPING: Duration = Duration::from_secs(2);
const HANDING_BACK: Duration = Duration::from_secs(5);
/// Leases that one write renews.
const RENEWED_AT_ONCE: usize = 500;
/// Time between two rounds of cleaning, unless records live shorter than that.
const CLEANING: Duration = Duration::from_secs(60);

/// What this process is working on.
pub struct Workers {
    /// Who we are to the other nodes; new with every start.
    owner: String,
    woken: Notify,
    /// Places for tasks that are worked on here.
    places: Arc<Semaphore>,
    /// Places for tasks that wait in providers' queues and are asked for from here.
    pub open: Arc<Semaphore>,
    /// Fires when this process is to end: what only waits goes to others at once.
    pub leaving: CancellationToken,
    running: Mutex<HashMap<String, Running>>,
    tracker: TaskTracker,
    /// Whether a task was put back lately because its channels are full.
    crowded: AtomicBool,
}

struct Running {
    fence: i64,
    stop: CancellationToken,
}

impl Workers {
    /// Workers for that many tasks at the same time.
    pub fn new(places: config::Workers) -> Self {
        Self {
            owner: id::short_id("node_"),
            woken: Notify::new(),
            places: Arc::new(Semaphore::new(places.calls)),
            open: Arc::new(Semaphore::new(places.open)),
            leaving: CancellationToken::new(),
            running: Mutex::default(),
            tracker: TaskTracker::new(),
            crowded: AtomicBool::new(false),
        }
    }

    /// There may be something to do: a task was submitted or put back.
    pub fn wake(&self) {
        self.woken.notify_one();
    }

    /// A task was put back because its channels are full: no use in claiming the next ones at full speed.
    pub fn crowded(&self) {
        self.crowded.store(true, Ordering::Relaxed);
    }

    /// Stops the work on a task that has ended, if it is here.
    pub fn stop(&self, task_id: &str) {
        if let Some(running) = self.running().get(task_id) {
            running.stop.cancel();
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, HashMap<String, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Claims and runs tasks until `drain` fires, then waits for them up to `patience` and hands back the rest.
    pub async fn work(&self, app: &Arc<App>, drain: CancellationToken, patience: Duration) {
        let keeper = tokio::spawn(keep_leases(Arc::clone(app)));
        loop {
            let worked = tokio::select! {
                biased;
                () = drain.cancelled() => break,
                worked = self.turn(app) => worked,
            };
            let nap = if !app.routing().channels.has_room() {
                LONGEST_NAP
            } else if self.crowded.swap(false, Ordering::Relaxed) {
                CROWDED_NAP
            } else if worked {
                continue;
            } else {
                // While the database is away it takes its time to say so.
                tokio::select! {
                    () = drain.cancelled() => break,
                    nap = self.nap(app) => nap,
                }
            };
            tokio::select! {
                () = drain.cancelled() => break,
                () = self.woken.notified() => {}
                () = tokio::time::sleep(nap) => {}
            }
        }
        self.leaving.cancel();
        self.tracker.close();
        if tokio::time::timeout(patience, self.tracker.wait())
            .await
            .is_err()
        {
            self.running().values().for_each(|r| r.stop.cancel());
            // What is told to stop does so at once; what does not is cut off when the process ends.
            let _ = tokio::time::timeout(STOPPING, self.tracker.wait()).await;
        }
        keeper.abort();
        let hand_back = app.store.hand_back(Some(&self.owner), app.clock.now());
        match tokio::time::timeout(HANDING_BACK, hand_back).await {
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

    /// Claims as many tasks as there are seats; answers whether there may be more.
    async fn turn(&self, app: &Arc<App>) -> bool {
        if !app.routing().channels.has_room() {
            return false;
        }
        let Ok(first) = Arc::clone(&self.places).acquire_owned().await else {
            return false;
        };
        let mut places = vec![first];
        while let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            places.push(place);
        }
        let now = app.clock.now();
        let claimed = match app
            .store
            .claim(&self.owner, places.len(), now + app.config.leases.ms(), now)
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
        let more = claimed.len() == places.len();
        for (leased, place) in claimed.into_iter().zip(places) {
            self.start(app, leased, place);
        }
        more
    }

    fn start(&self, app: &Arc<App>, leased: Leased, place: OwnedSemaphorePermit) {
        let stop = CancellationToken::new();
        let running = Running {
            fence: leased.fence,
            stop: stop.clone(),
        };
        let id = leased.task.id.clone();
        // Still at work under a lease that ran out (the database was away): what it makes cannot count any more.
        if let Some(stale) = self.running().insert(id.clone(), running) {
            stale.stop.cancel();
        }
        let app = Arc::clone(app);
        self.tracker.spawn(async move {
            let fence = leased.fence;
            run::run(Arc::clone(&app), leased, place, stop).await;
            let workers = &app.workers;
            let mut running = workers.running();
            // Under a later lease it may be here again already.
            if running.get(&id).is_some_and(|r| r.fence == fence) {
                running.remove(&id);
            }
            drop(running);
            workers.wake();
        });
    }

    /// How long there is nothing to do, as far as can be known.
    async fn nap(&self, app: &App) -> Duration {
        let next = app.store.next_due().await.ok().flatten();
        let until = next.map_or(LONGEST_NAP, |due| {
            Duration::from_millis(u64::try_from(due - app.clock.now()).unwrap_or(0))
        });
        until.clamp(SHORTEST_NAP, LONGEST_NAP)
    }
}

/// Renews the leases of what runs here, three times per lease. Never returns.
async fn keep_leases(app: Arc<App>) {
    let lease = app.config.leases.ms();
    let third = Duration::from_millis(u64::try_from(lease / 3).unwrap_or(1).max(1));
    loop {
        tokio::time::sleep(third).await;
        let leases: Vec<(String, i64)> = {
            let running = app.workers.running();
            running
                .iter()
                .map(|(id, r)| (id.clone(), r.fence))
                .collect()
        };
        // In portions: nobody else's write waits for thousands of these.
        for portion in leases.chunks(RENEWED_AT_ONCE) {
            let until = app.clock.now() + lease;
            let kept = app.store.keep(&app.workers.owner, portion.to_vec(), until);
            match kept.await {
                Ok(lost) => lost.iter().for_each(|id| app.workers.stop(id)),
                Err(e) => {
                    tracing::warn!(error = %e, "cannot renew leases");
                    break;
                }
            }
        }
    }
}

/// Deletes what is past its time: files, task records, idempotency keys. Never returns.
pub async fn clean(app: Arc<App>) {
    let kept: Millis = app.config.expiry.tasks_ms();
    let shortest = kept
        .min(app.config.expiry.images_ms())
        .min(app.config.expiry.long_ms());
    let quarter = Duration::from_millis(u64::try_from(shortest / 4).unwrap_or(0));
    let pause = quarter.clamp(Duration::from_millis(250), CLEANING);
    loop {
        tokio::time::sleep(pause).await;
        let now = app.clock.now();
        loop {
            match app.store.purge(now - kept, now).await {
                Ok(0) => break,
                Ok(rows) => tracing::debug!(rows, "forgot old records"),
                Err(e) => {
                    tracing::warn!(error = %e, "cannot forget old records");
                    break;
                }
            }
        }
        app.blobs.sweep(now).await;
    }
}
