//! The face of the store: what the gateway can ask it.

mod access;
mod callbacks;
mod chats;
mod tasks;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::audit;
use crate::db::{DbError, Row, Sql, Tx, Value, postgres, sqlite};
use crate::error::StoreError;
use crate::model::{Totals, Violation};
use crate::ops::read;
use crate::writer::{Target, Write, Writer, WriterStats};

/// How long a read may take before the database counts as away.
const READ_LIMIT: Duration = Duration::from_secs(4);
/// How long a write may take. It may still be done after that: writes can be repeated.
const WRITE_LIMIT: Duration = Duration::from_secs(15);
/// Connections for readers of SQLite; a read takes microseconds.
const SQLITE_READERS: usize = 4;

/// Which database.
#[derive(Debug, Clone)]
pub enum Location {
    /// A SQLite file; its folder exists.
    Sqlite(PathBuf),
    /// A `postgres://` URL.
    Postgres(String),
}

/// A handle on the store; clones share everything.
#[derive(Clone)]
pub struct Store {
    writer: Writer,
    readers: Arc<Readers>,
}

enum Readers {
    Sqlite {
        path: PathBuf,
        pool: sqlite::Readers,
    },
    Postgres {
        config: Box<tokio_postgres::Config>,
        pool: postgres::Readers,
    },
}

impl Store {
    /// Opens the database and brings its schema up to date.
    ///
    /// # Errors
    /// [`StoreError::Setup`] where it is no database, none of ours or newer than this program,
    /// [`StoreError::Unavailable`] where it does not answer.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        let (writer, readers) = match location {
            Location::Sqlite(path) => {
                let writer = Writer::start(Target::Sqlite(path.clone())).await?;
                let pool = sqlite::Readers::open(path, SQLITE_READERS)?;
                (
                    writer,
                    Readers::Sqlite {
                        path: path.clone(),
                        pool,
                    },
                )
            }
            Location::Postgres(url) => {
                let config = postgres::config(url)
                    .map_err(|e| StoreError::from(e).in_setup("database.url"))?;
                let config = Box::new(config);
                let writer = Writer::start(Target::Postgres(config.clone())).await?;
                let pool = postgres::Readers::new(&config)?;
                (writer, Readers::Postgres { config, pool })
            }
        };
        Ok(Self {
            writer,
            readers: Arc::new(readers),
        })
    }

    /// What the writer has done.
    pub fn stats(&self) -> &WriterStats {
        &self.writer.stats
    }

    /// Whether other processes may be working on the same tasks.
    pub fn is_shared(&self) -> bool {
        matches!(*self.readers, Readers::Postgres { .. })
    }

    async fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { pool, .. } => Ok(pool.query(sql, args)?),
            Readers::Postgres { pool, .. } => {
                // A connection that broke while it was idle says so only now; a new one may be had.
                let read = async {
                    match pool.query(sql, args).await {
                        Err(DbError::Away(_)) => pool.query(sql, args).await,
                        other => other,
                    }
                };
                match tokio::time::timeout(READ_LIMIT, read).await {
                    Ok(rows) => Ok(rows?),
                    Err(_) => Err(StoreError::Unavailable("no answer in time".to_owned())),
                }
            }
        }
    }

    /// [`Store::query`] of what may take long: SQLite does it on a thread that nobody waits for.
    async fn count(&self, sql: &'static Sql) -> Result<Vec<Row>, StoreError> {
        if self.is_shared() {
            return self.query(sql, &[]).await;
        }
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.query(sql, &[]).now_or_never())
            .await
            .map_err(|e| StoreError::Broken(format!("a count ended: {e}")))?
            .unwrap_or_else(|| unreachable!("SQLite answers without waiting"))
    }

    async fn first<T>(
        &self,
        sql: &Sql,
        args: &[Value<'_>],
        read: fn(&mut Row) -> Result<T, DbError>,
    ) -> Result<Option<T>, StoreError> {
        match self.query(sql, args).await?.first_mut() {
            Some(row) => Ok(Some(read(row)?)),
            None => Ok(None),
        }
    }

    async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        match tokio::time::timeout(WRITE_LIMIT, self.writer.write(write)).await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Unavailable("no answer in time".to_owned())),
        }
    }
}

/// The whole.
impl Store {
    /// Numbers for metrics; also shows that the database answers.
    pub async fn totals(&self) -> Result<Totals, StoreError> {
        let unfinished = self.count(&read::UNFINISHED).await?;
        let sums = self.count(&read::SUMS).await?;
        match (&unfinished[..], &sums[..]) {
            ([unfinished], [sums]) => Ok(read::totals(unfinished, sums)?),
            _ => Err(StoreError::Broken("no totals".to_owned())),
        }
    }

    /// Proves every money and task invariant; safe beside running servers. Violations, none when all is well.
    pub async fn audit(&self) -> Result<Vec<Violation>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { path, .. } => {
                // It reads everything: not on a thread that others wait for.
                let path = path.clone();
                tokio::task::spawn_blocking(move || audit_sqlite(&path))
                    .await
                    .unwrap_or_else(|e| Err(StoreError::Broken(format!("the audit ended: {e}"))))
            }
            Readers::Postgres { config, .. } => {
                let mut conn = postgres::Connection::open(config).await?;
                let mut tx = Tx::Postgres(conn.begin_snapshot().await?);
                Ok(audit::audit(&mut tx).await?)
            }
        }
    }
}

fn audit_sqlite(path: &Path) -> Result<Vec<Violation>, StoreError> {
    let conn = sqlite::open_reader(path)?;
    sqlite::script(&conn, "BEGIN")?;
    let found = audit::audit(&mut Tx::Sqlite(sqlite::Open::new(&conn)))
        .now_or_never()
        .unwrap_or_else(|| unreachable!("SQLite answers without waiting"))?;
    sqlite::script(&conn, "COMMIT")?;
    Ok(found)
}

#[cfg(test)]
mod tests;
