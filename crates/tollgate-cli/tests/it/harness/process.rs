//! The server's process.

use std::fs::File;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::TIMEOUT;

/// The server's address, which all clients of a gateway share: a restart changes it.
#[derive(Clone, Default)]
pub(super) struct Address(Arc<Mutex<String>>);

impl Address {
    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap().clone()
    }
}

/// A running `tollgate serve`, which is killed on drop.
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts it; returns when it prints that it listens. `None` if it exits instead.
    pub(super) async fn try_start(
        command: &mut Command,
        log: &Path,
        address: &Address,
    ) -> Option<Self> {
        let stderr = File::options().create(true).append(true).open(log).unwrap();
        command.stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(TIMEOUT, lines.next_line()).await;
        let line = line.expect("the server starts").unwrap()?;
        let listening = line.strip_prefix("listening on http");
        let listening = listening.and_then(|line| line.trim_start_matches('s').strip_prefix("://"));
        *address.0.lock().unwrap() = listening.expect(&line).to_owned();
        // The server prints only this line; the pipe stays open for as long as the server runs.
        tokio::spawn(async move {
            let more = lines.next_line().await.ok().flatten();
            assert_eq!(more, None, "one line on stdout");
        });
        Some(Self { child })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id().expect("a process that was not waited for")
    }

    /// Sends a signal by its name.
    pub(super) async fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.args(["-s", name, &self.pid().to_string()]);
        assert!(kill.status().await.unwrap().success(), "kill -s {name}");
    }

    pub(super) fn has_exited(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    pub(super) async fn wait(mut self) -> ExitStatus {
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        ended.expect("the server ends").unwrap()
    }
}
