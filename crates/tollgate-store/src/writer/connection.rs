//! The writer's connection: opens it, commits one batch at a time, reconnects when it is lost.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use tollgate_core::crash;

use super::batch::{Batch, WriterMemory};
use super::write::Job;
use crate::db::{DbError, Tx, migrate::migrate, postgres, sqlite};
use crate::error::StoreError;
use crate::ledger::balances::Balances;

/// Timeout of a transaction on PostgreSQL, after which the connection counts as lost. SQLite runs in this thread and has a busy timeout instead.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long jobs are applied in one transaction; the rest of a batch gets another one. Jobs that read are round trips: without this limit many of them,
/// on a distant or busy PostgreSQL server, would exceed [`TRANSACTION_TIMEOUT`] at every attempt, and would keep their users' rows locked that long.
pub(super) const APPLY_LIMIT: Duration = Duration::from_millis(500);

/// How often a migration is tried while other nodes write, and by how much the pause between attempts grows each time.
const MAX_MIGRATION_TRIES: u32 = 12;
const MIGRATION_PAUSE: Duration = Duration::from_millis(100);

/// The database that is written.
#[derive(Clone)]
pub(crate) enum Target {
    Sqlite(PathBuf),
    Postgres(Box<tokio_postgres::Config>),
}

/// A connection for writing, and the state that its batches share.
pub(super) struct WriterConnection {
    link: Link,
    memory: WriterMemory,
}

enum Link {
    Sqlite(rusqlite::Connection),
    Postgres {
        config: Box<tokio_postgres::Config>,
        /// Taken out while a transaction is open, so that a connection on which one fails is not used again.
        connection: Option<postgres::Connection>,
    },
}

impl WriterConnection {
    /// Connects and brings the schema up to date.
    pub(super) async fn open(target: &Target, memory: WriterMemory) -> Result<Self, StoreError> {
        let link = Link::open(target).await?;
        Ok(Self { link, memory })
    }

    /// Applies the first of `jobs`, as many as [`APPLY_LIMIT`] allows, in one transaction and commits it. Returns how many. Reads and sets
    /// `commit_in_doubt` ([`Batch::commit_in_doubt`]).
    pub(super) async fn commit(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        commit_in_doubt: &Cell<bool>,
    ) -> Result<usize, DbError> {
        let Self { link, memory } = self;
        let work = AssertUnwindSafe(async {
            match link {
                Link::Sqlite(conn) => commit_sqlite(conn, jobs, memory).await,
                Link::Postgres { config, connection } => {
                    let work = commit_postgres(config, connection, jobs, memory, commit_in_doubt);
                    tokio::time::timeout(TRANSACTION_TIMEOUT, work)
                        .await
                        .unwrap_or_else(|_| {
                            Err(DbError::Unavailable("no response within 5 s".to_owned()))
                        })
                }
            }
        });
        // An uncaught panic would end the thread, and then every later write of the process would fail.
        let result = work
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(DbError::Failed("an operation panicked".to_owned())));
        self.memory.reservations.end_batch(result.is_ok());
        result
    }
}

impl Link {
    async fn open(target: &Target) -> Result<Self, StoreError> {
        match target {
            Target::Sqlite(path) => {
                let unusable =
                    |e: DbError| StoreError::from(e).in_setup(&path.display().to_string());
                let conn = sqlite::open(path).map_err(unusable)?;
                sqlite::begin(&conn).map_err(unusable)?;
                migrate(&mut Tx::Sqlite(sqlite::Transaction::new(&conn)))
                    .await
                    .map_err(|e| e.in_setup(&path.display().to_string()))?;
                sqlite::run_script(&conn, "COMMIT").map_err(unusable)?;
                Ok(Self::Sqlite(conn))
            }
            Target::Postgres(config) => {
                let mut connection = postgres::Connection::open(config).await?;
                migrate_postgres(&mut connection).await?;
                Ok(Self::Postgres {
                    config: config.clone(),
                    connection: Some(connection),
                })
            }
        }
    }
}

