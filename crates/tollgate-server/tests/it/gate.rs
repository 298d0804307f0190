//! A gateway under test: the real binary with a data directory, a configuration and a database of its own.

mod client;
mod command;
mod database;
mod folder;
mod raw;
mod server;
mod stream;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::process::Command;

pub(crate) use client::{Client, Reply, links, status, task_id};
pub(crate) use command::{Said, bare, said};
use database::Database;
pub(crate) use folder::Folder;
pub(crate) use raw::Raw;
use server::{Address, Server};
pub(crate) use stream::{Event, Stream};

/// How long anything may take that tests wait for. Generous: a machine under load is no failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(15);

/// Makes a test of each function, which takes a [`Backend`]: on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn sqlite() {
                crate::gate::run(crate::gate::Backend::Sqlite, super::$test);
            }

            #[test]
            fn postgres() {
                crate::gate::run(crate::gate::Backend::Postgres, super::$test);
            }
        }
    )+ };
}
pub(crate) use on_both;

/// Makes a test of each function: on SQLite alone, where no database can make a difference.
macro_rules! on_one {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn sqlite() {
                crate::gate::run(crate::gate::Backend::Sqlite, super::$test);
            }
        }
    )+ };
}
pub(crate) use on_one;

/// Makes a test of each function: on PostgreSQL alone, for what several nodes do together.
macro_rules! on_postgres {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn postgres() {
                crate::gate::run(crate::gate::Backend::Postgres, super::$test);
            }
        }
    )+ };
}
pub(crate) use on_postgres;

/// Where a gateway keeps its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Postgres,
}

/// Runs a test; on PostgreSQL only if a server is named, which CI must do.
pub(crate) fn run<F: Future<Output = ()>>(backend: Backend, test: impl FnOnce(Backend) -> F) {
    if backend == Backend::Postgres && !database::is_available() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(test(backend));
}

/// Looks again and again until `look` finds something.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited too long for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// A gateway that is about to be made: no demo user, a sandbox that takes no time, a free port.
pub(crate) struct Setup {
    backend: Backend,
    config: String,
    environment: Vec<(String, String)>,
    listen: String,
    admin_key: Option<String>,
    database: Option<Arc<Database>>,
}

impl Setup {
    pub(crate) fn new(backend: Backend) -> Self {
        Self {
            backend,
            config: String::new(),
            environment: Vec::new(),
            listen: "127.0.0.1:0".to_owned(),
            admin_key: None,
            database: None,
        }
        .env("TOLLGATE_SANDBOX__IMAGE_MS", "0")
    }

    /// Text of `tollgate.toml`.
    pub(crate) fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self
    }

    /// A variable of the server's and every command's environment.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Where to listen, if not on a free port of loopback.
    pub(crate) fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    /// The key of what only the operator may see.
    pub(crate) fn admin_key(mut self, key: &str) -> Self {
        self.admin_key = Some(key.to_owned());
        self.env("TOLLGATE_ADMIN__KEY", key)
    }

    /// On the database and the files of `other`, as a second node. Only where that one is on PostgreSQL.
    pub(crate) fn beside(mut self, other: &Gate) -> Self {
        let database = other.database.as_ref().expect("a shared database");
        self.database = Some(Arc::clone(database));
        let files = other.data_dir().join("files");
        self.env(
            "TOLLGATE_STORAGE__URL",
            format!("file://{}", files.display()),
        )
    }

    /// Everything in its place, and no server yet.
    pub(crate) async fn prepare(self) -> Gate {
        let folder = Folder::new();
        std::fs::write(folder.join("tollgate.toml"), &self.config).unwrap();
        let database = match (self.database, self.backend) {
            (Some(shared), _) => Some(shared),
            (None, Backend::Postgres) => Some(Arc::new(Database::create().await)),
            (None, Backend::Sqlite) => None,
        };
        let mut environment = self.environment;
        if let Some(database) = &database {
            environment.push(("TOLLGATE_DATABASE__URL".to_owned(), database.url()));
        }
        Gate {
            folder,
            database,
            environment,
            listen: self.listen,
            server: None,
            address: Address::default(),
            http: client::http(),
            secrets: Mutex::new(self.admin_key.iter().cloned().collect()),
            admin_key: self.admin_key,
            was_killed: false,
            closed: false,
        }
    }

    /// A gateway that listens.
    pub(crate) async fn start(self) -> Gate {
        let mut gate = self.prepare().await;
        gate.start_server().await;
        gate
    }
}

