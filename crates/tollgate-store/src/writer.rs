//! The group-commit writer: every write of this process goes through one thread, and all that wait when it
//! turns round share one transaction and one fsync.

use std::cell::Cell;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{mpsc, oneshot};
use tollgate_core::crash;

use crate::batch::Batch;
use crate::db::{DbError, Tx, postgres, sqlite};
use crate::error::StoreError;
use crate::money::Accounts;

/// Operations that may share a transaction.
const BATCH: usize = 512;
/// Operations that may wait; past it load is shed.
const WAITING: usize = 16_384;
/// How long an operation is tried again while the database is away.
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

    /// Does it. An answer that refuses must have written nothing.
    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<Self::Out, DbError>;
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
    async fn apply(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), DbError>;
    fn answer(self: Box<Self>, committed: Result<(), StoreError>);
}

struct Pending<W: Write> {
    write: W,
    out: Option<W::Out>,
    reply: oneshot::Sender<Result<W::Out, StoreError>>,
}

#[async_trait(?Send)]
impl<W: Write> Job for Pending<W> {
    fn payers(&self) -> Payers<'_> {
        self.write.payers()
    }

    async fn apply(&mut self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        self.out = Some(self.write.apply(batch).await?);
        Ok(())
    }

    fn answer(self: Box<Self>, committed: Result<(), StoreError>) {
        let Pending { out, reply, .. } = *self;
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
    /// Transactions committed.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }

    /// Operations committed in them.
    pub fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }
}

/// The database that a writer writes.
#[derive(Clone)]
pub(crate) enum Target {
    Sqlite(PathBuf),
    Postgres(Box<tokio_postgres::Config>),
}

/// The handle: clones share the thread, which ends with the last of them.
#[derive(Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Box<dyn Job>>,
    pub(crate) stats: Arc<WriterStats>,
}

impl Writer {
    /// Opens the database, brings its schema up to date and starts the thread.
    pub(crate) async fn start(target: Target) -> Result<Self, StoreError> {
        let (queue, jobs) = mpsc::channel(WAITING);
        let (ready, opened) = oneshot::channel();
        let stats = Arc::new(WriterStats::default());
        let counters = Arc::clone(&stats);
        let broken =
            |e: std::io::Error| StoreError::Setup(format!("cannot start the writer thread: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(broken)?;
        std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || runtime.block_on(run(target, jobs, ready, counters)))
            .map_err(broken)?;
        opened
            .await
            .unwrap_or_else(|_| Err(StoreError::Broken("the writer thread ended".to_owned())))?;
        Ok(Self { queue, stats })
    }

    /// Does one write; returns when it is on disk.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending {
            write,
            out: None,
            reply,
        });
        self.queue.try_send(job).map_err(|e| match e {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => {
                StoreError::Broken("the writer thread ended".to_owned())
            }
        })?;
        answer
            .await
            .unwrap_or_else(|_| Err(StoreError::Broken("the writer thread ended".to_owned())))
    }
}

async fn run(
    target: Target,
    mut jobs: mpsc::Receiver<Box<dyn Job>>,
    ready: oneshot::Sender<Result<(), StoreError>>,
    stats: Arc<WriterStats>,
) {
    let mut backend = match Backend::open(&target).await {
        Ok(backend) => {
            let _ = ready.send(Ok(()));
            backend
        }
        Err(e) => {
            let _ = ready.send(Err(e));
            return;
        }
    };
    let mut batch = Vec::with_capacity(BATCH);
    while jobs.recv_many(&mut batch, BATCH).await > 0 {
        crash::point("writer.before_batch");
        commit(&mut backend, &mut batch, &stats).await;
    }
}

/// Commits a batch and answers it. If it fails as a whole, each of its operations is tried alone, so that one
/// that the database refuses does not take the others with it.
async fn commit(backend: &mut Backend, batch: &mut Vec<Box<dyn Job>>, stats: &WriterStats) {
    match patiently(backend, batch, stats).await {
        Ok(()) => batch.drain(..).for_each(|job| job.answer(Ok(()))),
        Err(e) if batch.len() == 1 || matches!(e, StoreError::Unavailable(_)) => {
            tracing::error!(error = %e, operations = batch.len(), "a write failed");
            batch.drain(..).for_each(|job| job.answer(Err(e.clone())));
        }
        Err(e) => {
            tracing::warn!(error = %e, operations = batch.len(), "a batch failed; its operations are tried alone");
            for mut job in batch.drain(..) {
                let result = patiently(backend, std::slice::from_mut(&mut job), stats).await;
                if let Err(e) = &result {
                    tracing::error!(error = %e, "a write failed");
                }
                job.answer(result);
            }
        }
    }
}

