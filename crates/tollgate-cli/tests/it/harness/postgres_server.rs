//! A separate PostgreSQL server for a test, which the test can stop, freeze and resume.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio_postgres::NoTls;

use super::{TempDir, until_true};

/// A database cluster in a temporary directory.
pub(crate) struct PostgresServer {
    bin: PathBuf,
    /// User and group of the server, since PostgreSQL does not run as root.
    run_as: Option<(u32, u32)>,
    port: u16,
    running: Option<Child>,
    dir: TempDir,
}

impl PostgresServer {
    /// Creates a cluster and starts its server; `None` if that is not possible.
    pub(crate) async fn start_new() -> Option<Self> {
        let server = Self::create();
        match &server {
            Some(server) => server.wait_until_ready().await,
            None => eprintln!("SKIPPED: no PostgreSQL server can be started here"),
        }
        server
    }

    fn create() -> Option<Self> {
        let bin = find_binaries()?;
        let run_as = match id(&["-u"])? {
            0 => Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)),
            _ => None,
        };
        let dir = TempDir::new();
        if let Some((user, group)) = run_as {
            chown(dir.path(), Some(user), Some(group)).ok()?;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").ok()?;
        let port = listener.local_addr().ok()?.port();
        drop(listener);
        let running = None;
        let mut server = Self {
            bin,
            run_as,
            port,
            running,
            dir,
        };
        let mut initdb = server.command("initdb");
        initdb.args(["--username=tollgate", "--auth=trust", "--encoding=UTF8"]);
        initdb.args(["--locale=C", "--no-sync", "--pgdata"]);
        let status = initdb.arg(server.dir.join("data")).status().ok()?;
        status.success().then(|| server.start())?;
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server; returns before it accepts connections.
    pub(crate) fn start(&mut self) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.dir.join("data"));
        postgres.args(["-p", &self.port.to_string()]);
        let socket = "unix_socket_directories=";
        for setting in ["listen_addresses=127.0.0.1", socket, "fsync=off"] {
            postgres.args(["-c", setting]);
        }
        self.running = Some(postgres.spawn().unwrap());
    }

    /// Waits until the server accepts queries.
    pub(crate) async fn wait_until_ready(&self) {
        let is_ready = async || tokio_postgres::connect(&self.url(), NoTls).await.is_ok();
        until_true("postgres to start", is_ready).await;
    }

    /// Stops the server as a crash would: connections break without a message.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            signal("QUIT", &[child.id()]);
            let _ = child.wait();
        }
    }

    /// Pauses the server: connections stay open and it does not respond, as behind a cut network.
    pub(crate) fn freeze(&mut self) {
        signal("STOP", &self.processes());
    }

    /// Starts or continues the server after [`Self::stop`] or [`Self::freeze`].
    pub(crate) fn resume(&mut self) {
        match self.running {
            Some(_) => signal("CONT", &self.processes()),
            None => self.start(),
        }
    }

    /// The server's own processes: the first one and its children.
    fn processes(&self) -> Vec<u32> {
        let parent = self.running.as_ref().expect("a server").id();
        let children = format!("/proc/{parent}/task/{parent}/children");
        let children = std::fs::read_to_string(children).unwrap();
        let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
        std::iter::once(parent).chain(children).collect()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(self.dir.path()).env("LC_ALL", "C");
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = self.run_as {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        if self.running.is_some() {
            signal("CONT", &self.processes());
        }
        self.stop();
    }
}

fn signal(name: &str, processes: &[u32]) {
    let ids = processes.iter().map(u32::to_string);
    let mut kill = Command::new("kill");
    kill.args(["-s", name]).args(ids).stderr(Stdio::null());
    // A child may have exited meanwhile.
    let _ = kill.status();
}

/// The directory with the newest `initdb` and `postgres`.
fn find_binaries() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter();
    let debian = debian.flatten().flatten();
    let mut bins: Vec<_> = debian.map(|entry| entry.path().join("bin")).collect();
    bins.sort_by(|a, b| b.cmp(a));
    bins.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    let complete = |bin: &PathBuf| ["initdb", "postgres"].iter().all(|p| bin.join(p).is_file());
    bins.into_iter().find(complete)
}

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
