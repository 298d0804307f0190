//! SQLite: opening it durably, running statements, a few connections for readers.

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

use super::{DbError, Row, Sql, Value};

/// How long a writer waits for another process (a command beside the server).
const BUSY: Duration = Duration::from_secs(10);
/// How long a reader waits; it never has to but in the moment in which another process recovers the file.
const READER_BUSY: Duration = Duration::from_secs(2);
/// What the write-ahead log shrinks back to after a long reader, such as an audit, has made it grow.
const LOG_BYTES: i64 = 64 << 20;
const BEGIN: Sql = Sql::both("BEGIN IMMEDIATE");
const COMMIT: Sql = Sql::both("COMMIT");

/// Opens the database for writing: WAL, every commit synced to disk before it is acknowledged.
pub(crate) fn open(path: &Path) -> Result<Connection, DbError> {
    make_file(path).map_err(|e| DbError::Refused(e.to_string()))?;
    let conn = Connection::open(path).map_err(refused)?;
    set_up(&conn, BUSY)?;
    write_ahead(&conn)?;
    conn.pragma_update(None, "synchronous", "full")
        .map_err(refused)?;
    conn.pragma_update(None, "wal_autocheckpoint", 4000)
        .map_err(refused)?;
    conn.pragma_update(None, "journal_size_limit", LOG_BYTES)
        .map_err(refused)?;
    Ok(conn)
}

/// Made by hand, so that the file (and its -wal and -shm, which copy its mode) is nobody else's, and its name
/// is on disk before anything in it is acknowledged.
fn make_file(path: &Path) -> std::io::Result<()> {
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

/// Turns the write-ahead log on. SQLite does not wait here for another process that is doing just the same.
fn write_ahead(conn: &Connection) -> Result<(), DbError> {
    let begun = Instant::now();
    loop {
        match conn
            .pragma_update(None, "journal_mode", "wal")
            .map_err(refused)
        {
            Err(DbError::Away(_)) if begun.elapsed() < BUSY => {
                std::thread::sleep(Duration::from_millis(10));
            }
            result => return result,
        }
    }
}

fn set_up(conn: &Connection, busy: Duration) -> Result<(), DbError> {
    conn.busy_timeout(busy).map_err(refused)?;
    conn.pragma_update(None, "foreign_keys", true)
        .map_err(refused)?;
    conn.pragma_update(None, "temp_store", "memory")
        .map_err(refused)?;
    // A plan that depends on the values bound to it is made anew for each of them, at ten times the cost of a read.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)
        .map_err(refused)?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// Opens the database for reading only.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let conn = Connection::open(path).map_err(refused)?;
    set_up(&conn, READER_BUSY)?;
    conn.pragma_update(None, "query_only", true)
        .map_err(refused)?;
    Ok(conn)
}

/// Begins a transaction that will write: no other process can from here on.
pub(crate) fn begin(conn: &Connection) -> Result<(), DbError> {
    // Still in one: an operation panicked, or a rollback failed.
    if !conn.is_autocommit() {
        roll_back(conn);
    }
    execute(conn, &BEGIN, &[]).map(drop)
}

/// Commits; on disk when it returns.
pub(crate) fn commit(conn: &Connection) -> Result<(), DbError> {
    execute(conn, &COMMIT, &[]).map(drop)
}

/// Takes everything back, unless SQLite has done so itself.
pub(crate) fn roll_back(conn: &Connection) {
    if !conn.is_autocommit()
        && let Err(e) = script(conn, "ROLLBACK")
    {
        tracing::error!(error = %e, "a transaction cannot be rolled back");
    }
}

/// Connections for readers: a point read takes a few microseconds out of the page cache, so it runs where it
/// is asked for instead of on another thread.
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

    /// Rows of a statement, read from the newest commit.
    pub(crate) fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        query(&self.free(), sql, args)
    }

    fn free(&self) -> MutexGuard<'_, Connection> {
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