/// Commits a batch, again and again while the database is away, up to [`PATIENCE`].
async fn patiently(
    backend: &mut Backend,
    batch: &mut [Box<dyn Job>],
    stats: &WriterStats,
) -> Result<(), StoreError> {
    let begun = Instant::now();
    let again = Cell::new(false);
    loop {
        match backend.commit(batch, &again).await {
            Ok(()) => {
                stats.commits.fetch_add(1, Ordering::Relaxed);
                stats
                    .operations
                    .fetch_add(batch.len() as u64, Ordering::Relaxed);
                return Ok(());
            }
            Err(DbError::Away(why)) if begun.elapsed() < PATIENCE => {
                tracing::warn!(error = %why, "the database is away; trying again");
                tokio::time::sleep(PAUSE).await;
            }
            Err(e) => return Err(e.into()),
        }
    }
}

/// A connection for writing, made anew when it is lost.
enum Backend {
    Sqlite(rusqlite::Connection),
    Postgres {
        config: Box<tokio_postgres::Config>,
        connection: Option<postgres::Connection>,
    },
}

impl Backend {
    async fn open(target: &Target) -> Result<Self, StoreError> {
        match target {
            Target::Sqlite(path) => {
                let conn = sqlite::open(path)?;
                sqlite::script(&conn, "BEGIN IMMEDIATE")?;
                crate::migrate::migrate(&mut Tx::Sqlite(&conn)).await?;
                sqlite::script(&conn, "COMMIT")?;
                Ok(Self::Sqlite(conn))
            }
            Target::Postgres(config) => {
                let mut connection = postgres::Connection::open(config).await?;
                let mut tx = Tx::Postgres(connection.begin().await?);
                crate::migrate::migrate(&mut tx).await?;
                if let Tx::Postgres(tx) = tx {
                    tx.commit().await?;
                }
                Ok(Self::Postgres {
                    config: config.clone(),
                    connection: Some(connection),
                })
            }
        }
    }

    async fn commit(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        again: &Cell<bool>,
    ) -> Result<(), DbError> {
        match self {
            Self::Sqlite(conn) => {
                sqlite::script(conn, "BEGIN IMMEDIATE")?;
                let applied = apply(&mut Tx::Sqlite(conn), jobs, false).await;
                crash::point("writer.before_commit");
                let ended = applied.and_then(|()| sqlite::script(conn, "COMMIT"));
                if ended.is_err() && !conn.is_autocommit() {
                    sqlite::script(conn, "ROLLBACK")?;
                }
                crash::point("writer.after_commit");
                ended
            }
            Self::Postgres { config, connection } => {
                let mut conn = match connection.take().filter(|c| !c.is_closed()) {
                    Some(conn) => conn,
                    None => postgres::Connection::open(config).await?,
                };
                let mut tx = Tx::Postgres(conn.begin().await?);
                let applied = apply(&mut tx, jobs, again.get()).await;
                let Tx::Postgres(tx) = tx else {
                    unreachable!("a PostgreSQL transaction was begun")
                };
                match applied {
                    Ok(()) => {
                        crash::point("writer.before_commit");
                        // From here on a lost connection leaves open whether the commit happened.
                        again.set(true);
                        tx.commit().await?;
                        crash::point("writer.after_commit");
                    }
                    Err(e) => {
                        tx.roll_back().await?;
                        *connection = Some(conn);
                        return Err(e);
                    }
                }
                *connection = Some(conn);
                Ok(())
            }
        }
    }
}

async fn apply(tx: &mut Tx<'_>, jobs: &mut [Box<dyn Job>], again: bool) -> Result<(), DbError> {
    let accounts = Accounts::load(
        tx,
        jobs.iter().filter_map(|job| job.payers().user),
        jobs.iter().filter_map(|job| job.payers().key),
    )
    .await?;
    let mut batch = Batch::new(tx, accounts, again);
    for job in jobs {
        job.apply(&mut batch).await?;
    }
    batch.close().await
}
