//! A separate Redis server for a test, which the test can stop, freeze and resume.

use std::process::{Child, Command, Stdio};

use super::{TempDir, until_true};

/// A server without persistence on a free port of loopback.
pub(crate) struct RedisServer {
    port: u16,
    running: Option<Child>,
    dir: TempDir,
}

impl RedisServer {
    /// Starts one; `None` if `redis-server` is not installed, which it must be in CI.
    pub(crate) async fn start_new() -> Option<Self> {
        let version = Command::new("redis-server").arg("--version").output();
        if version.is_err() {
            assert!(std::env::var_os("CI").is_none(), "CI needs redis-server");
            eprintln!("SKIPPED: redis-server is not installed");
            return None;
        }
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut server = Self {
            port,
            running: None,
            dir: TempDir::new(),
        };
        server.start().await;
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/1", self.port)
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts the server, empty; returns when it responds.
    pub(crate) async fn start(&mut self) {
        let mut redis = Command::new("redis-server");
        let port = self.port.to_string();
        redis.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
        redis.args(["--appendonly", "no"]);
        redis.current_dir(self.dir.path()).stdin(Stdio::null());
        redis.stdout(Stdio::null()).stderr(Stdio::null());
        self.running = Some(redis.spawn().unwrap());
        let is_ready = async || self.query::<String>(&["PING"]).await.is_ok();
        until_true("redis to start", is_ready).await;
    }

    /// Runs a command.
    pub(crate) async fn query<T: redis::FromRedisValue>(
        &self,
        command: &[&str],
    ) -> redis::RedisResult<T> {
        let client = redis::Client::open(self.url())?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let (name, arguments) = command.split_first().expect("a command");
        let mut query = redis::cmd(name);
        query.arg(arguments);
        query.query_async(&mut connection).await
    }

    /// `kill -9`: connections break without a message.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Pauses the server: connections stay open and it does not respond, as behind a cut network.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// Continues the server after [`Self::freeze`], with all its data.
    pub(crate) fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.running.as_ref().expect("a server").id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status();
        assert!(status.unwrap().success(), "kill -s {name}");
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until this number of nodes subscribe to the messages of other nodes.
pub(crate) async fn wait_for_subscribers(redis: &RedisServer, nodes: i64) {
    let channels = ["PUBSUB", "NUMSUB", "{tollgate:nodes:1}:messages:1"];
    let count = async || {
        let counts = redis.query::<(String, i64)>(&channels).await;
        counts.unwrap().1
    };
    until_true("the nodes to subscribe", async || count().await == nodes).await;
}
