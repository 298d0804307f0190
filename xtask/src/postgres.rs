//! A PostgreSQL server for tests: a new cluster in a temporary folder, on a free loopback port, removed when dropped. PostgreSQL does not run as
//! root, so root runs it as user `postgres` (or `nobody`). It does not wait for the disk: its data need not outlive it.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, io};

use crate::outcome::Outcome;
use crate::process::{self, TempDir, free_port, output};

/// The advice for users without PostgreSQL.
pub(crate) const HOW_TO_INSTALL: &str = "install it (Debian and Ubuntu: apt-get install postgresql) or put `initdb` and `postgres` in PATH";

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// Settings for tests, whose data need not survive a crash of the machine.
const SETTINGS: [&str; 5] = [
    "listen_addresses=127.0.0.1",
    "unix_socket_directories=",
    "max_connections=300",
    "fsync=off",
    "full_page_writes=off",
];

/// A folder in memory, and the free bytes that are required to use it.
const MEMORY: &str = "/dev/shm";
const REQUIRED_MEMORY_BYTES: u64 = 4 << 30;

/// A running server.
pub(crate) struct Postgres {
    bin: PathBuf,
    owner: Owner,
    server: Option<Child>,
    port: u16,
    folder: TempDir,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// Closes connections and writes everything to disk.
    Fast,
    /// Stops as a power cut would: the next start recovers from the log.
    Immediate,
}

impl Postgres {
    /// Creates and starts a cluster with the binaries in `bin`.
    pub(crate) fn start(bin: &Path) -> Result<Self, String> {
        Self::start_in(bin, &env::temp_dir())
    }

    /// Creates and starts a cluster in memory, if there is enough space: tests create and drop hundreds of databases, each of which is 300 files.
    pub(crate) fn start_in_memory(bin: &Path) -> Result<Self, String> {
        let memory = Path::new(MEMORY);
        let has_capacity = rustix::fs::statvfs(memory).is_ok_and(|stats| {
            stats.f_bavail.saturating_mul(stats.f_frsize) >= REQUIRED_MEMORY_BYTES
        });
        match has_capacity {
            true => Self::start_in(bin, memory),
            false => Self::start(bin),
        }
    }

    fn start_in(bin: &Path, parent: &Path) -> Result<Self, String> {
        let mut new = Self::prepare(bin, parent)?;
        let mut initdb = new.command("initdb");
        initdb.args(["--username=tollgate", "--auth=trust", "--encoding=UTF8"]);
        initdb
            .args(["--locale=C", "--no-sync", "--pgdata"])
            .arg(new.data());
        output(&mut initdb)?;
        new.start_server()?;
        Ok(new)
    }

    /// Creates and starts a standby that replicates this server, and makes every commit wait for it from now on.
    pub(crate) fn start_standby(&self) -> Result<Self, String> {
        let mut standby = Self::prepare(&self.bin, &env::temp_dir())?;
        let mut copy = standby.command("pg_basebackup");
        copy.arg("--dbname").arg(self.url());
        copy.args(["--write-recovery-conf", "--checkpoint=fast", "--no-sync"]);
        copy.arg("--pgdata").arg(standby.data());
        output(&mut copy)?;
        standby.start_server()?;
        self.query("ALTER SYSTEM SET synchronous_standby_names = '*'")?;
        self.query("SELECT pg_reload_conf()")?;
        let began = Instant::now();
        while self.query("SELECT sync_state FROM pg_stat_replication")? != "sync" {
            if began.elapsed() > START_LIMIT {
                return Err("the standby does not follow".to_owned());
            }
            sleep(Duration::from_millis(50));
        }
        Ok(standby)
    }

    /// Makes a standby the primary server, which accepts writes.
    pub(crate) fn promote(&self) -> Outcome {
        let mut promote = self.command("pg_ctl");
        promote
            .args(["promote", "--wait", "--pgdata"])
            .arg(self.data());
        output(&mut promote).map(drop)
    }

    fn prepare(bin: &Path, parent: &Path) -> Result<Self, String> {
        let folder = TempDir::within(parent, "postgres")?;
        let owner = Owner::find()?;
        owner.make_owner_of(folder.path())?;
        Ok(Self {
            bin: bin.to_owned(),
            owner,
            server: None,
            port: free_port()?,
            folder,
        })
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        self.owner
            .command(&self.bin.join(program), self.folder.path())
    }

