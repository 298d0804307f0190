//! The group-commit writer: every write of this process is executed by one thread, and the writes that wait when it is free share one transaction and
//! one fsync, as many of them as can be applied within half a second.

pub(crate) mod batch;
mod connection;
mod write;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tollgate_core::crash;

use crate::db::DbError;
use crate::error::StoreError;
use crate::grants::Grants;
use crate::ledger::reservations::Reservations;
use crate::list_blocks::BlockEnds;
use crate::tail::recorder::TailRecorder;
use crate::task_versions::TaskVersions;
use crate::tasks::queue_table::QueueState;
use batch::WriterMemory;
pub(crate) use connection::Target;
use connection::WriterConnection;
pub(crate) use write::{AccountIds, Write};
use write::{Job, Pending};

/// The most operations in a batch.
const BATCH_MAX: usize = 512;
/// The number of operations that are worth a transaction: a batch does not wait to become larger than this.
const BATCH_TARGET: usize = 64;
/// How long a batch waits for operations that are expected, and how often it checks for them.
const GATHER: (Duration, Duration) = (Duration::from_micros(300), Duration::from_micros(40));
/// The backlog from which [`GATHER_BUSY`] is used instead: each operation waits longer, but there are fewer commits.
const BUSY_BACKLOG: usize = 16;
const GATHER_BUSY: (Duration, Duration) = (Duration::from_micros(600), Duration::from_micros(75));
/// Operations that may wait in the queue; beyond that a write fails with [`StoreError::Overloaded`].
const QUEUE_CAPACITY: usize = 16_384;
/// How long an operation is retried while the database is unavailable.
const RETRY_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between the retries.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Counters of the writer, for metrics.
#[derive(Debug, Default)]
pub struct WriterStats {
    commits: AtomicU64,
    operations: AtomicU64,
}

impl WriterStats {
    fn count(&self, operations: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.operations
            .fetch_add(operations as u64, Ordering::Relaxed);
    }

    /// Transactions committed since the start.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Operations committed in these transactions.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }
}

/// Receives the result of a write.
type ResultReceiver<T> = oneshot::Receiver<Result<T, StoreError>>;

/// The handle on the writer thread. Clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    pub(crate) stats: Arc<WriterStats>,
    pub(crate) task_versions: Arc<TaskVersions>,
    /// The money that running chats hold in memory.
    pub(crate) reservations: Arc<Reservations>,
    /// The money that this node has taken out of balances for its chats, where nodes share the database.
    pub(crate) grants: Arc<Grants>,
    /// Records events for watchers of the live tail.
    pub(crate) tail: Arc<TailRecorder>,
    /// The table that contains the state of unfinished tasks.
    pub(crate) queue_state: Arc<QueueState>,
}

impl Writer {
    /// Opens the database, brings its schema up to date and starts the thread.
    pub(crate) async fn start(target: Target) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(QUEUE_CAPACITY);
        let (ready, opened) = oneshot::channel();
        let writer = Self {
            queue,
            stats: Arc::default(),
            task_versions: Arc::default(),
            reservations: Arc::default(),
            grants: Arc::default(),
            tail: Arc::default(),
            queue_state: Arc::default(),
        };
        let (stats, versions) = (Arc::clone(&writer.stats), Arc::clone(&writer.task_versions));
        let memory = WriterMemory {
            reservations: Arc::clone(&writer.reservations),
            tail: Arc::clone(&writer.tail),
            queue_state: Arc::clone(&writer.queue_state),
            block_ends: BlockEnds::default(),
        };
        let not_started =
            |e: std::io::Error| StoreError::Setup(format!("cannot start the writer thread: {e}"));
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread();
                match { runtime }.enable_all().build() {
                    Ok(runtime) => runtime.block_on(async {
                        match WriterConnection::open(&target, memory).await {
                            Ok(connection) => {
                                let _ = ready.send(Ok(()));
                                run(connection, jobs, stats, versions).await;
                            }
                            Err(e) => drop(ready.send(Err(e))),
                        }
                    }),
                    Err(e) => {
                        let _ = ready.send(Err(not_started(e)));
                    }
                }
            })
            .map_err(not_started)?;
        opened.await.unwrap_or_else(|_| Err(thread_ended()))?;
        Ok(writer)
    }

    /// Runs one write in the next batch. It is on disk when this returns.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        let result = self.enqueue(write)?.await;
        result.unwrap_or_else(|_| Err(thread_ended()))
    }

    /// Queues a write without waiting for its result. It runs after the writes that were queued before it.
    pub(crate) fn write_detached<W: Write>(&self, write: W) {
        if let Err(e) = self.enqueue(write) {
            tracing::error!(error = %e, "a detached write was not queued");
        }
    }

    fn enqueue<W: Write>(&self, write: W) -> Result<ResultReceiver<W::Out>, StoreError> {
        let (reply, result) = oneshot::channel();
        let job = Box::new(Pending::new(write, reply));
        self.queue.try_send(job).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => thread_ended(),
        })?;
        Ok(result)
    }
}

