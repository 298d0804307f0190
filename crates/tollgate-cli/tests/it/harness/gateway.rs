//! The gateway's process, its data and its configuration.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;
use tokio::process::Command;

use super::database::{self, Database};
use super::process::{Address, Server};
use super::secrets::Secrets;
use super::*;

/// A gateway. Every test ends with [`TestGateway::close`].
pub(crate) struct TestGateway {
    pub(super) dir: TempDir,
    pub(super) database: Option<Arc<Database>>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) listen: String,
    pub(super) admin_key: Option<String>,
    pub(super) server: Option<Server>,
    pub(super) address: Address,
    pub(super) http: client::Http,
    pub(super) secrets: Secrets,
    pub(super) was_killed: bool,
    pub(super) closed: bool,
}

impl TestGateway {
    /// Starts one without any configuration.
    pub(crate) async fn start(backend: Backend) -> Self {
        Setup::new(backend).start().await
    }

    /// The same, with an unlimited client.
    pub(crate) async fn with_client(backend: Backend) -> (Self, Client) {
        let gateway = Self::start(backend).await;
        let client = gateway.unlimited_client().await;
        (gateway, client)
    }

    /// Starts one with this configuration, and an unlimited client.
    pub(crate) async fn with_config(backend: Backend, config: &str) -> (Self, Client) {
        let gateway = Setup::new(backend).config(config).start().await;
        let client = gateway.unlimited_client().await;
        (gateway, client)
    }

    /// Starts the server, on the same data as before if it has run before.
    pub(crate) async fn start_server(&mut self) {
        let listens = self.try_start().await;
        assert!(listens, "the server ended at its start: {}", self.log());
    }

    /// Starts a server that may end before it listens, as at a crash point; returns whether it listens.
    pub(crate) async fn start_to_crash(&mut self) -> bool {
        self.was_killed = true;
        self.try_start().await
    }

    /// Starts the server by another command than [`TestGateway::serve_command`].
    pub(crate) async fn start_command(&mut self, command: Command) {
        let listens = self.try_start_with(command).await;
        assert!(listens, "the server ended at its start: {}", self.log());
    }

    async fn try_start(&mut self) -> bool {
        self.try_start_with(self.serve_command()).await
    }

    async fn try_start_with(&mut self, mut command: Command) -> bool {
        assert!(self.server.is_none(), "it runs already");
        self.server = Server::try_start(&mut command, &self.log_file(), &self.address).await;
        self.server.is_some()
    }

    /// Whether the server has exited by itself.
    pub(crate) fn has_exited(&mut self) -> bool {
        self.server.as_mut().expect("a server").has_exited()
    }

    /// The command that [`TestGateway::start_server`] runs.
    pub(crate) fn serve_command(&self) -> Command {
        let mut command = self.command(&["serve", "--no-demo", "--listen", &self.listen]);
        command.stdin(Stdio::null());
        command
    }

    /// The same, run by a program that runs its last arguments as a command, such as `prlimit`.
    pub(crate) fn serve_command_under(&self, program: &str, arguments: &[&str]) -> Command {
        let serve = self.serve_command();
        let serve = serve.as_std();
        let mut command = Command::new(program);
        command.args(arguments).arg(serve.get_program());
        command.args(serve.get_args()).stdin(Stdio::null());
        command.current_dir(serve.get_current_dir().expect("a directory"));
        command.envs(
            serve
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        command
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.was_killed = true;
        self.server.take().expect("a server").kill().await;
    }

    /// Waits until the server exits by itself, as at a crash point.
    pub(crate) async fn wait_for_exit(&mut self) -> ExitStatus {
        self.was_killed = true;
        self.server.take().expect("a server").wait().await
    }

    /// Sends SIGTERM; waits for the exit, which must be a success.
    pub(crate) async fn terminate(&mut self) {
        let server = self.server.take().expect("a server");
        server.signal("TERM").await;
        let status = server.wait().await;
        assert_eq!(status.code(), Some(0), "SIGTERM; {}", self.log_tail());
    }

    /// Sends the server a signal, such as `HUP`.
    pub(crate) async fn signal(&self, name: &str) {
        self.server.as_ref().expect("a server").signal(name).await;
    }

    /// Replaces the configuration file and signals the server to reload it; returns when the log contains `log_text`.
    pub(crate) async fn reload(&self, toml: &str, log_text: &str) {
        self.set_config(toml);
        self.signal("HUP").await;
        until_true(log_text, async || self.log().contains(log_text)).await;
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.server.as_ref().expect("a server").pid()
    }

    /// The peak memory of the server, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB"));
        kib.expect("VmHWM").trim().parse::<u64>().unwrap() * 1024
    }

