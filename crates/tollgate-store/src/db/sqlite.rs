//! SQLite: opening it durably, running statements, a few connections for readers.

use std::borrow::Cow;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, Statement};

use super::{DbError, Row, Sql, Value};

/// How long a writer waits for another process (a command beside the server).
const BUSY: Duration = Duration::from_secs(10);

/// Opens the database for writing: WAL, every commit synced to disk before it is acknowledged.
pub(crate) fn open(path: &Path) -> Result<Connection, DbError> {
    // Made by hand first, so that the file (and its -wal and -shm, which copy its mode) is nobody else's.
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|e| DbError::Refused(format!("cannot open {}: {e}", path.display())))?;
    let conn = Connection::open(path).map_err(refused)?;
    set_up(&conn)?;
    conn.pragma_update(None, "journal_mode", "wal")
        .map_err(refused)?;
    conn.pragma_update(None, "synchronous", "full")
        .map_err(refused)?;
    conn.pragma_update(None, "wal_autocheckpoint", 4000)
        .map_err(refused)?;
    Ok(conn)
}

fn set_up(conn: &Connection) -> Result<(), DbError> {
    conn.busy_timeout(BUSY).map_err(refused)?;
    conn.pragma_update(None, "foreign_keys", true)
        .map_err(refused)?;
    conn.pragma_update(None, "temp_store", "memory")
        .map_err(refused)?;
    conn.set_prepared_statement_cache_capacity(128);
    Ok(())
}

/// Opens the database for reading only.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, DbError> {
    let conn = Connection::open(path).map_err(refused)?;
    set_up(&conn)?;
    conn.pragma_update(None, "query_only", true)
        .map_err(refused)?;
    Ok(conn)
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
    bind(&mut statement, args)?;
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
        Some(ErrorCode::NotADatabase) => {
            DbError::Refused("the file is not a SQLite database".to_owned())
        }
        _ => DbError::Refused(e.to_string()),
    }
}
