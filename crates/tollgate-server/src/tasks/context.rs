//! The parts of the gateway that submitting and running tasks needs, and the signals between submission, workers and pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tollgate_config::{Currency, Expiry, Fairness, Leases, Safety, TimeLimits, Workers};
use tollgate_core::{Clock, TaskKind};
use tollgate_storage::files::FileStorage;
use tollgate_store::Store;
use tollgate_upstream::egress;

use crate::cluster::live_nodes::LiveNodes;
use crate::cluster::readiness::Readiness;
use crate::fair_permits::{FairPermits, Reserve};
use crate::metrics::Metrics;
use crate::redis::{NodeMessage, NodeMessages};
use crate::reloadable::ReloadableHandle;
use crate::tasks::backlog::Backlog;
use crate::tasks::work_permit::Workload;

/// The parts of the gateway that tasks need.
pub struct TaskContext {
    /// Tasks and money.
    pub store: Store,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// Channels and prices.
    pub reloadable: ReloadableHandle,
    /// Results and input images.
    pub files: FileStorage,
    /// Downloads URLs of clients and results of providers.
    pub egress: egress::Client,
    /// Permits for results that are downloaded at the same time, shared by the hosts that they are downloaded from: a slow host leaves some to others.
    pub downloads: FairPermits,
    /// Counts tasks that ended.
    pub metrics: Arc<Metrics>,
    /// Wakes the webhook sender when a task with a `callback_url` has ended.
    pub webhook_due: Arc<Notify>,
    /// Background work that shutdown waits for.
    pub closing: TaskTracker,
    /// The nodes that are alive.
    pub live_nodes: Arc<LiveNodes>,
    /// Whether this node may work on tasks, and why not.
    pub readiness: Arc<Readiness>,
    /// Sends events to the other nodes, which notice them later without it; `None` without Redis.
    pub messages: Option<Arc<NodeMessages>>,
    /// Limits the waiting tasks and webhooks of each user.
    pub backlog: Backlog,
    /// Signals between submission, workers and pool.
    pub signals: PoolSignals,
    /// The configuration of tasks.
    pub settings: TaskSettings,
}

impl TaskContext {
    /// Signals a submitted task: wakes the pool of this process, and those of other nodes if this one cannot start the task now.
    pub fn wake_for_task(&self, kind: TaskKind, model: &str) {
        self.signals.wake_pool();
        let has_worker = self.signals.workload.free() > 0 && !self.signals.draining.is_cancelled();
        let has_channel = || {
            let reloadable = self.reloadable.current();
            reloadable.routing.has_capacity_for_task(kind, model)
        };
        if !(has_worker && self.readiness.is_ready() && has_channel()) {
            self.notify_nodes(NodeMessage::WakeWorkers);
        }
    }

    /// Sends a message to the other nodes, if there is a Redis.
    pub fn notify_nodes(&self, message: NodeMessage) {
        if let Some(messages) = &self.messages {
            messages.send(message);
        }
    }
}

/// The configuration of tasks.
pub struct TaskSettings {
    /// How long each kind of task may take.
    pub time_limits: TimeLimits,
    /// How long links and records are kept.
    pub expiry: Expiry,
    /// How long a worker's lease on a task lasts.
    pub leases: Leases,
    /// Blocked prompts.
    pub safety: Safety,
    /// The currency for error messages.
    pub currency: Currency,
}

/// Signals to the worker pool of this process.
pub struct PoolSignals {
    due: Notify,
    /// Whether a task has found all its channels at their `max_concurrency` since the pool's last claim.
    channels_full: AtomicBool,
    /// The tasks in work.
    pub workload: Workload,
    /// Permits for tasks whose references are fetched.
    pub fetches: FairPermits,
    /// Permits for tasks that wait in providers' queues and are polled by this process.
    pub polling: Arc<Semaphore>,
    /// Cancelled when this process shuts down: tasks that only wait return to the queue at once.
    pub draining: CancellationToken,
}

impl PoolSignals {
    /// Signals of a pool with that many permits.
    pub fn new(workers: Workers, fairness: &Fairness) -> Self {
        let fetches = Reserve::Always(fairness.reserve(workers.fetches));
        Self {
            workload: Workload::new(workers.calls, fairness.reserve(workers.calls)),
            fetches: FairPermits::new(workers.fetches, fetches),
            due: Notify::new(),
            channels_full: AtomicBool::new(false),
            polling: Arc::new(Semaphore::new(workers.open)),
            draining: CancellationToken::new(),
        }
    }

    /// Wakes the pool: a task was submitted or postponed, or a permit is free.
    pub fn wake_pool(&self) {
        self.due.notify_one();
    }

    /// Waits for [`PoolSignals::wake_pool`].
    pub(super) async fn woken(&self) {
        self.due.notified().await;
    }

    /// Records that a task found all its channels at their `max_concurrency`: the pool then claims tasks more slowly.
    pub(super) fn report_full_channels(&self) {
        self.channels_full.store(true, Ordering::Relaxed);
    }

    /// Whether [`PoolSignals::report_full_channels`] was called since the last call.
    pub(super) fn take_full_channels(&self) -> bool {
        self.channels_full.swap(false, Ordering::Relaxed)
    }
}
