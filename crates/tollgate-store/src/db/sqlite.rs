//! The SQLite driver: durable opening of the file (WAL, synchronous=full), cached statements, a pool of read-only connections.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, ErrorCode, Statement};

use super::disk_reserve;
use super::sql::{DbError, Row, Sql, Value};

/// Busy timeout of the writer: how long it waits for another process (a CLI command that runs beside the server).
const WRITER_BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Busy timeout of a reader. A reader only ever waits while another process recovers the file.
const READER_BUSY_TIMEOUT: Duration = Duration::from_secs(2);
/// Size in bytes to which the write-ahead log shrinks after a long read, such as an audit, has made it grow.
const WAL_MAX_BYTES: i64 = 64 << 20;
/// Steps of SQLite's virtual machine after which a query checks its time limit: they take less than a millisecond.
const STEPS_PER_CHECK: i32 = 10_000;
const BEGIN: Sql = Sql::both("BEGIN IMMEDIATE");
const COMMIT: Sql = Sql::both("COMMIT");

/// Opens the database for writing: WAL, every commit is synced to disk before it is acknowledged. If the disk is full, the reserve is deleted to free
/// space.
pub(crate) fn open(path: &Path) -> Result<Connection, DbError> {
    match try_open(path) {
        Err(DbError::DiskFull(_)) if disk_reserve::release(path) => try_open(path),
        opened => opened,
    }
}

fn try_open(path: &Path) -> Result<Connection, DbError> {
    create_file(path).map_err(|e| DbError::Failed(e.to_string()))?;
    let conn = Connection::open(path).map_err(db_error)?;
    configure(&conn, WRITER_BUSY_TIMEOUT)?;
    enable_wal(&conn)?;
    conn.pragma_update(None, "synchronous", "full")
        .map_err(db_error)?;
    conn.pragma_update(None, "wal_autocheckpoint", 4000)
        .map_err(db_error)?;
    conn.pragma_update(None, "journal_size_limit", WAL_MAX_BYTES)
        .map_err(db_error)?;
    Ok(conn)
}

