//! The group-commit writer: every write of this process goes through one thread, and all that wait when it
//! turns round share one transaction and one fsync.

mod backend;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tollgate_core::crash;

use crate::batch::Batch;
use crate::changes::Changes;
use crate::db::DbError;
use crate::error::StoreError;
use crate::money::Reserved;
use backend::Backend;
pub(crate) use backend::Target;

/// Operations that may share a transaction.
const BATCH: usize = 512;
/// Operations that are worth a transaction: no batch waits to become larger.
const ENOUGH: usize = 64;
/// How long a batch may wait for operations that others are about to ask for, and how often it then looks.
const GATHER: (Duration, Duration) = (Duration::from_micros(300), Duration::from_micros(40));
/// The same where this many wrote at the same time: what each waits longer, all save in commits.
const MANY: usize = 16;
const GATHER_MANY: (Duration, Duration) = (Duration::from_micros(600), Duration::from_micros(75));
/// Operations that may wait; past it load is shed.
const WAITING: usize = 16_384;
/// How long an operation waits, tried again and again, while the database is away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between such tries.
const PAUSE: Duration = Duration::from_millis(100);

/// One write. It is applied again when its batch failed, so it keeps what it needs.
#[async_trait(?Send)]
pub(crate) trait Write: Send + 'static {
    /// What it answers.
    type Out: Send + 'static;

    /// The users and keys whose money it moves: read and locked before it is applied.
    fn payers(&self) -> Payers<'_> {
        Payers::default()
    }

    /// Whether it does nothing to users and keys but move their money.
    fn only_moves_money(&self) -> bool {
        false
    }

    /// Does it. An answer that refuses must have written nothing.
    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError>;

    /// Notes the tasks of which readers now see something else.
    fn changed(&self, _out: &Self::Out, _changes: &Changes) {}
}

#[derive(Default)]
pub(crate) struct Payers<'a> {
    pub(crate) user: Option<&'a str>,
    pub(crate) key: Option<&'a str>,
}

/// A [`Write`] with its answer's way back, the type of the answer forgotten.
#[async_trait(?Send)]
trait Job: Send {
    fn payers(&self) -> Payers<'_>;
    fn only_moves_money(&self) -> bool;
    /// How long it has been waiting for its answer.
    fn waited(&self) -> Duration;
    async fn apply(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), DbError>;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>, changes: &Changes);
}

struct Pending<W: Write> {
    write: W,
    since: Instant,
    out: Option<W::Out>,
    reply: oneshot::Sender<Result<W::Out, StoreError>>,
}

#[async_trait(?Send)]
impl<W: Write> Job for Pending<W> {
    fn payers(&self) -> Payers<'_> {
        self.write.payers()
    }

    fn only_moves_money(&self) -> bool {
        self.write.only_moves_money()
    }

    fn waited(&self) -> Duration {
        self.since.elapsed()
    }

    async fn apply(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        self.out = Some(self.write.apply(batch).await?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>, changes: &Changes) {
        let Pending {
            write, out, reply, ..
        } = *self;
        match (&committed, &out) {
            (Ok(()), Some(out)) => write.changed(out, changes),
            _ => changes.note_all(),
        }
        let missing = || StoreError::Broken("a committed write has no answer".to_owned());
        // An error here: nobody listens any more, the request was given up. The write stands all the same.
        let _ = reply.send(committed.and_then(|()| out.ok_or_else(missing)));
    }
}

/// What the writer has done, for metrics.
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

    /// Transactions committed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Operations committed in them.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }
}

/// Where the answer to a write comes out.
type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// The handle: clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    pub(crate) stats: Arc<WriterStats>,
    pub(crate) changes: Arc<Changes>,
    /// What no batch takes: it belongs to running chats.
    pub(crate) reserved: Arc<Reserved>,
}

