//! A separate PostgreSQL server for a test, which the test can stop, freeze and resume.

use std::process::{Child, Command, Stdio};

use tokio_postgres::NoTls;

use super::postgres_cluster::Cluster;
use super::{TempDir, until_true};

/// A database cluster in a temporary directory.
pub(crate) struct PostgresServer {
    cluster: Cluster,
    running: Option<Child>,
    /// Has the files of the cluster, and deletes them on drop.
    _dir: TempDir,
}

impl PostgresServer {
    /// Creates a cluster and starts its server; `None` if PostgreSQL is not installed, which it must be in CI.
    pub(crate) async fn start_new() -> Option<Self> {
        let dir = TempDir::new();
        let cluster = Cluster::new(dir.path())?;
        cluster.initialise();
        let mut server = Self {
            cluster,
            running: None,
            _dir: dir,
        };
        server.start();
        server.wait_until_ready().await;
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url()
    }

    /// Starts the server; returns before it accepts connections.
    pub(crate) fn start(&mut self) {
        self.running = Some(self.cluster.spawn_server());
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
