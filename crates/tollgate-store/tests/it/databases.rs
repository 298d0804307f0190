//! The test harness: a fresh database of each kind for each test, raw SQL on it, and an audit at the end.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Runtime;
use tokio_postgres::{NoTls, SimpleQueryMessage};
use tollgate_store::{DatabaseLocation, Store, StoreError};

use crate::fixtures::assert_clean;

/// Names the server to test on; its user may create databases.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES_URL";

/// Makes two tests of each function: on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn sqlite() {
                crate::databases::on_sqlite(super::$test);
            }

            #[test]
            fn postgres() {
                crate::databases::on_postgres(super::$test);
            }
        }
    )+ };
}
pub(crate) use on_both;

/// A test's own database.
pub(crate) struct Db {
    pub(crate) location: DatabaseLocation,
}

impl Db {
    /// Opens the store. Each is a node of its own.
    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location).await.expect("the store opens")
    }

    /// Runs SQL directly; returns the rows, every cell as text.
    pub(crate) async fn raw(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        match &self.location {
            DatabaseLocation::Sqlite(path) => sqlite(path, sql),
            DatabaseLocation::Postgres(url) => postgres(url, sql).await,
        }
    }

    /// Runs statements of which none returns rows.
    pub(crate) async fn batch(&self, statements: &str) {
        match &self.location {
            DatabaseLocation::Sqlite(path) => {
                let done = connect(path).execute_batch(statements);
                done.unwrap_or_else(|e| panic!("{statements}: {e}"));
            }
            DatabaseLocation::Postgres(url) => drop(postgres(url, statements).await),
        }
    }

    /// The single number that a query returns.
    pub(crate) async fn number(&self, sql: &str) -> i64 {
        let rows = self.raw(sql).await;
        let cell = rows.first().and_then(|row| row[0].as_ref());
        cell.and_then(|n| n.parse().ok())
            .unwrap_or_else(|| panic!("{sql}: {rows:?}"))
    }
}

/// A connection that may violate foreign keys.
fn connect(path: &Path) -> rusqlite::Connection {
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.busy_timeout(std::time::Duration::from_secs(5))
        .unwrap();
    conn.pragma_update(None, "foreign_keys", false).unwrap();
    conn.pragma_update(None, "synchronous", "OFF").unwrap();
    conn
}

fn sqlite(path: &Path, sql: &str) -> Vec<Vec<Option<String>>> {
    use rusqlite::types::Value;
    let conn = connect(path);
    let mut statement = conn.prepare(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let columns = statement.column_count();
    let mut rows = statement.query([]).unwrap();
    let mut found = Vec::new();
    while let Some(row) = rows.next().unwrap_or_else(|e| panic!("{sql}: {e}")) {
        let cell = |i| match row.get(i).unwrap() {
            Value::Null => None,
            Value::Integer(n) => Some(n.to_string()),
            Value::Real(n) => Some(n.to_string()),
            Value::Text(t) => Some(t),
            Value::Blob(b) => Some(format!("{b:?}")),
        };
        found.push((0..columns).map(cell).collect());
    }
    found
}

async fn postgres(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    // Turns off foreign keys, so that a test can violate them.
    client
        .batch_execute("SET session_replication_role = replica")
        .await
        .unwrap();
    let answer = client.simple_query(sql).await;
    let messages = answer.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let mut found = Vec::new();
    for message in messages {
        if let SimpleQueryMessage::Row(row) = message {
            found.push(
                (0..row.len())
                    .map(|i| row.get(i).map(str::to_owned))
                    .collect(),
            );
        }
    }
    drop(client);
    connection.await.unwrap().unwrap();
    found
}

/// A temporary folder that is deleted on drop.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tollgate-store-{}-{n}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The runtime of one test.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// Runs a test on a new SQLite file.
pub(crate) fn on_sqlite(test: impl AsyncFnOnce(&Db)) {
    let folder = Folder::new();
    let db = Db {
        location: DatabaseLocation::Sqlite(folder.0.join("tollgate.db")),
    };
    runtime().block_on(async {
        test(&db).await;
        assert_audit_passes(&db).await;
    });
}

/// Audits the database, unless the test made it unusable.
async fn assert_audit_passes(db: &Db) {
    match Store::open(&db.location).await {
        Ok(store) => assert_clean(&store).await,
        Err(StoreError::Setup(_)) => {}
        Err(e) => panic!("{e}"),
    }
}

/// Runs a test on a new database of the server, if one is named.
pub(crate) fn on_postgres(test: impl AsyncFnOnce(&Db)) {
    let Ok(server) = std::env::var(VARIABLE) else {
        let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!ci, "{VARIABLE} names no PostgreSQL server to test on");
        eprintln!("SKIPPED on PostgreSQL: {VARIABLE} names no server");
        return;
    };
    let runtime = runtime();
    let name = format!("store_{}", tollgate_core::id::short_id("").to_lowercase());
    runtime.block_on(create(&server, &name));
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    let db = Db {
        location: DatabaseLocation::Postgres(format!("{base}/{name}")),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            test(&db).await;
            assert_audit_passes(&db).await;
        });
    }));
    runtime.block_on(postgres(
        &server,
        &format!("DROP DATABASE {name} WITH (FORCE)"),
    ));
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

/// Creates a database with a language's collation, if the server supports it: the store must not depend on it.
async fn create(server: &str, name: &str) {
    let (client, connection) = tokio_postgres::connect(server, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let locale = "TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";
    let sorted = format!("CREATE DATABASE {name} {locale}");
    if client.batch_execute(&sorted).await.is_err() {
        let plain = format!("CREATE DATABASE {name}");
        client.batch_execute(&plain).await.unwrap();
    }
    drop(client);
    connection.await.unwrap().unwrap();
}
