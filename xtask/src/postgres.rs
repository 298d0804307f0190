//! A PostgreSQL server of our own: a new cluster in a temporary folder, on a free loopback port,
//! gone when dropped. PostgreSQL refuses to run as root, so root runs it as user `postgres` (or
//! `nobody`). It does not wait for the disk: what it holds dies with it.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, io};

use crate::process::{self, TempDir, free_port, output};

/// What to say to somebody who has no PostgreSQL.
pub(crate) const HOW_TO_INSTALL: &str = "install it (Debian and Ubuntu: apt-get install postgresql) or put `initdb` and `postgres` in PATH";

const START_LIMIT: Duration = Duration::from_secs(30);
const STOP_LIMIT: Duration = Duration::from_secs(15);

/// A running server.
pub(crate) struct Postgres {
    server: Child,
    port: u16,
    folder: TempDir,
}

impl Postgres {
    /// Makes and starts a cluster with the binaries in `bin`.
    pub(crate) fn start(bin: &Path) -> Result<Self, String> {
        let folder = TempDir::new("postgres")?;
        let owner = Owner::find()?;
        owner.give(folder.path())?;
        let data = folder.path().join("data");
        let mut initdb = owner.command(&bin.join("initdb"), folder.path());
        initdb.args(["--username=tollgate", "--auth=trust", "--encoding=UTF8"]);
        initdb
            .args(["--locale=C", "--no-sync", "--pgdata"])
            .arg(&data);
        output(&mut initdb)?;

        let port = free_port()?;
        let log = folder.path().join("log");
        let log = File::create(&log).map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let mut postgres = owner.command(&bin.join("postgres"), folder.path());
        postgres
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string()]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "unix_socket_directories=",
            "max_connections=300",
            "fsync=off",
            "full_page_writes=off",
        ] {
            postgres.args(["-c", setting]);
        }
        postgres
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let server = postgres.spawn();
        let server = server.map_err(|e| format!("cannot start postgres: {e}"))?;
        let mut started = Self {
            server,
            port,
            folder,
        };
        started.await_connections(&bin.join("psql"))?;
        Ok(started)
    }

    /// The connection URL of a superuser on an empty database. It may create others.
    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@127.0.0.1:{}/postgres", self.port)
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> u32 {
        self.server.id()
    }

    fn await_connections(&mut self, psql: &Path) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let ended = self.server.try_wait().ok().flatten();
            if ended.is_some() || began.elapsed() > START_LIMIT {
                let log = fs::read_to_string(self.folder.path().join("log"));
                let log = log.unwrap_or_default();
                return Err(format!("postgres does not start: {}", log.trim()));
            }
            if self.answers(psql) {
                return Ok(());
            }
            sleep(Duration::from_millis(50));
        }
    }

    /// Whether the server takes queries. It takes connections a moment before that, so `psql`
    /// is asked where there is one.
    fn answers(&self, psql: &Path) -> bool {
        if TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            return false;
        }
        let mut ask = Command::new(psql);
        ask.arg(self.url()).args(["-X", "-q", "-c", "select 1"]);
        match ask.stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) => status.success(),
            Err(e) => e.kind() == io::ErrorKind::NotFound,
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The fast shutdown: connections are cut, everything is written.
        process::stop(&mut self.server, "INT", STOP_LIMIT);
    }
}

/// Finds the folder with the newest `initdb` and `postgres`.
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

/// Who runs the server: ourselves, or for root an unprivileged user.
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
            None => Err("postgres refuses to run as root, and there is no user `postgres` or `nobody` to run it as".to_owned()),
        }
    }

    fn give(&self, path: &Path) -> Result<(), String> {
        let Some((user, group)) = self.0 else {
            return Ok(());
        };
        let given = chown(path, Some(user), Some(group));
        given.map_err(|e| format!("cannot give {} away: {e}", path.display()))
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