/// Migrates in one transaction; retries if that lost a deadlock or waited too long for a lock, because nodes of the previous version may be writing.
async fn migrate_postgres(connection: &mut postgres::Connection) -> Result<(), StoreError> {
    let mut tries = 1;
    loop {
        let mut tx = Tx::Postgres(connection.begin());
        match migrate(&mut tx).await {
            Ok(()) => {
                if let Tx::Postgres(tx) = tx {
                    tx.commit().await?;
                }
                return Ok(());
            }
            Err(StoreError::Unavailable(why)) if tries < MAX_MIGRATION_TRIES => {
                tracing::info!(error = why, "the schema is brought up to date again");
            }
            Err(e) => return Err(e.in_setup("the PostgreSQL database")),
        }
        if let Tx::Postgres(tx) = tx {
            tx.roll_back().await?;
        }
        tokio::time::sleep(MIGRATION_PAUSE * tries).await;
        tries += 1;
    }
}

async fn commit_sqlite(
    conn: &rusqlite::Connection,
    jobs: &mut [Box<dyn Job>],
    memory: &WriterMemory,
) -> Result<usize, DbError> {
    sqlite::begin(conn)?;
    // SQLite never leaves a commit in doubt.
    let applied = apply(
        &mut Tx::Sqlite(sqlite::Transaction::new(conn)),
        jobs,
        memory,
        false,
    )
    .await;
    crash::point("writer.before_commit");
    let ended = applied.and_then(|count| sqlite::commit(conn).map(|()| count));
    if ended.is_ok() {
        crash::point("writer.after_commit");
    } else {
        sqlite::roll_back(conn);
    }
    ended
}

async fn commit_postgres(
    config: &tokio_postgres::Config,
    connection: &mut Option<postgres::Connection>,
    jobs: &mut [Box<dyn Job>],
    memory: &WriterMemory,
    commit_in_doubt: &Cell<bool>,
) -> Result<usize, DbError> {
    let mut conn = match connection.take().filter(|c| !c.is_closed()) {
        Some(conn) => conn,
        None => postgres::Connection::open(config).await?,
    };
    let tx = conn.begin();
    let (is_usable, result) = commit_in_transaction(tx, jobs, memory, commit_in_doubt).await;
    if is_usable {
        *connection = Some(conn);
    }
    result
}

/// Applies the first of `jobs` in an open transaction and ends it. Also returns whether the connection can be used again.
async fn commit_in_transaction(
    tx: postgres::Transaction<'_>,
    jobs: &mut [Box<dyn Job>],
    memory: &WriterMemory,
    commit_in_doubt: &Cell<bool>,
) -> (bool, Result<usize, DbError>) {
    let mut tx = Tx::Postgres(tx);
    let applied = apply(&mut tx, jobs, memory, commit_in_doubt.get()).await;
    let Tx::Postgres(tx) = tx else {
        unreachable!("the transaction is one of PostgreSQL")
    };
    let count = match applied {
        Ok(count) => count,
        Err(e) => return (tx.roll_back().await.is_ok(), Err(e)),
    };
    crash::point("writer.before_commit");
    // If the connection is lost after this, it is unknown whether the commit happened.
    let was_in_doubt = commit_in_doubt.replace(true);
    if let Err(e) = tx.commit().await {
        return (false, Err(e));
    }
    // An earlier try may have been committed with more of the batch than this one.
    commit_in_doubt.set(was_in_doubt);
    crash::point("writer.after_commit");
    (true, Ok(count))
}

/// Loads and locks the balances, applies the first of the jobs, writes the balances. Returns how many jobs were applied.
async fn apply(
    tx: &mut Tx<'_>,
    jobs: &mut [Box<dyn Job>],
    memory: &WriterMemory,
    commit_in_doubt: bool,
) -> Result<usize, DbError> {
    let queue_table = memory.queue_state.lock(tx).await?;
    let balances = Balances::load(
        tx,
        jobs.iter().filter_map(|job| job.accounts().user).collect(),
        jobs.iter().filter_map(|job| job.accounts().key).collect(),
        Arc::clone(&memory.reservations),
    )
    .await?;
    let mut batch = Batch::new(tx, balances, commit_in_doubt, queue_table, memory);
    let started = Instant::now();
    let mut applied = 0;
    for job in &mut *jobs {
        job.apply(&mut batch).await?;
        applied += 1;
        if started.elapsed() >= APPLY_LIMIT {
            break;
        }
    }
    batch.close().await?;
    if jobs[..applied].iter().all(|job| job.only_moves_money()) {
        batch.balances.prime_reservations();
    }
    Ok(applied)
}