impl Writer {
    /// Opens the database, brings its schema up to date and starts the thread.
    pub(crate) async fn start(target: Target) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(WAITING);
        let (ready, opened) = oneshot::channel();
        let stats = Arc::new(WriterStats::default());
        let counters = Arc::clone(&stats);
        let changes = Arc::new(Changes::default());
        let noted = Arc::clone(&changes);
        let reserved = Arc::new(Reserved::default());
        let kept = Arc::clone(&reserved);
        let broken =
            |e: std::io::Error| StoreError::Setup(format!("cannot start the writer thread: {e}"));
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread();
                match { runtime }.enable_all().build() {
                    Ok(runtime) => runtime.block_on(async {
                        match Backend::open(&target, kept).await {
                            Ok(backend) => {
                                let _ = ready.send(Ok(()));
                                run(backend, jobs, counters, noted).await;
                            }
                            Err(e) => drop(ready.send(Err(e))),
                        }
                    }),
                    Err(e) => {
                        let _ = ready.send(Err(broken(e)));
                    }
                }
            })
            .map_err(broken)?;
        opened
            .await
            .unwrap_or_else(|_| Err(StoreError::Broken("the writer thread ended".to_owned())))?;
        Ok(Self {
            queue,
            stats,
            changes,
            reserved,
        })
    }

    /// Does one write; returns when it is on disk.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        self.ask(write)?
            .await
            .unwrap_or_else(|_| Err(StoreError::Broken("the writer thread ended".to_owned())))
    }

    /// Has one write done, after those that were asked for before; nobody hears what becomes of it.
    pub(crate) fn post<W: Write>(&self, write: W) {
        if let Err(e) = self.ask(write) {
            tracing::error!(error = %e, "a write was not taken");
        }
    }

    fn ask<W: Write>(&self, write: W) -> Result<Answer<W::Out>, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending {
            write,
            since: Instant::now(),
            out: None,
            reply,
        });
        self.queue.try_send(job).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => {
                StoreError::Broken("the writer thread ended".to_owned())
            }
        })?;
        Ok(answer)
    }
}

async fn run(
    mut backend: Backend,
    mut jobs: mpsc::Receiver<Box<dyn Job>>,
    stats: Arc<WriterStats>,
    changes: Arc<Changes>,
) {
    // How many wrote at the same time when the last batch was done: those in it, and those behind it.
    let mut crowd = 0;
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        if jobs.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        gather(&mut jobs, &mut batch, crowd);
        crash::point("writer.before_batch");
        let size = batch.len();
        let done = commit(&mut backend, batch, &stats).await;
        crowd = size + jobs.len();
        done.into_iter()
            .for_each(|(job, result)| job.answer(result, &changes));
    }
}

/// Waits a moment for the rest of the crowd. On a fast disk most of those who were just answered are still on
/// their way back when the first of them asks again; without this, each would be given an fsync of its own. Who
/// writes alone never waits.
fn gather(jobs: &mut mpsc::Receiver<Box<dyn Job>>, batch: &mut Vec<Box<dyn Job>>, crowd: usize) {
    // Not for all of a large crowd: while the first of it are answered and come back, the rest of it works.
    let (wanted, longest, look) = match crowd {
        0..MANY => (crowd, GATHER.0, GATHER.1),
        _ => ((crowd * 2 / 3).min(ENOUGH), GATHER_MANY.0, GATHER_MANY.1),
    };
    let begun = Instant::now();
    while batch.len() < wanted && begun.elapsed() < longest {
        // The thread is the writer's own, and timers of the runtime are too coarse for this.
        std::thread::sleep(look);
        while batch.len() < BATCH
            && let Ok(job) = jobs.try_recv()
        {
            batch.push(job);
        }
    }
}

/// An operation and what became of it.
type Done = (Box<dyn Job>, Result<(), StoreError>);

/// Commits a batch. If the database refuses it as a whole, its halves are tried apart, and theirs, until the
/// operation that does not go is alone: it does not take the others with it.
async fn commit(backend: &mut Backend, batch: Vec<Box<dyn Job>>, stats: &WriterStats) -> Vec<Done> {
    // Once a try may have been committed, that holds for all parts of the batch.
    let again = Cell::new(false);
    let mut done = Vec::with_capacity(batch.len());
    let mut parts = vec![batch];
    while let Some(mut part) = parts.pop() {
        match patiently(backend, &mut part, &again).await {
            Ok(()) => {
                stats.count(part.len());
                done.extend(part.into_iter().map(|job| (job, Ok(()))));
            }
            Err(e) if part.len() > 1 && !matches!(e, StoreError::Unavailable(_)) => {
                tracing::warn!(error = %e, operations = part.len(), "a batch failed; its halves are tried apart");
                let second = part.split_off(part.len() / 2);
                parts.push(second);
                parts.push(part);
            }
            Err(e) => {
                tracing::error!(error = %e, operations = part.len(), "a write failed");
                done.extend(part.into_iter().map(|job| (job, Err(e.clone()))));
            }
        }
    }
    done
}

/// Commits, and while the database is away tries again, until the longest waiting operation has waited
/// [`PATIENCE`]. The others then fail early: what comes later would only wait behind them.
async fn patiently(
    backend: &mut Backend,
    batch: &mut [Box<dyn Job>],
    again: &Cell<bool>,
) -> Result<(), StoreError> {
    let longest = |batch: &[Box<dyn Job>]| batch.iter().map(|job| job.waited()).max();
    loop {
        match backend.commit(batch, again).await {
            Ok(()) => return Ok(()),
            Err(DbError::Away(why)) if longest(batch) < Some(PATIENCE) => {
                tracing::warn!(error = %why, "the database is away; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests;
