//! The test harness: a new database of each kind for each test, raw SQL on it, and an audit at the end.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use tokio::runtime::Runtime;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tollgate_store::{DatabaseLocation, Store, StoreError};

use crate::fixtures::assert_clean;

/// Names the server to test on; its user may create databases.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES_URL";

/// Creates two tests of each function: on SQLite and on PostgreSQL. Their databases have the current tables, unless they are to be `empty`.
macro_rules! on_both {
    (empty: $($test:ident),+ $(,)?) => {
        crate::databases::on_both!(@ on_empty_postgres $($test),+);
    };
    (@ $on_postgres:ident $($test:ident),+) => { $(
        mod $test {
            #[test]
            fn sqlite() {
                crate::databases::on_sqlite(super::$test);
            }

            #[test]
            fn postgres() {
                crate::databases::$on_postgres(super::$test);
            }
        }
    )+ };
    ($($test:ident),+ $(,)?) => {
        crate::databases::on_both!(@ on_postgres $($test),+);
    };
}
pub(crate) use on_both;

/// The database of one test.
pub(crate) struct Db {
    pub(crate) location: DatabaseLocation,
    /// The next direct query reuses this connection: each connection is a process of the server.
    connection: Mutex<Option<Client>>,
}

impl Db {
    pub(crate) fn new(location: DatabaseLocation) -> Self {
        let connection = Mutex::default();
        Self {
            location,
            connection,
        }
    }

    /// Opens the store. Each opened store is a separate node.
    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.location).await.expect("the store opens")
    }

    /// Runs SQL directly; returns the rows, every cell as text.
    pub(crate) async fn raw(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        match &self.location {
            DatabaseLocation::Sqlite(path) => sqlite(path, sql),
            DatabaseLocation::Postgres(url) => self.postgres(url, sql).await,
        }
    }

    /// Runs statements that return no rows.
    pub(crate) async fn batch(&self, statements: &str) {
        match &self.location {
            DatabaseLocation::Sqlite(path) => {
                let result = connect(path).execute_batch(statements);
                result.unwrap_or_else(|e| panic!("{statements}: {e}"));
            }
            DatabaseLocation::Postgres(url) => drop(self.postgres(url, statements).await),
        }
    }

    async fn postgres(&self, url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
        let idle = self.connection.lock().unwrap().take();
        let client = match idle.filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => {
                let client = connect_postgres(url).await;
                // Switches foreign keys off, so that a test can violate them.
                let setting = "SET session_replication_role = replica";
                client.batch_execute(setting).await.unwrap();
                client
            }
        };
        let rows = query(&client, sql).await;
        *self.connection.lock().unwrap() = Some(client);
        rows
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

async fn connect_postgres(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn query(client: &Client, sql: &str) -> Vec<Vec<Option<String>>> {
    let result = client.simple_query(sql).await;
    let messages = result.unwrap_or_else(|e| panic!("{sql}: {e:?}"));
    let rows = messages.into_iter().filter_map(|message| match message {
        SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    let cells = |row: tokio_postgres::SimpleQueryRow| {
        let cells = (0..row.len()).map(|i| row.get(i).map(str::to_owned));
        cells.collect()
    };
    rows.map(cells).collect()
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
    let db = Db::new(DatabaseLocation::Sqlite(folder.0.join("tollgate.db")));
    runtime().block_on(async {
        test(&db).await;
        assert_audit_passes(&db).await;
    });
}

/// Audits the database, unless the test has made it unusable.
async fn assert_audit_passes(db: &Db) {
    match Store::open(&db.location).await {
        Ok(store) => assert_clean(&store).await,
        Err(StoreError::Setup(_)) => {}
        Err(e) => panic!("{e}"),
    }
}

/// Runs a test on a new database of the server, if one is configured. The database has the current tables.
pub(crate) fn on_postgres(test: impl AsyncFnOnce(&Db)) {
    let Some(server) = server() else { return };
    on_new_database(&server, Some(template(&server)), test);
}

/// Runs a test on a new database without tables, if a server is configured.
pub(crate) fn on_empty_postgres(test: impl AsyncFnOnce(&Db)) {
    let Some(server) = server() else { return };
    on_new_database(&server, None, test);
}

fn server() -> Option<String> {
    let server = std::env::var(VARIABLE).ok();
    if server.is_none() {
        let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
        assert!(!ci, "{VARIABLE} names no PostgreSQL server to test on");
        eprintln!("SKIPPED on PostgreSQL: {VARIABLE} names no server");
    }
    server
}

/// A database with the current tables: copying it takes less time than creating them. A later run of the tests creates it again.
fn template(server: &str) -> &'static str {
    const NAME: &str = "store_template";
    static CREATED: OnceLock<()> = OnceLock::new();
    CREATED.get_or_init(|| {
        runtime().block_on(async {
            let client = connect_postgres(server).await;
            let drop_old = format!("DROP DATABASE IF EXISTS {NAME}");
            client.batch_execute(&drop_old).await.unwrap();
            create_empty(&client, NAME).await;
            let location = DatabaseLocation::Postgres(url(server, NAME));
            drop(Store::open(&location).await.expect("the store opens"));
        });
    });
    NAME
}

/// Runs a test on a copy of the database `template`, or on one without tables if it is `None`.
fn on_new_database(server: &str, template: Option<&str>, test: impl AsyncFnOnce(&Db)) {
    let runtime = runtime();
    let name = format!("store_{}", tollgate_core::id::short_id("").to_lowercase());
    let client = runtime.block_on(connect_postgres(server));
    match template {
        Some(template) => {
            let copy = format!("CREATE DATABASE {name} TEMPLATE {template}");
            // Takes a third less processor time than the default strategy. PostgreSQL 14 has no other, and no name for it.
            let by_files = format!("{copy} STRATEGY FILE_COPY");
            if runtime.block_on(client.batch_execute(&by_files)).is_err() {
                runtime.block_on(query(&client, &copy));
            }
        }
        None => runtime.block_on(create_empty(&client, &name)),
    }
    let db = Db::new(DatabaseLocation::Postgres(url(server, &name)));
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            test(&db).await;
            assert_audit_passes(&db).await;
        });
    }));
    let drop_database = format!("DROP DATABASE {name} WITH (FORCE)");
    runtime.block_on(query(&client, &drop_database));
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

fn url(server: &str, database: &str) -> String {
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    format!("{base}/{database}")
}

/// Creates a database with a language's collation, if the server supports it: the store must not depend on it.
async fn create_empty(client: &Client, name: &str) {
    let locale = "TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";
    let sorted = format!("CREATE DATABASE {name} {locale}");
    if client.batch_execute(&sorted).await.is_err() {
        query(client, &format!("CREATE DATABASE {name}")).await;
    }
}