    /// Stops the server with SIGTERM and starts it again.
    pub(crate) async fn restart(&mut self) {
        self.terminate().await;
        self.start_server().await;
    }

    /// Changes an environment variable of servers and commands that are started from then on; an empty value unsets it.
    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.environment.retain(|(there, _)| there != name);
        if !value.is_empty() {
            self.secrets.read_variable(name, value);
            self.environment.push((name.to_owned(), value.to_owned()));
        }
    }

    /// From then on the server exits at this crash point; at none if it is empty.
    pub(crate) fn crash_at(&mut self, point: &str) {
        self.set_env("TOLLGATE_CRASH_AT", point);
    }

    /// Replaces the configuration file's text.
    pub(crate) fn set_config(&self, toml: &str) {
        self.secrets.read_config(toml);
        std::fs::write(self.dir.join("tollgate.toml"), toml).unwrap();
    }

    /// `HOST:PORT` of the server.
    pub(crate) fn address(&self) -> String {
        self.address.get()
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// A directory for the test's own files.
    pub(crate) fn dir(&self) -> &TempDir {
        &self.dir
    }

    /// The URL of the PostgreSQL database; `None` on SQLite.
    pub(crate) fn database_url(&self) -> Option<String> {
        let is_url = |(name, _): &&(String, String)| name == "TOLLGATE_DATABASE__URL";
        let url = self.environment.iter().rfind(is_url);
        url.map(|(_, url)| url.clone())
    }

    fn log_file(&self) -> PathBuf {
        self.dir.join("stderr.log")
    }

    /// Everything that the servers wrote to stderr so far.
    pub(crate) fn log(&self) -> String {
        let bytes = std::fs::read(self.log_file()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The end of the log without successful requests, for the messages of test failures.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let is_not_success = |line: &&str| !line.contains("\"status\":200");
        let lines: Vec<&str> = log.lines().filter(is_not_success).collect();
        lines[lines.len().saturating_sub(12)..].join("\n")
    }

    /// A command of the gateway, with its configuration and data directory.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = tollgate(arguments, self.dir.path());
        let config = self.dir.join("tollgate.toml");
        command.arg("--config").arg(config);
        command.arg("--data-dir").arg(self.data_dir());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end.
    pub(crate) async fn cli(&self, arguments: &[&str]) -> CommandOutput {
        run_command(&mut self.command(arguments)).await
    }

    /// Runs a command with `--json`, which must succeed; returns what it prints.
    pub(crate) async fn cli_json(&self, arguments: &[&str]) -> Value {
        let output = run_command(self.command(arguments).arg("--json")).await;
        assert_eq!(output.code, 0, "{arguments:?}: {}", output.stderr);
        output.json()
    }

    /// Creates a user: `--balance 7`, or unlimited if there are no arguments.
    pub(crate) async fn user(&self, name: &str, arguments: &[&str]) -> Value {
        let more = match arguments {
            [] => &["--unlimited"],
            some => some,
        };
        let command = [&["user", "create", name], more].concat();
        self.cli_json(&command).await
    }

    /// Creates a key of a user; returns a client that has it.
    pub(crate) async fn key(&self, user: &str, arguments: &[&str]) -> Client {
        let create = ["key", "create", "--user", user];
        let record = self.cli_json(&[&create, arguments].concat()).await;
        let secret = record["key"].as_str().expect("a key").to_owned();
        self.secrets.insert(&secret);
        let id = record["id"].as_str().expect("an id").to_owned();
        self.client(Some(secret), id)
    }

    /// A new unlimited user with a key.
    pub(crate) async fn unlimited_client(&self) -> Client {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("user-{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.user_client(&name, &[]).await
    }

    /// The new user `account` with this balance and a key.
    pub(crate) async fn funded_client(&self, balance: &str) -> Client {
        self.user_client("account", &["--balance", balance]).await
    }

    /// A new user with a key; the arguments are those of the command that creates the user.
    pub(crate) async fn user_client(&self, name: &str, arguments: &[&str]) -> Client {
        self.user(name, arguments).await;
        self.key(name, &[]).await
    }

    /// A client without a key.
    pub(crate) fn anonymous(&self) -> Client {
        self.client(None, String::new())
    }

    /// A client with a key that may be unknown to the gateway; without a key if `secret` is `None`.
    pub(crate) fn client(&self, secret: Option<String>, key_id: String) -> Client {
        let (address, http) = (self.address.clone(), self.http.clone());
        Client::new(address, http, self.secrets.clone(), secret, key_id)
    }

    /// Runs statements directly on the database.
    pub(crate) async fn execute(&self, sql: &str) {
        match self.database_url() {
            Some(url) => drop(self.query_postgres(&url, sql).await),
            None => database::execute_on_file(&self.data_dir().join("tollgate.db"), sql),
        }
    }

    /// Runs a query directly on the database; returns its rows, each cell as text, empty if it is null.
    pub(crate) async fn query(&self, sql: &str) -> Vec<Vec<String>> {
        match self.database_url() {
            Some(url) => self.query_postgres(&url, sql).await,
            None => database::query_file(&self.data_dir().join("tollgate.db"), sql),
        }
    }

    /// Reuses the kept connection, unless the gateway connects to its database through a proxy.
    async fn query_postgres(&self, url: &str, sql: &str) -> Vec<Vec<String>> {
        match &self.database {
            Some(database) if database.url() == url => database.query(sql).await,
            _ => database::query(url, sql).await,
        }
    }

    /// The one number that a query returns.
    pub(crate) async fn query_number(&self, sql: &str) -> i64 {
        self.query(sql).await[0][0].parse().expect(sql)
    }

    /// A connection to write bytes on.
    pub(crate) async fn raw(&self) -> RawConnection {
        RawConnection::connect(&self.address()).await
    }

    /// The value of a metric in `/metrics`, by its name and labels as they are written there; 0 if it is missing.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.metrics_page("text/plain").await.text();
        let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix(' ')?.to_owned());
        let value = text.lines().find_map(value);
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// The page of `/metrics` in a format that `accept` names.
    pub(crate) async fn metrics_page(&self, accept: &str) -> Reply {
        let operator = self.client(self.admin_key.clone(), String::new());
        let headers = [("accept", accept)];
        let page = operator.send_with("GET", "/metrics", &headers, "").await;
        page.expect(200)
    }

    /// Waits until every task has ended.
    pub(crate) async fn idle(&self) {
        until_true("every task to end", async || {
            let waiting = self.metric("tollgate_tasks{state=\"submitted\"}").await;
            waiting + self.metric("tollgate_tasks{state=\"in_progress\"}").await < 0.5
        })
        .await;
    }

    /// Waits for every task's end, stops the server and checks that nothing is held, that the audit finds nothing, that the log contains no secret,
    /// and that each of its lines is JSON: except for lines that the program prints for people, and after a kill.
    pub(crate) async fn close(mut self) {
        if self.server.is_some() {
            self.idle().await;
            self.terminate().await;
        }
        self.check_ledger().await;
        self.check_log();
        self.closed = true;
    }

    /// Checks that `tollgate audit` finds nothing, and that nothing is held.
    pub(crate) async fn check_ledger(&self) {
        let audit = self.cli(&["audit"]).await;
        assert_eq!(audit.code, 0, "{}{}", audit.stdout, audit.stderr);
        // Except for what other nodes have reserved in grants.
        let held = "SELECT id, held FROM users
                    WHERE held <> COALESCE((SELECT SUM(amount) FROM grants WHERE user_id = users.id), 0)
                    UNION SELECT id, held FROM keys
                    WHERE held <> COALESCE((SELECT SUM(amount) FROM grants WHERE key_id = keys.id), 0)";
        assert_eq!(self.query(held).await, [[""; 2]; 0]);
    }

    fn check_log(&self) {
        let log = self.log();
        assert_eq!(self.secrets.find_in(&log), None, "a secret is in the log");
        // A log in the text format is not checked line by line.
        let config = std::fs::read_to_string(self.dir.join("tollgate.toml")).unwrap();
        if config.contains("log.format = \"text\"") {
            return;
        }
        for line in log.lines() {
            let is_plain = ["tollgate: ", "first sign-in: "]
                .iter()
                .any(|start| line.starts_with(start));
            let is_plain = is_plain || self.was_killed;
            let is_json = serde_json::from_str::<Value>(line).is_ok();
            assert!(is_plain || is_json, "{line}");
        }
    }
}

impl Drop for TestGateway {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the end of the gateway's log:\n{}", self.log_tail());
        } else {
            assert!(self.closed, "a test must close its gateways");
        }
    }
}