/// Creates the file with mode 0600, which SQLite copies to -wal and -shm, and syncs the directory so that the name
/// is on disk before anything in the file is acknowledged.
fn create_file(path: &Path) -> std::io::Result<()> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match path.parent() {
        Some(folder) if folder != Path::new("") => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// Enables the write-ahead log. Retries by itself, because the busy timeout does not apply when two processes do this at once.
fn enable_wal(conn: &Connection) -> Result<(), DbError> {
    let started = Instant::now();
    loop {
        match conn
            .pragma_update(None, "journal_mode", "wal")
            .map_err(db_error)
        {
            Err(DbError::Unavailable(_)) if started.elapsed() < WRITER_BUSY_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn configure(conn: &Connection, busy: Duration) -> Result<(), DbError> {
    conn.busy_timeout(busy).map_err(db_error)?;
    conn.pragma_update(None, "foreign_keys", true)
        .map_err(db_error)?;
    conn.pragma_update(None, "temp_store", "memory")
        .map_err(db_error)?;
    // Without the stable query planner, a statement is planned again for new parameter values, at ten times the cost of a read.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(db_error)?;
    // The log and its index are kept when the last connection closes: if the disk has filled up since, they could not be created again.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map_err(db_error)?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// Moves the contents of the write-ahead log to the database and empties the log, unless another connection is using it.
pub(crate) fn empty_wal(path: &Path) -> Result<(), DbError> {
    let conn = open(path)?;
    conn.busy_timeout(Duration::ZERO).map_err(db_error)?;
    conn.pragma_update(None, "wal_checkpoint", "truncate")
        .map_err(db_error)
}

/// Opens the database for reading only.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let conn = Connection::open(path).map_err(db_error)?;
    configure(&conn, READER_BUSY_TIMEOUT)?;
    conn.pragma_update(None, "query_only", true)
        .map_err(db_error)?;
    Ok(conn)
}

/// Begins a write transaction. No other process can write until it ends.
pub(crate) fn begin(conn: &Connection) -> Result<(), DbError> {
    // A transaction is still open if an operation panicked or a rollback failed.
    if !conn.is_autocommit() {
        roll_back(conn);
    }
    execute(conn, &BEGIN, &[]).map(drop)
}

/// Commits. The transaction is on disk when this returns.
pub(crate) fn commit(conn: &Connection) -> Result<(), DbError> {
    execute(conn, &COMMIT, &[]).map(drop)
}

/// Rolls back, unless SQLite has already done so.
pub(crate) fn roll_back(conn: &Connection) {
    if !conn.is_autocommit()
        && let Err(e) = run_script(conn, "ROLLBACK")
    {
        tracing::error!(error = %e, "a transaction cannot be rolled back");
    }
}

/// A pool of read-only connections. A point read takes a few microseconds from the page cache, so it runs on the
/// caller's thread.
pub(crate) struct Readers {
    connections: Vec<Mutex<Connection>>,
    next: AtomicUsize,
}

impl Readers {
    /// `count` read-only connections to the database at `path`.
    pub(crate) fn open(path: &Path, count: usize) -> Result<Self, DbError> {
        let connections = (0..count)
            .map(|_| open_reader(path).map(Mutex::new))
            .collect::<Result<_, DbError>>()?;
        Ok(Self {
            connections,
            next: AtomicUsize::new(0),
        })
    }

    /// Runs a query against the newest commit.
    pub(crate) fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        query(&self.pick(), sql, args)
    }

    /// [`Readers::query`] that fails with [`DbError::QueryTimeout`] after `until`. The limit stays set on the connection, so the users of a pool must
    /// all call this function, or all call [`Readers::query`].
    pub(crate) fn query_until(
        &self,
        sql: &Sql,
        args: &[Value<'_>],
        until: Instant,
    ) -> Result<Vec<Row>, DbError> {
        let mut conn = self.pick();
        let is_over = move || Instant::now() >= until;
        conn.progress_handler(STEPS_PER_CHECK, Some(is_over))
            .map_err(db_error)?;
        query(&conn, sql, args)
    }

    fn pick(&self) -> MutexGuard<'_, Connection> {
        let start = self.next.fetch_add(1, Ordering::Relaxed);
        for step in 0..self.connections.len() {
            match self.connections[(start + step) % self.connections.len()].try_lock() {
                Ok(conn) => return conn,
                Err(TryLockError::Poisoned(poisoned)) => return poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.connections[start % self.connections.len()]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs a query and returns its rows.
pub(crate) fn query(conn: &Connection, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
    let mut statement = conn.prepare_cached(sql.sqlite).map_err(db_error)?;
    rows(&mut statement, args)
}

fn rows(statement: &mut Statement<'_>, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
    bind(statement, args)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(db_error)? {
        let mut cells = Vec::with_capacity(columns);
        for i in 0..columns {
            cells.push(match row.get_ref(i).map_err(db_error)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(n) => Value::Int(n),
                ValueRef::Text(t) => Value::Text(Cow::Owned(text(t))),
                other => {
                    return Err(DbError::UnexpectedData(format!(
                        "a cell of type {:?}",
                        other.data_type()
                    )));
                }
            });
        }
        found.push(Row(cells));
    }
    Ok(found)
}

/// Converts a text, which may be invalid UTF-8 if another program wrote it. Valid UTF-8 is checked in blocks.
fn text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// The connection within one transaction. Statements that a batch repeats stay prepared until its end: taking a statement out of the statement cache
/// and returning it costs about as much as a small insert.
pub(crate) struct Transaction<'c> {
    conn: &'c Connection,
    prepared: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Transaction<'c> {
    /// A transaction that is already open on `conn`.
    pub(crate) fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            prepared: Vec::new(),
        }
    }

    /// Runs a query and returns its rows.
    pub(crate) fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        query(self.conn, sql, args)
    }

    /// Runs a statement and returns how many rows it changed.
    pub(crate) fn execute(&self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        execute(self.conn, sql, args)
    }

    /// As [`Transaction::execute`], for a statement that the transaction repeats: it stays prepared.
    pub(crate) fn execute_repeated(
        &mut self,
        sql: &'static Sql,
        args: &[Value<'_>],
    ) -> Result<u64, DbError> {
        let statement = self.prepared(sql)?;
        bind(statement, args)?;
        statement.raw_execute().map(|n| n as u64).map_err(db_error)
    }

    /// As [`Transaction::query`], for a statement that the transaction repeats: it stays prepared.
    pub(crate) fn query_repeated(
        &mut self,
        sql: &'static Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, DbError> {
        rows(self.prepared(sql)?, args)
    }

    fn prepared(&mut self, sql: &'static Sql) -> Result<&mut Statement<'c>, DbError> {
        let is_same = |(text, _): &(&str, _)| std::ptr::eq(*text, sql.sqlite);
        let at = match self.prepared.iter().position(is_same) {
            Some(at) => at,
            None => {
                let statement = self.conn.prepare_cached(sql.sqlite).map_err(db_error)?;
                self.prepared.push((sql.sqlite, statement));
                self.prepared.len() - 1
            }
        };
        Ok(&mut self.prepared[at].1)
    }

    /// Runs several statements separated by semicolons.
    pub(crate) fn run_script(&self, text: &str) -> Result<(), DbError> {
        run_script(self.conn, text)
    }
}

/// Runs a statement and returns how many rows it changed.
pub(crate) fn execute(conn: &Connection, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
    let mut statement = conn.prepare_cached(sql.sqlite).map_err(db_error)?;
    bind(&mut statement, args)?;
    statement.raw_execute().map(|n| n as u64).map_err(db_error)
}

fn bind(statement: &mut Statement<'_>, args: &[Value<'_>]) -> Result<(), DbError> {
    debug_assert_eq!(
        statement.parameter_count(),
        args.len(),
        "parameters of a statement"
    );
    for (i, arg) in args.iter().enumerate() {
        debug_assert_eq!(
            statement.parameter_name(i + 1),
            Some(format!("${}", i + 1).as_str()),
            "parameters must first occur in ascending order"
        );
        match arg {
            Value::Null => statement.raw_bind_parameter(i + 1, rusqlite::types::Null),
            Value::Int(n) => statement.raw_bind_parameter(i + 1, n),
            Value::Text(t) => statement.raw_bind_parameter(i + 1, t.as_ref()),
        }
        .map_err(db_error)?;
    }
    Ok(())
}

/// Runs several statements separated by semicolons.
pub(crate) fn run_script(conn: &Connection, text: &str) -> Result<(), DbError> {
    conn.execute_batch(text).map_err(db_error)
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err takes
pub(crate) fn db_error(e: rusqlite::Error) -> DbError {
    match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            DbError::Unavailable("another process holds the write lock of the database".to_owned())
        }
        // The disk is full or failing: nothing was committed, and a retry may succeed later.
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => DbError::DiskFull(e.to_string()),
        // Only slow queries can be interrupted.
        Some(ErrorCode::OperationInterrupted) => DbError::QueryTimeout,
        Some(ErrorCode::NotADatabase) => {
            DbError::Failed("the file is not a SQLite database".to_owned())
        }
        _ => DbError::Failed(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_has_its_own_error() {
        let conn = Connection::open_in_memory().unwrap();
        run_script(&conn, "CREATE TABLE t (x BLOB); PRAGMA max_page_count = 4").unwrap();
        let written = run_script(&conn, "INSERT INTO t VALUES (zeroblob(1000000))");
        assert!(matches!(written, Err(DbError::DiskFull(_))), "{written:?}");
    }
    #[test]
    fn the_wal_files_remain_after_the_last_connection() {
        let folder = std::env::temp_dir().join(format!("tollgate-wal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.db");
        let conn = open(&path).unwrap();
        run_script(&conn, "CREATE TABLE t (x INT)").unwrap();
        drop(conn);
        empty_wal(&path).unwrap();
        let length = |suffix: &str| {
            let file = folder.join(format!("a.db{suffix}"));
            std::fs::metadata(file).unwrap().len()
        };
        assert!(length("") > 0 && length("-shm") > 0);
        assert_eq!(length("-wal"), 0);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
