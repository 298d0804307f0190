//! The handle on the database: opens it, reads through a pool of connections, writes through the group-commit writer. The methods of each aggregate
//! are in its own file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::db::{DbError, Row, Sql, Value, disk_reserve, postgres, sqlite};
use crate::error::StoreError;
use crate::replica::Replica;
use crate::slow_queries::{SlowReaders, TIME_LIMIT};
use crate::writer::{Target, Write, Writer, WriterStats};

/// Timeout of a read.
const READ_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout of a write. The write may still be committed after that; every write can be retried.
const WRITE_TIMEOUT: Duration = Duration::from_secs(15);
/// Connections for SQLite readers. A read takes microseconds.
const SQLITE_READERS: usize = 4;

/// Where the database is.
#[derive(Debug, Clone)]
pub enum DatabaseLocation {
    /// A SQLite file, in an existing folder.
    Sqlite(PathBuf),
    /// A `postgres://` URL.
    Postgres(String),
}

/// A handle on the store. Clones share everything.
#[derive(Clone)]
pub struct Store {
    pub(crate) writer: Writer,
    pub(crate) readers: Arc<Readers>,
    pub(crate) slow_readers: Arc<SlowReaders>,
    pub(crate) replica: Option<Arc<Replica>>,
}

/// Connections for reading, and what is needed to open another one.
pub(crate) enum Readers {
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
    /// [`StoreError::Setup`] if it is not a database, or one of another program or of a newer version; [`StoreError::Unavailable`] if it does not
    /// respond.
    pub async fn open(location: &DatabaseLocation) -> Result<Self, StoreError> {
        let (writer, readers, slow_readers) = match location {
            DatabaseLocation::Sqlite(path) => {
                let path = path.clone();
                let writer = Writer::start(Target::Sqlite(path.clone())).await?;
                let pool = sqlite::Readers::open(&path, SQLITE_READERS)?;
                let slow = SlowReaders::sqlite(&path)?;
                (writer, Readers::Sqlite { path, pool }, slow)
            }
            DatabaseLocation::Postgres(url) => {
                let config = postgres::config(url)
                    .map_err(|e| StoreError::from(e).in_setup("database.url"))?;
                let config = Box::new(config);
                let writer = Writer::start(Target::Postgres(config.clone())).await?;
                let pool = postgres::Readers::new(&config)?;
                let slow = SlowReaders::postgres(&config)?;
                (writer, Readers::Postgres { config, pool }, slow)
            }
        };
        Ok(Self {
            writer,
            readers: Arc::new(readers),
            slow_readers: Arc::new(slow_readers),
            replica: None,
        })
    }

    /// Writes a file beside SQLite's database that occupies space, so that the next start can open the database even if the disk is full. Does
    /// nothing on PostgreSQL.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] if there is not enough space for it.
    pub async fn reserve_disk(&self) -> Result<(), StoreError> {
        self.on_sqlite_file(|path| {
            disk_reserve::ensure(path).map_err(|e| StoreError::DiskFull(e.to_string()))
        })
        .await
    }

    /// At the end of a server: moves the contents of SQLite's write-ahead log to the database, which is then complete without the log. Does nothing
    /// on PostgreSQL.
    ///
    /// # Errors
    /// [`StoreError::DiskFull`] and the like: nothing is lost, the next start reads the log.
    pub async fn empty_write_ahead_log(&self) -> Result<(), StoreError> {
        self.on_sqlite_file(|path| Ok(sqlite::empty_wal(path)?))
            .await
    }

    /// Runs `work` on SQLite's file, on a thread for blocking work; does nothing on PostgreSQL.
    async fn on_sqlite_file(
        &self,
        work: fn(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let Readers::Sqlite { path, .. } = &*self.readers else {
            return Ok(());
        };
        let path = path.clone();
        let finished = tokio::task::spawn_blocking(move || work(&path));
        finished
            .await
            .map_err(|e| StoreError::Broken(e.to_string()))?
    }

    /// Counters of the writer.
    pub fn stats(&self) -> &WriterStats {
        &self.writer.stats
    }

    /// Whether other processes may use the same database.
    pub fn is_shared(&self) -> bool {
        matches!(*self.readers, Readers::Postgres { .. })
    }

    /// Runs a query on a reader's connection.
    pub(crate) async fn query(
        &self,
        sql: &Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        match &*self.readers {
            Readers::Sqlite { pool, .. } => Ok(pool.query(sql, args)?),
            Readers::Postgres { pool, .. } => {
                // An idle connection reports only now that it is broken: retry once on another one.
                let read = async {
                    match pool.query(sql, args).await {
                        Err(DbError::Unavailable(_)) => pool.query(sql, args).await,
                        other => other,
                    }
                };
                match tokio::time::timeout(READ_TIMEOUT, read).await {
                    Ok(rows) => Ok(rows?),
                    Err(_) => Err(timed_out(READ_TIMEOUT)),
                }
            }
        }
    }

    /// Runs a query that may take long.
    ///
    /// # Errors
    /// [`StoreError::QueryTimeout`] after 5 seconds.
    pub(crate) async fn query_slow(
        &self,
        sql: &'static Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        Ok(self.slow_readers.query(sql, args, TIME_LIMIT).await?)
    }

    /// Runs one of several queries that end at the same time limit.
    ///
    /// # Errors
    /// [`StoreError::QueryTimeout`] at `until`, and after 5 seconds.
    pub(crate) async fn query_slow_until(
        &self,
        sql: &'static Sql,
        args: &[Value<'_>],
        until: Instant,
    ) -> Result<Vec<Row>, StoreError> {
        let limit = until
            .saturating_duration_since(Instant::now())
            .min(TIME_LIMIT);
        Ok(self.slow_readers.query(sql, args, limit).await?)
    }

    /// Runs a query and converts its first row, if there is one.
    pub(crate) async fn first<T>(
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

    /// Runs a write in the writer's next batch; it is on disk when this returns.
    pub(crate) async fn write<W: Write>(&self, write: W) -> Result<W::Out, StoreError> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.writer.write(write)).await {
            Ok(result) => result,
            Err(_) => Err(timed_out(WRITE_TIMEOUT)),
        }
    }
}

fn timed_out(limit: Duration) -> StoreError {
    StoreError::Unavailable(format!("no response within {} s", limit.as_secs()))
}