/// Rows of a statement.
pub(crate) fn query(conn: &Connection, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
    let mut statement = conn.prepare_cached(sql.sqlite).map_err(refused)?;
    rows(&mut statement, args)
}

fn rows(statement: &mut Statement<'_>, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
    bind(statement, args)?;
    let columns = statement.column_count();
    let mut rows = statement.raw_query();
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(refused)? {
        let mut cells = Vec::with_capacity(columns);
        for i in 0..columns {
            cells.push(match row.get_ref(i).map_err(refused)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(n) => Value::Int(n),
                ValueRef::Text(t) => {
                    Value::Text(Cow::Owned(String::from_utf8_lossy(t).into_owned()))
                }
                other => {
                    return Err(DbError::Shape(format!(
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

/// The connection within one transaction. Statements that a batch runs again and again stay at hand until its end: taking one
/// out of the cache and putting it back costs about as much as a small insert.
pub(crate) struct Open<'c> {
    conn: &'c Connection,
    at_hand: Vec<(&'static str, CachedStatement<'c>)>,
}

impl<'c> Open<'c> {
    /// With nothing at hand.
    pub(crate) fn new(conn: &'c Connection) -> Self {
        Self {
            conn,
            at_hand: Vec::new(),
        }
    }

    /// Rows of a statement.
    pub(crate) fn query(&self, sql: &Sql, args: &[Value<'_>]) -> Result<Vec<Row>, DbError> {
        query(self.conn, sql, args)
    }

    /// How many rows a statement changed.
    pub(crate) fn execute(&self, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        execute(self.conn, sql, args)
    }

    /// The same of one that is likely to be run again in this transaction.
    pub(crate) fn run(&mut self, sql: &'static Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
        let statement = self.at_hand(sql)?;
        bind(statement, args)?;
        statement.raw_execute().map(|n| n as u64).map_err(refused)
    }

    /// Rows of a statement that is likely to be run again in this transaction.
    pub(crate) fn read(
        &mut self,
        sql: &'static Sql,
        args: &[Value<'_>],
    ) -> Result<Vec<Row>, DbError> {
        rows(self.at_hand(sql)?, args)
    }

    fn at_hand(&mut self, sql: &'static Sql) -> Result<&mut Statement<'c>, DbError> {
        let is_it = |(text, _): &(&str, _)| std::ptr::eq(*text, sql.sqlite);
        let at = match self.at_hand.iter().position(is_it) {
            Some(at) => at,
            None => {
                let statement = self.conn.prepare_cached(sql.sqlite).map_err(refused)?;
                self.at_hand.push((sql.sqlite, statement));
                self.at_hand.len() - 1
            }
        };
        Ok(&mut self.at_hand[at].1)
    }

    /// Runs a text of several statements.
    pub(crate) fn script(&self, text: &str) -> Result<(), DbError> {
        script(self.conn, text)
    }
}

/// How many rows a statement changed.
pub(crate) fn execute(conn: &Connection, sql: &Sql, args: &[Value<'_>]) -> Result<u64, DbError> {
    let mut statement = conn.prepare_cached(sql.sqlite).map_err(refused)?;
    bind(&mut statement, args)?;
    statement.raw_execute().map(|n| n as u64).map_err(refused)
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
        .map_err(refused)?;
    }
    Ok(())
}

/// Runs a text of several statements.
pub(crate) fn script(conn: &Connection, text: &str) -> Result<(), DbError> {
    conn.execute_batch(text).map_err(refused)
}

#[allow(clippy::needless_pass_by_value)] // the shape that map_err takes
pub(crate) fn refused(e: rusqlite::Error) -> DbError {
    match e.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            DbError::Away("another process is writing and does not end".to_owned())
        }
        // A full or failing disk: nothing was committed, and it may go better in a moment.
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => DbError::Away(e.to_string()),
        Some(ErrorCode::NotADatabase) => {
            DbError::Refused("the file is not a SQLite database".to_owned())
        }
        _ => DbError::Refused(e.to_string()),
    }
}
