//! A PostgreSQL cluster in a folder, and the programs that create and run it. The gateway's tests include this file too.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A cluster on a free port of loopback; its user `tollgate` needs no password.
pub(crate) struct Cluster {
    bin: PathBuf,
    /// User and group of the server.
    run_as: (u32, u32),
    pub(crate) port: u16,
    folder: PathBuf,
}

impl Cluster {
    /// A cluster that has no files yet; `None` if PostgreSQL is not installed, which it must be in CI.
    pub(crate) fn new(folder: &Path) -> Option<Self> {
        let Some((bin, run_as)) = find_programs().zip(find_user()) else {
            let ci = std::env::var_os("CI").is_some_and(|ci| ci == "true");
            assert!(!ci, "CI needs the programs and the user of PostgreSQL");
            eprintln!("SKIPPED: PostgreSQL is not installed");
            return None;
        };
        chown(folder, Some(run_as.0), Some(run_as.1)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Some(Self {
            bin,
            run_as,
            port: listener.local_addr().unwrap().port(),
            folder: folder.to_owned(),
        })
    }

    /// Creates the files of a new cluster.
    pub(crate) fn initialise(&self) {
        let mut initdb = self.command("initdb");
        initdb.args(["--username=tollgate", "--auth=trust", "--encoding=UTF8"]);
        initdb.args(["--locale=C", "--no-sync", "--pgdata"]);
        let status = initdb.arg(self.data()).status().unwrap();
        assert!(status.success(), "initdb: {status}");
    }

    /// The folder with the files.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server; returns before it accepts connections.
    pub(crate) fn spawn_server(&self) -> Child {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.data());
        postgres.args(["-p", &self.port.to_string()]);
        let socket = "unix_socket_directories=";
        for setting in ["listen_addresses=127.0.0.1", socket, "fsync=off"] {
            postgres.args(["-c", setting]);
        }
        postgres.spawn().unwrap()
    }

    /// A program of PostgreSQL, which runs as the user of the server and prints nothing.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        command.current_dir(&self.folder).env("LC_ALL", "C");
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.uid(self.run_as.0).gid(self.run_as.1);
        command
    }
}

/// The folder with the newest `initdb` and `postgres`.
fn find_programs() -> Option<PathBuf> {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter();
    let debian = debian.flatten().flatten();
    let mut bins: Vec<_> = debian.map(|entry| entry.path().join("bin")).collect();
    bins.sort_by(|a, b| b.cmp(a));
    bins.extend(std::env::split_paths(&std::env::var_os("PATH")?));
    let complete = |bin: &PathBuf| ["initdb", "postgres"].iter().all(|p| bin.join(p).is_file());
    bins.into_iter().find(complete)
}

/// The user and the group of the test, or those of `postgres` if it is root, as which PostgreSQL does not run.
fn find_user() -> Option<(u32, u32)> {
    match query_id(&["-u"])? {
        0 => query_id(&["-u", "postgres"]).zip(query_id(&["-g", "postgres"])),
        own => Some((own, query_id(&["-g"])?)),
    }
}

fn query_id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
