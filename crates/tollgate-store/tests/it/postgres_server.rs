//! A separate PostgreSQL server for a test, which the test can stop and start.

use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::databases::Folder;
use crate::postgres_cluster::Cluster;

const LIMIT: Duration = Duration::from_secs(30);

/// A database cluster in a temporary folder; its server runs between [`Server::start`] and [`Server::stop`].
pub(crate) struct Server {
    cluster: Cluster,
    running: Option<Child>,
    /// Has the files of the cluster, and deletes them on drop.
    _folder: Folder,
}

impl Server {
    /// Creates a cluster and starts its server; `None` if PostgreSQL is not installed, which it must be in CI.
    pub(crate) fn new() -> Option<Self> {
        let mut server = Self::prepare()?;
        server.cluster.initialise();
        server.start();
        server.wait_until_ready();
        Some(server)
    }

    /// A server whose cluster has no files yet.
    fn prepare() -> Option<Self> {
        let folder = Folder::new();
        Some(Self {
            cluster: Cluster::new(&folder.0)?,
            running: None,
            _folder: folder,
        })
    }

    /// Starts a streaming replica of this server.
    pub(crate) fn start_replica(&self) -> Self {
        let mut replica = Self::prepare().unwrap();
        let mut copy = replica.cluster.command("pg_basebackup");
        copy.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf"])
            .args(["--dbname", &self.url(), "--pgdata"])
            .arg(replica.cluster.data());
        assert!(copy.status().unwrap().success(), "pg_basebackup");
        replica.start();
        replica.wait_until_ready();
        replica
    }

    /// Returns when the server responds to queries: during its recovery it accepts connections before that.
    pub(crate) fn wait_until_ready(&self) {
        let started = Instant::now();
        let port = self.cluster.port.to_string();
        let is_ready = || {
            let mut probe = self.cluster.command("pg_isready");
            probe.args(["-h", "127.0.0.1", "-p", &port]);
            probe.status().is_ok_and(|status| status.success())
        };
        while !is_ready() {
            assert!(started.elapsed() < LIMIT, "postgres does not get ready");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn url(&self) -> String {
        self.cluster.url()
    }

    /// Starts the server, and returns when it accepts connections.
    pub(crate) fn start(&mut self) {
        self.running = Some(self.cluster.spawn_server());
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.cluster.port)).is_err() {
            assert!(started.elapsed() < LIMIT, "postgres does not start");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns when a client has tried to connect to the stopped server; its connection breaks.
    pub(crate) async fn wait_for_connection_attempt(&self) {
        let address = ("127.0.0.1", self.cluster.port);
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let attempt = tokio::time::timeout(LIMIT, listener.accept()).await;
        attempt.expect("no attempt to connect").unwrap();
    }

    /// Stops the server as a crash would: connections break without a message.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let pid = child.id().to_string();
            let _ = Command::new("kill").args(["-s", "QUIT", &pid]).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
