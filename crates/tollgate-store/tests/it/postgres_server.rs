//! A separate PostgreSQL server for a test, which the test can stop and start.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::databases::Folder;

const LIMIT: Duration = Duration::from_secs(30);

/// A database cluster in a temporary folder; its server runs between [`Server::start`] and [`Server::stop`].
pub(crate) struct Server {
    bin: PathBuf,
    /// User and group of the server, since PostgreSQL does not run as root.
    run_as: Option<(u32, u32)>,
    port: u16,
    running: Option<Child>,
    folder: Folder,
}

impl Server {
    /// Creates a cluster and starts its server; `None` if PostgreSQL is not installed.
    pub(crate) fn new() -> Option<Self> {
        let bin = find()?;
        let run_as =
            (id(&["-u"])? == 0).then(|| Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)));
        let run_as = match run_as {
            Some(ids) => Some(ids?),
            None => None,
        };
        let folder = Folder::new();
        if let Some((user, group)) = run_as {
            chown(&folder.0, Some(user), Some(group)).unwrap();
        }
        let mut server = Self {
            bin,
            run_as,
            port: free_port(),
            running: None,
            folder,
        };
        let mut initdb = server.command("initdb");
        initdb.args([
            "--username=tollgate",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
        ]);
        initdb
            .args(["--no-sync", "--pgdata"])
            .arg(server.folder.0.join("data"));
        assert!(initdb.status().unwrap().success(), "initdb");
        server.start();
        server.wait_until_ready();
        Some(server)
    }

    /// Starts a streaming replica of this server.
    pub(crate) fn start_replica(&self) -> Self {
        let folder = Folder::new();
        if let Some((user, group)) = self.run_as {
            chown(&folder.0, Some(user), Some(group)).unwrap();
        }
        let mut replica = Self {
            bin: self.bin.clone(),
            run_as: self.run_as,
            port: free_port(),
            running: None,
            folder,
        };
        let mut copy = replica.command("pg_basebackup");
        copy.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf"])
            .args(["--dbname", &self.url(), "--pgdata"])
            .arg(replica.folder.0.join("data"));
        assert!(copy.status().unwrap().success(), "pg_basebackup");
        replica.start();
        replica.wait_until_ready();
        replica
    }

    /// Returns when the server responds to queries: during its recovery it accepts connections before that.
    pub(crate) fn wait_until_ready(&self) {
        let started = Instant::now();
        let port = self.port.to_string();
        let is_ready = || {
            let mut probe = self.command("pg_isready");
            probe.args(["-h", "127.0.0.1", "-p", &port]);
            probe.status().is_ok_and(|status| status.success())
        };
        while !is_ready() {
            assert!(started.elapsed() < LIMIT, "postgres does not get ready");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server, and returns when it accepts connections.
    pub(crate) fn start(&mut self) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.folder.0.join("data"));
        postgres.args(["-p", &self.port.to_string()]);
        let socket = "unix_socket_directories=";
        for setting in ["listen_addresses=127.0.0.1", socket, "fsync=off"] {
            postgres.args(["-c", setting]);
        }
        self.running = Some(postgres.spawn().unwrap());
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < LIMIT, "postgres does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Stops the server as a crash would: connections break without a message.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let pid = child.id().to_string();
            let _ = Command::new("kill").args(["-s", "QUIT", &pid]).status();
            let _ = child.wait();
        }
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.folder.0).env("LC_ALL", "C");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((user, group)) = self.run_as {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// The folder with the newest `initdb` and `postgres`.
fn find() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten();
    let mut bins: Vec<_> = debian
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    bins.sort();
    bins.reverse();
    bins.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    let complete = |bin: &PathBuf| ["initdb", "postgres"].iter().all(|p| bin.join(p).is_file());
    bins.into_iter().find(complete)
}

fn id(args: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(args).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
