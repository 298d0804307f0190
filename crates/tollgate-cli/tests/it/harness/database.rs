//! A separate PostgreSQL database for each test, on the server that the environment names.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::types::Value;
use tokio::sync::OnceCell;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use super::command::{run_command, tollgate};
use super::temp_dir::TempDir;

/// The variable that names the server; its user may create databases.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES_URL";

/// Whether a server to test on is configured; panics in CI if none is.
pub(super) fn is_available() -> bool {
    if std::env::var_os(VARIABLE).is_some() {
        return true;
    }
    let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
    assert!(!ci, "{VARIABLE} names no PostgreSQL server to test on");
    eprintln!("SKIPPED on PostgreSQL: {VARIABLE} names no server");
    false
}

/// A new database, which is deleted on drop.
pub(super) struct Database {
    server: String,
    name: String,
    /// The next query reuses this connection: a test polls, and each connection is a process of the server.
    connection: Mutex<Option<Client>>,
}

impl Database {
    /// Creates a database with the current tables, or without any.
    pub(super) async fn create(is_empty: bool) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = std::env::var(VARIABLE).unwrap();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("gateway_{}_{n}", std::process::id());
        let template = match is_empty {
            true => "template1",
            false => template(&server).await,
        };
        let client = connect(&server).await;
        query_on(&client, &format!("DROP DATABASE IF EXISTS {name}")).await;
        let create = format!("CREATE DATABASE {name} TEMPLATE {template}");
        // Takes a third less processor time than the default strategy. PostgreSQL 14 has no other, and no name for it.
        let by_files = format!("{create} STRATEGY FILE_COPY");
        if client.batch_execute(&by_files).await.is_err() {
            query_on(&client, &create).await;
        }
        let connection = Mutex::default();
        Self {
            server,
            name,
            connection,
        }
    }

    /// The same as the function [`query`].
    pub(super) async fn query(&self, sql: &str) -> Vec<Vec<String>> {
        let idle = self.connection.lock().unwrap().take();
        let client = match idle.filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => connect(&self.url()).await,
        };
        let rows = query_on(&client, sql).await;
        *self.connection.lock().unwrap() = Some(client);
        rows
    }

    pub(super) fn url(&self) -> String {
        url(&self.server, &self.name)
    }
}

fn url(server: &str, database: &str) -> String {
    let (base, _) = server.rsplit_once('/').expect("a URL with a database");
    format!("{base}/{database}")
}

/// A database with the current tables: copying it takes less time than creating them. A later run of the tests creates it again.
async fn template(server: &str) -> &'static str {
    const NAME: &str = "gateway_template";
    static MIGRATED: OnceCell<()> = OnceCell::const_new();
    MIGRATED
        .get_or_init(async || {
            query(server, &format!("DROP DATABASE IF EXISTS {NAME}")).await;
            query(server, &format!("CREATE DATABASE {NAME}")).await;
            let folder = TempDir::new();
            let mut command = tollgate(&["user", "list"], folder.path());
            command.env("TOLLGATE_DATABASE__URL", url(server, NAME));
            let output = run_command(&mut command).await;
            assert_eq!(output.code, 0, "{output:?}");
        })
        .await;
    NAME
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // On a separate thread, because this one may be in a runtime.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = { runtime }.enable_all().build().unwrap();
            runtime.block_on(query(
                &server,
                &format!("DROP DATABASE {name} WITH (FORCE)"),
            ));
        });
        let _ = dropped.join();
    }
}

/// Runs statements on a server; returns their rows.
pub(super) async fn query(url: &str, sql: &str) -> Vec<Vec<String>> {
    query_on(&connect(url).await, sql).await
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

async fn query_on(client: &Client, sql: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for message in client.simple_query(sql).await.unwrap() {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned());
            rows.push(cells.collect());
        }
    }
    rows
}

/// Runs statements on an SQLite file.
pub(super) fn execute_on_file(file: &Path, sql: &str) {
    open(file).execute_batch(sql).unwrap();
}

/// Runs a query on an SQLite file; returns its rows.
pub(super) fn query_file(file: &Path, sql: &str) -> Vec<Vec<String>> {
    let database = open(file);
    let mut statement = database.prepare(sql).unwrap();
    let columns = statement.column_count();
    let cell = |value: Value| match value {
        Value::Integer(number) => number.to_string(),
        Value::Text(text) => text,
        _ => String::new(),
    };
    let rows = statement.query_map([], |row| {
        let cells = (0..columns).map(|at| Ok(cell(row.get(at)?)));
        cells.collect()
    });
    rows.unwrap().map(Result::unwrap).collect()
}

fn open(file: &Path) -> rusqlite::Connection {
    let database = rusqlite::Connection::open(file).unwrap();
    database.busy_timeout(super::TIMEOUT).unwrap();
    database
}