/// A gateway. Every test ends with [`Gate::close`].
pub(crate) struct Gate {
    folder: Folder,
    database: Option<Arc<Database>>,
    environment: Vec<(String, String)>,
    listen: String,
    admin_key: Option<String>,
    server: Option<Server>,
    address: Address,
    http: client::Http,
    secrets: Mutex<Vec<String>>,
    was_killed: bool,
    closed: bool,
}

impl Gate {
    /// One with nothing configured.
    pub(crate) async fn start(backend: Backend) -> Self {
        Setup::new(backend).start().await
    }

    /// Starts the server; on the same data as before, if it ran before.
    pub(crate) async fn start_server(&mut self) {
        assert!(self.server.is_none(), "it runs already");
        let mut command = self.serve();
        self.server = Some(Server::start(&mut command, &self.log_file(), &self.address).await);
    }

    /// Starts a server that may end before it listens, as at a crash point; answers whether it listens.
    pub(crate) async fn start_doomed(&mut self) -> bool {
        let mut command = self.serve();
        self.was_killed = true;
        self.server = Server::try_start(&mut command, &self.log_file(), &self.address).await;
        self.server.is_some()
    }

    /// Whether the server has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.server.as_mut().expect("a server").has_ended()
    }

    /// The command that [`Gate::start_server`] runs.
    pub(crate) fn serve(&self) -> Command {
        self.command(&["serve", "--no-demo", "--listen", &self.listen])
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.was_killed = true;
        self.server.take().expect("a server").kill().await;
    }

    /// Waits for the server to end by itself, as at a crash point.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        self.was_killed = true;
        self.server.take().expect("a server").wait().await
    }

    /// SIGTERM; waits for the end.
    pub(crate) async fn terminate(&mut self) -> ExitStatus {
        let server = self.server.take().expect("a server");
        server.signal("TERM").await;
        server.wait().await
    }

    /// Sends the server a signal, such as `HUP`.
    pub(crate) async fn signal(&self, name: &str) {
        self.server.as_ref().expect("a server").signal(name).await;
    }

    /// SIGTERM and a new start.
    pub(crate) async fn restart(&mut self) {
        let status = self.terminate().await;
        assert_eq!(status.code(), Some(0), "{}", self.last_words());
        self.start_server().await;
    }

    /// Changes a variable of what is started from now on; an empty value unsets it.
    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.environment.retain(|(there, _)| there != name);
        if !value.is_empty() {
            self.environment.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Replaces the configuration file's text.
    pub(crate) fn set_config(&self, toml: &str) {
        std::fs::write(self.folder.join("tollgate.toml"), toml).unwrap();
    }

    /// `HOST:PORT` of the server.
    pub(crate) fn address(&self) -> String {
        self.address.get()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A folder for the test's own files.
    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    /// The URL of the PostgreSQL database, where it is on one.
    pub(crate) fn database_url(&self) -> Option<String> {
        self.database.as_ref().map(|database| database.url())
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("stderr.log")
    }

    /// All that servers wrote on stderr so far.
    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The log's end without what went well, for messages of failures.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let is_news = |line: &&str| !line.contains("\"status\":200");
        let lines: Vec<&str> = log.lines().filter(is_news).collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// A command of the gateway, with its configuration and data directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = bare(arguments, self.folder.path());
        command
            .arg("--config")
            .arg(self.folder.join("tollgate.toml"));
        command.arg("--data-dir").arg(self.data_dir());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn cli(&self, arguments: &[&str]) -> Said {
        said(&mut self.command(arguments)).await
    }

    /// Runs a command with `--json`, which must succeed; returns what it prints.
    pub(crate) async fn record(&self, arguments: &[&str]) -> Value {
        let said = said(self.command(arguments).arg("--json")).await;
        assert_eq!(said.code, 0, "{arguments:?}: {}", said.stderr);
        serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {}", said.stdout))
    }

    /// Makes a user: `--balance 7`, or unlimited where nothing is said.
    pub(crate) async fn user(&self, name: &str, arguments: &[&str]) -> Value {
        let more: &[&str] = if arguments.is_empty() {
            &["--unlimited"]
        } else {
            arguments
        };
        self.record(&[&["user", "create", name], more].concat())
            .await
    }

    /// Makes a key of a user; returns a client that has it.
    pub(crate) async fn key(&self, user: &str, arguments: &[&str]) -> Client {
        let create = ["key", "create", "--user", user];
        let record = self.record(&[&create, arguments].concat()).await;
        let secret = record["key"].as_str().expect("a key").to_owned();
        self.secrets.lock().unwrap().push(secret.clone());
        let id = record["id"].as_str().expect("an id").to_owned();
        self.client(Some(secret), id)
    }

    /// A new unlimited user with a key.
    pub(crate) async fn somebody(&self) -> Client {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("user-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.somebody_with(&name, &[]).await
    }

    /// A new user with a key; the arguments are the user's.
    pub(crate) async fn somebody_with(&self, name: &str, arguments: &[&str]) -> Client {
        self.user(name, arguments).await;
        self.key(name, &[]).await
    }

    /// A client without a key.
    pub(crate) fn nobody(&self) -> Client {
        self.client(None, String::new())
    }

    /// A client with a key that the gateway may not know.
    pub(crate) fn client(&self, secret: Option<String>, key_id: String) -> Client {
        Client::new(self.address.clone(), self.http.clone(), secret, key_id)
    }

    /// Lays hands on the database, past the gateway.
    pub(crate) async fn execute(&self, sql: &str) {
        match &self.database {
            Some(database) => database::execute(&database.url(), sql).await,
            None => database::execute_on_file(&self.data_dir().join("tollgate.db"), sql),
        }
    }

    /// A connection to write bytes on.
    pub(crate) async fn raw(&self) -> Raw {
        Raw::connect(&self.address()).await
    }

    /// A number of `/metrics`, by its name and labels as they stand there.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let operator = self.client(self.admin_key.clone(), String::new());
        let text = operator.get("/metrics").await.expect(200).text();
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or("0").parse().unwrap()
    }

    /// Waits until every task has ended.
    pub(crate) async fn idle(&self) {
        until("every task to end", async || {
            let waiting = self.metric("tollgate_tasks{state=\"submitted\"}").await;
            let running = self.metric("tollgate_tasks{state=\"in_progress\"}").await;
            (waiting + running < 0.5).then_some(())
        })
        .await;
    }

    /// Waits for every task's end, stops the server and checks the books: nothing held, every invariant kept, no
    /// key and no line but JSON in the log.
    pub(crate) async fn close(mut self) {
        if self.server.is_some() {
            self.idle().await;
            let status = self.terminate().await;
            assert_eq!(status.code(), Some(0), "SIGTERM; {}", self.last_words());
        }
        self.check_books().await;
        self.check_log();
        self.closed = true;
    }

    /// `tollgate audit` finds nothing, and nothing is held.
    pub(crate) async fn check_books(&self) {
        let audit = self.cli(&["audit"]).await;
        assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);
        for list in ["user", "key"] {
            let records = self.record(&[list, "list"]).await;
            for record in records.as_array().expect("a list") {
                assert_eq!(record["held"], 0.0, "{list} {record}");
            }
        }
    }

    fn check_log(&self) {
        let log = self.log();
        for secret in self.secrets.lock().unwrap().iter() {
            assert!(!log.contains(secret.as_str()), "a key is in the log");
        }
        for line in log.lines() {
            let plain = line.starts_with("tollgate: ") || self.was_killed;
            assert!(
                plain || serde_json::from_str::<Value>(line).is_ok(),
                "{line}"
            );
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the gateway's last words:\n{}", self.last_words());
        } else {
            assert!(self.closed, "a test must close its gates");
        }
    }
}
