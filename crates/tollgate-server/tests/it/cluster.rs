//! A PostgreSQL server of a test's own, to be stopped, frozen and brought back at will.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tokio_postgres::NoTls;

use crate::gate::{Folder, until};

/// A cluster in a temporary folder; its server runs between [`Cluster::start`] and [`Cluster::stop`].
pub(crate) struct Cluster {
    bin: PathBuf,
    /// PostgreSQL refuses to run as root.
    run_as: Option<(u32, u32)>,
    port: u16,
    running: Option<Child>,
    folder: Folder,
}

impl Cluster {
    /// Makes a cluster and starts it; none where that cannot be done.
    pub(crate) async fn new() -> Option<Self> {
        let made = Self::make();
        match &made {
            Some(cluster) => cluster.answers().await,
            None => eprintln!("SKIPPED: no PostgreSQL server can be started here"),
        }
        made
    }

    fn make() -> Option<Self> {
        let bin = find()?;
        let run_as = match id(&["-u"])? {
            0 => Some((id(&["-u", "postgres"])?, id(&["-g", "postgres"])?)),
            _ => None,
        };
        let folder = Folder::new();
        if let Some((user, group)) = run_as {
            chown(folder.path(), Some(user), Some(group)).ok()?;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").ok()?;
        let port = listener.local_addr().ok()?.port();
        drop(listener);
        let mut cluster = Self {
            bin,
            run_as,
            port,
            running: None,
            folder,
        };
        let mut initdb = cluster.command("initdb");
        initdb.args(["--username=tollgate", "--auth=trust", "--encoding=UTF8"]);
        initdb.args(["--locale=C", "--no-sync", "--pgdata"]);
        let made = initdb.arg(cluster.folder.join("data")).status().ok()?;
        if !made.success() {
            return None;
        }
        cluster.start();
        Some(cluster)
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://tollgate@127.0.0.1:{}/postgres", self.port)
    }

    /// Starts the server; clients see when it is there.
    pub(crate) fn start(&mut self) {
        let mut postgres = self.command("postgres");
        postgres.arg("-D").arg(self.folder.join("data"));
        postgres.args(["-p", &self.port.to_string()]);
        let socket = "unix_socket_directories=";
        for setting in ["listen_addresses=127.0.0.1", socket, "fsync=off"] {
            postgres.args(["-c", setting]);
        }
        self.running = Some(postgres.spawn().unwrap());
    }

    /// Waits until the server takes queries.
    pub(crate) async fn answers(&self) {
        let url = self.url();
        until("postgres to start", async || {
            tokio_postgres::connect(&url, NoTls).await.ok().map(drop)
        })
        .await;
    }

    /// Stops the server as a crash would: connections break, nothing is said.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            signal("QUIT", &[child.id()]);
            let _ = child.wait();
        }
    }

    /// The server stays there and says nothing any more, as behind a cut network.
    pub(crate) fn freeze(&mut self) {
        signal("STOP", &self.processes());
    }

    /// It goes on where it was.
    fn thaw(&self) {
        signal("CONT", &self.processes());
    }

    /// Brings it back, however it went away.
    pub(crate) fn come_back(&mut self) {
        match self.running {
            Some(_) => self.thaw(),
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
        command.current_dir(self.folder.path()).env("LC_ALL", "C");
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

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.thaw();
        }
        self.stop();
    }
}

fn signal(name: &str, processes: &[u32]) {
    let ids = processes.iter().map(u32::to_string);
    // A child may have ended meanwhile.
    let _ = Command::new("kill")
        .args(["-s", name])
        .args(ids)
        .stderr(Stdio::null())
        .status();
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

fn id(arguments: &[&str]) -> Option<u32> {
    let output = Command::new("id").args(arguments).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