    /// Starts the server on its existing data.
    pub(crate) fn start_server(&mut self) -> Outcome {
        let log = self.folder.path().join("log");
        let log = File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data());
        postgres.args(["-p", &self.port.to_string()]);
        for setting in SETTINGS {
            postgres.args(["-c", setting]);
        }
        postgres
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let server = postgres.spawn();
        self.server = Some(server.map_err(|e| format!("cannot start postgres: {e}"))?);
        self.await_connections()
    }

    /// Stops the server; its data are kept.
    pub(crate) fn stop(&mut self, shutdown: Shutdown) -> Outcome {
        let mut server = self.server.take().ok_or("postgres is not running")?;
        let name = match shutdown {
            Shutdown::Fast => "INT",
            Shutdown::Immediate => "QUIT",
        };
        process::stop(&mut server, name, STOP_LIMIT);
        Ok(())
    }

    /// Sends the named signal to the server and to the processes that serve its connections.
    pub(crate) fn signal_all(&self, name: &str) -> Outcome {
        let server = self.server.as_ref().ok_or("postgres is not running")?;
        let parent = server.id().to_string();
        // The server first, so that it starts no further processes.
        process::signal(server, name)?;
        let children = output(Command::new("ps").args(["-o", "pid=", "--ppid", &parent]))?;
        let mut kill = Command::new("kill");
        kill.arg(format!("-{name}"));
        kill.args(children.split_whitespace());
        // A process may have ended by itself in the meantime.
        let _ = kill.stderr(Stdio::null()).status();
        Ok(())
    }

    /// Runs a statement with `psql`; returns what it prints.
    pub(crate) fn query(&self, sql: &str) -> Result<String, String> {
        let mut psql = self.command("psql");
        psql.arg(self.url())
            .args(["-X", "-q", "-A", "-t", "-c", sql]);
        output(&mut psql).map(|printed| printed.trim().to_owned())
    }

    /// The server's host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The connection URL of a superuser on an empty database. The user may create other databases.
    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@{}/postgres", self.address())
    }

    /// The server's process id, if it is running.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    fn await_connections(&mut self) -> Outcome {
        let began = Instant::now();
        loop {
            let server = self.server.as_mut();
            let has_ended = server.is_none_or(|server| !matches!(server.try_wait(), Ok(None)));
            if has_ended || began.elapsed() > START_LIMIT {
                let log = fs::read_to_string(self.folder.path().join("log"));
                let log = log.unwrap_or_default();
                return Err(format!("postgres does not start: {}", log.trim()));
            }
            if self.accepts_queries() {
                return Ok(());
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Whether the server accepts queries. It accepts connections a moment earlier, so the check runs a query with `psql` if that is installed.
    fn accepts_queries(&self) -> bool {
        if TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            return false;
        }
        let mut probe = self.command("psql");
        probe.arg(self.url()).args(["-X", "-q", "-c", "select 1"]);
        match probe.stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) => status.success(),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Paused processes receive no other signal.
        let _ = self.signal_all("CONT");
        let _ = self.stop(Shutdown::Fast);
    }
}

/// Finds the folder with the newest versions of `initdb` and `postgres`.
pub(crate) fn find() -> Option<PathBuf> {
    let mut debian: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir("/usr/lib/postgresql").into_iter().flatten() {
        let path = entry.ok()?.path();
        let version = path.file_name().and_then(|name| name.to_str());
        if let Some(Ok(version)) = version.map(str::parse) {
            debian.push((version, path.join("bin")));
        }
    }
    debian.sort();
    let path = env::var_os("PATH").unwrap_or_default();
    let newest_first = debian.into_iter().rev().map(|(_, bin)| bin);
    let mut candidates = newest_first.chain(env::split_paths(&path));
    let complete = |bin: &PathBuf| {
        ["initdb", "postgres"]
            .iter()
            .all(|name| bin.join(name).is_file())
    };
    candidates.find(complete)
}

/// The user that runs the server: the current user, or an unprivileged user if that is root.
struct Owner(Option<(u32, u32)>);

impl Owner {
    fn find() -> Result<Self, String> {
        if output(Command::new("id").arg("-u"))?.trim() != "0" {
            return Ok(Self(None));
        }
        let ids = ["postgres", "nobody"].into_iter().find_map(|name| {
            let id = |flag| {
                output(Command::new("id").args([flag, name]))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            };
            Some((id("-u")?, id("-g")?))
        });
        match ids {
            Some(ids) => Ok(Self(Some(ids))),
            None => Err("postgres does not run as root, and there is no user `postgres` or `nobody` to run it as".to_owned()),
        }
    }

    fn make_owner_of(&self, path: &Path) -> Result<(), String> {
        let Some((user, group)) = self.0 else {
            return Ok(());
        };
        let changed = chown(path, Some(user), Some(group));
        changed.map_err(|e| format!("cannot change the owner of {}: {e}", path.display()))
    }

    fn command(&self, program: &Path, folder: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(folder).env("LC_ALL", "C");
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        command
    }
}
