//! The writer's connection: opening it, one transaction at a time on it, made anew when it is lost.

use std::cell::Cell;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tollgate_core::crash;

use super::Job;
use crate::batch::Batch;
use crate::db::{DbError, Tx, postgres, sqlite};
use crate::error::StoreError;
use crate::money::{Accounts, Reserved};

/// How long PostgreSQL may take over one transaction before the connection counts as lost. SQLite works in this
/// very thread and has its own limit.
const TRANSACTION: Duration = Duration::from_secs(5);

/// The database that a writer writes.
#[derive(Clone)]
pub(crate) enum Target {
    Sqlite(PathBuf),
    Postgres(Box<tokio_postgres::Config>),
}

/// A connection for writing, and what its batches must leave alone.
pub(super) struct Backend {
    link: Link,
    reserved: Arc<Reserved>,
}

enum Link {
    Sqlite(rusqlite::Connection),
    Postgres {
        config: Box<tokio_postgres::Config>,
        /// Taken while a transaction is open: what fails half-way is not used again.
        connection: Option<postgres::Connection>,
    },
}

impl Backend {
    /// Connects and brings the schema up to date.
    pub(super) async fn open(target: &Target, reserved: Arc<Reserved>) -> Result<Self, StoreError> {
        let link = Link::open(target).await?;
        Ok(Self { link, reserved })
    }

    /// Does `jobs` in one transaction. `again` says, and is told, whether an earlier try may have been committed.
    pub(super) async fn commit(
        &mut self,
        jobs: &mut [Box<dyn Job>],
        again: &Cell<bool>,
    ) -> Result<(), DbError> {
        let Self { link, reserved } = self;
        let work = AssertUnwindSafe(async {
            match link {
                Link::Sqlite(conn) => commit_sqlite(conn, jobs, reserved).await,
                Link::Postgres { config, connection } => {
                    let work = commit_postgres(config, connection, jobs, reserved, again);
                    tokio::time::timeout(TRANSACTION, work)
                        .await
                        .unwrap_or_else(|_| Err(DbError::Away("no answer in time".to_owned())))
                }
            }
        });
        // A panic would end the thread, and with it every later write of the process.
        let done = work
            .catch_unwind()
            .await
            .unwrap_or_else(|_| Err(DbError::Refused("an operation panicked".to_owned())));
        self.reserved.end_batch(done.is_ok());
        done
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
                crate::migrate::migrate(&mut Tx::Sqlite(sqlite::Open::new(&conn)))
                    .await
                    .map_err(|e| e.in_setup(&path.display().to_string()))?;
                sqlite::script(&conn, "COMMIT").map_err(unusable)?;
                Ok(Self::Sqlite(conn))
            }
            Target::Postgres(config) => {
                let mut connection = postgres::Connection::open(config).await?;
                {
                    let mut tx = Tx::Postgres(connection.begin().await?);
                    crate::migrate::migrate(&mut tx)
                        .await
                        .map_err(|e| e.in_setup("the PostgreSQL database"))?;
                    if let Tx::Postgres(tx) = tx {
                        tx.commit().await?;
                    }
                }
                Ok(Self::Postgres {
                    config: config.clone(),
                    connection: Some(connection),
                })
            }
        }
    }
}

async fn commit_sqlite(
    conn: &rusqlite::Connection,
    jobs: &mut [Box<dyn Job>],
    reserved: &Arc<Reserved>,
) -> Result<(), DbError> {
    sqlite::begin(conn)?;
    // What SQLite says not to have committed was not committed: nothing is tried again here.
    let applied = apply(
        &mut Tx::Sqlite(sqlite::Open::new(conn)),
        jobs,
        reserved,
        false,
    )
    .await;
    crash::point("writer.before_commit");
    let ended = applied.and_then(|()| sqlite::commit(conn));
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
    reserved: &Arc<Reserved>,
    again: &Cell<bool>,
) -> Result<(), DbError> {
    let mut conn = match connection.take().filter(|c| !c.is_closed()) {
        Some(conn) => conn,
        None => postgres::Connection::open(config).await?,
    };
    let begun = conn.begin().await?;
    let (is_well, done) = in_postgres(begun, jobs, reserved, again).await;
    if is_well {
        *connection = Some(conn);
    }
    done
}

/// Does `jobs` in an open transaction and ends it; answers also whether the connection is good for another one.
async fn in_postgres(
    tx: postgres::Transaction<'_>,
    jobs: &mut [Box<dyn Job>],
    reserved: &Arc<Reserved>,
    again: &Cell<bool>,
) -> (bool, Result<(), DbError>) {
    let mut tx = Tx::Postgres(tx);
    let applied = apply(&mut tx, jobs, reserved, again.get()).await;
    let Tx::Postgres(tx) = tx else {
        unreachable!("a PostgreSQL transaction was begun")
    };
    if let Err(e) = applied {
        return (tx.roll_back().await.is_ok(), Err(e));
    }
    crash::point("writer.before_commit");
    // From here on a lost connection leaves open whether the commit happened.
    again.set(true);
    if let Err(e) = tx.commit().await {
        return (false, Err(e));
    }
    crash::point("writer.after_commit");
    (true, Ok(()))
}

async fn apply(
    tx: &mut Tx<'_>,
    jobs: &mut [Box<dyn Job>],
    reserved: &Arc<Reserved>,
    again: bool,
) -> Result<(), DbError> {
    let accounts = Accounts::load(
        tx,
        jobs.iter().filter_map(|job| job.payers().user).collect(),
        jobs.iter().filter_map(|job| job.payers().key).collect(),
        Arc::clone(reserved),
    )
    .await?;
    let mut batch = Batch::new(tx, accounts, again);
    for job in &mut *jobs {
        job.apply(&mut batch).await?;
    }
    batch.close().await?;
    if jobs.iter().all(|job| job.only_moves_money()) {
        batch.accounts.foretell();
    }
    Ok(())
}