fn thread_ended() -> StoreError {
    StoreError::Broken("the writer thread has ended".to_owned())
}

async fn run(
    mut connection: WriterConnection,
    mut jobs: mpsc::Receiver<Box<dyn Job>>,
    stats: Arc<WriterStats>,
    versions: Arc<TaskVersions>,
) {
    // The operations of the last batch plus those that were queued when it ended: an estimate of how many callers write at the same time.
    let mut backlog = 0;
    loop {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        if jobs.recv_many(&mut batch, BATCH_MAX).await == 0 {
            return;
        }
        gather(&mut jobs, &mut batch, backlog);
        crash::point("writer.before_batch");
        let size = batch.len();
        let results = commit(&mut connection, batch, &stats).await;
        backlog = size + jobs.len();
        for (job, result) in results {
            job.reply(result, &versions);
        }
    }
}

/// Waits a moment for the rest of the backlog. On a fast disk most callers that have just received their reply will write again soon when the first
/// of them does; without the wait each would need a separate fsync. A single caller never waits.
fn gather(jobs: &mut mpsc::Receiver<Box<dyn Job>>, batch: &mut Vec<Box<dyn Job>>, backlog: usize) {
    // If the backlog is large, the batch does not wait for all of it: while the first callers receive their replies and return, the others are
    // processed.
    let (wanted, timeout, interval) = match backlog {
        0..BUSY_BACKLOG => (backlog, GATHER.0, GATHER.1),
        _ => (
            (backlog * 2 / 3).min(BATCH_TARGET),
            GATHER_BUSY.0,
            GATHER_BUSY.1,
        ),
    };
    let started = Instant::now();
    while batch.len() < wanted && started.elapsed() < timeout {
        // The thread belongs to the writer, and the timers of the runtime are too imprecise for this.
        std::thread::sleep(interval);
        while batch.len() < BATCH_MAX
            && let Ok(job) = jobs.try_recv()
        {
            batch.push(job);
        }
    }
}

/// An operation and its result.
type JobResult = (Box<dyn Job>, Result<(), StoreError>);

/// Commits a batch. If the batch fails, its halves are tried separately, and then their halves, until the failing operation is alone, so that it does
/// not make the others fail.
async fn commit(
    connection: &mut WriterConnection,
    batch: Vec<Box<dyn Job>>,
    stats: &WriterStats,
) -> Vec<JobResult> {
    // A commit that is in doubt may have contained any part of the batch.
    let commit_in_doubt = Cell::new(false);
    let mut results = Vec::with_capacity(batch.len());
    let mut parts = vec![batch];
    while let Some(mut part) = parts.pop() {
        match commit_with_retry(connection, &mut part, &commit_in_doubt).await {
            Ok(count) => {
                stats.count(count);
                let rest = part.split_off(count);
                if !rest.is_empty() {
                    parts.push(rest);
                }
                results.extend(part.into_iter().map(|job| (job, Ok(()))));
            }
            // If the disk accepts no writes, the halves would fail too.
            Err(e)
                if part.len() > 1
                    && !matches!(e, StoreError::Unavailable(_) | StoreError::DiskFull(_)) =>
            {
                tracing::warn!(error = %e, operations = part.len(), "a batch failed; its halves are tried apart");
                let second = part.split_off(part.len() / 2);
                parts.push(second);
                parts.push(part);
            }
            Err(e) => {
                tracing::error!(error = %e, operations = part.len(), "a write failed");
                results.extend(part.into_iter().map(|job| (job, Err(e.clone()))));
            }
        }
    }
    results
}

/// Commits; while the database is unavailable, retries until the operation that has waited longest has waited [`RETRY_TIMEOUT`]. The others then fail
/// early, because later operations would only queue behind them. A single operation is applied again if another node inserted its key first. Returns how
/// many of the operations were committed, which are the first ones.
async fn commit_with_retry(
    connection: &mut WriterConnection,
    batch: &mut [Box<dyn Job>],
    commit_in_doubt: &Cell<bool>,
) -> Result<usize, StoreError> {
    let longest = |batch: &[Box<dyn Job>]| batch.iter().map(|job| job.waited()).max();
    let mut was_duplicate = false;
    loop {
        match connection.commit(batch, commit_in_doubt).await {
            Ok(count) => return Ok(count),
            Err(DbError::Unavailable(why)) if longest(batch) < Some(RETRY_TIMEOUT) => {
                tracing::warn!(error = %why, "the database is unavailable; retrying");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            Err(DbError::Duplicate(_)) if batch.len() == 1 && !was_duplicate => {
                was_duplicate = true;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests;
