//! A gateway under test: the real binary with its own configuration and data directory, which can be started, killed and restarted.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::outcome::Outcome;
use crate::process::{self, TempDir, free_port, output, signal};
use crate::repo;

const START_LIMIT: Duration = Duration::from_secs(60);
/// The time limit for a stop: a drain may take 40 s, and longer if every processor is busy with streams.
const STOP_LIMIT: Duration = Duration::from_secs(90);

/// Builds the release binary, unless one is given; returns its path.
pub(crate) fn build_unless_given(given: Option<PathBuf>) -> Result<PathBuf, String> {
    if let Some(path) = given {
        return fs::canonicalize(&path)
            .map_err(|e| format!("no binary at {}: {e}", path.display()));
    }
    let root = repo::root();
    let mut cargo = process::cargo();
    cargo.current_dir(&root);
    cargo.args(["build", "--release", "--locked", "-p", "tollgate-cli"]);
    let status = cargo
        .status()
        .map_err(|e| format!("cannot run cargo: {e}"))?;
    if !status.success() {
        return Err("the release build failed".to_owned());
    }
    Ok(target_folder().join("release/tollgate"))
}

/// The folder of cargo's build output. Unlike the folder for temporary files, it is on a disk, so that measurements include the time of a disk.
pub(crate) fn target_folder() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.unwrap_or_else(|| repo::root().join("target"))
}

/// One gateway. Dropping it stops the server and removes the folder.
pub(crate) struct Gateway {
    binary: PathBuf,
    folder: TempDir,
    host: String,
    port: u16,
    namespace: Option<String>,
    environment: Vec<(&'static str, String)>,
    server: Option<Child>,
}

impl Gateway {
    /// Writes the configuration (`settings` in TOML) without starting the server.
    pub(crate) fn prepare(binary: &Path, settings: &str) -> Result<Self, String> {
        let folder = TempDir::within(&target_folder(), "gateway")?;
        let port = free_port()?;
        let text = format!("listen = \"127.0.0.1:{port}\"\ndemo = false\n{settings}");
        let path = folder.path().join("tollgate.toml");
        fs::write(&path, text).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok(Self {
            binary: binary.to_owned(),
            folder,
            host: "127.0.0.1".to_owned(),
            port,
            namespace: None,
            environment: Vec::new(),
            server: None,
        })
    }

    /// Sets an environment variable of the server and of the commands.
    pub(crate) fn set_environment(&mut self, name: &'static str, value: impl Into<String>) {
        self.environment.push((name, value.into()));
    }

    /// Makes the server run in a network namespace, and listen on an address in it. Commands run outside of it.
    pub(crate) fn move_to_namespace(&mut self, namespace: &str, host: &str) {
        self.namespace = Some(namespace.to_owned());
        host.clone_into(&mut self.host);
        self.set_environment("TOLLGATE_LISTEN", self.address());
    }

    /// The address that the server listens on.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Keeps the folder when this value is dropped, and returns its path.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.folder.keep();
        self.folder.path().to_owned()
    }

    /// Uses this program from the next start on.
    pub(crate) fn use_binary(&mut self, binary: &Path) {
        binary.clone_into(&mut self.binary);
    }

    /// The server's process id.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.server.as_ref().map(Child::id)
    }

    /// Starts the server; returns the time until it listened.
    pub(crate) fn start(&mut self) -> Result<Duration, String> {
        let log = self.folder.path().join("log");
        let log = File::options().create(true).append(true).open(&log);
        let log = log.map_err(|e| format!("cannot write the log: {e}"))?;
        let program = match &self.namespace {
            None => Command::new(&self.binary),
            Some(namespace) => {
                // The process of `ip` becomes the gateway, with the same process id.
                let mut ip = Command::new("ip");
                ip.args(["netns", "exec", namespace]).arg(&self.binary);
                ip
            }
        };
        let mut command = self.with_configuration(program, &["serve"]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        let began = Instant::now();
        let mut server = command
            .spawn()
            .map_err(|e| format!("cannot start the gateway: {e}"))?;
        let lines = server.stdout.take().map(watch_for_listening);
        self.server = Some(server);
        let listening = lines.and_then(|lines| lines.recv_timeout(START_LIMIT).ok());
        match listening {
            Some(when) => Ok(when - began),
            None => Err(format!(
                "the gateway does not listen; its log ends with:\n{}",
                self.log_tail()
            )),
        }
    }

    /// Kills the server as a power cut would.
    pub(crate) fn kill(&mut self) -> Outcome {
        let mut server = self.server.take().ok_or("no server is running")?;
        server
            .kill()
            .map_err(|e| format!("cannot kill the gateway: {e}"))?;
        server
            .wait()
            .map_err(|e| format!("cannot wait for the gateway: {e}"))?;
        Ok(())
    }

    /// Pauses the server (SIGSTOP), as if the machine slept.
    pub(crate) fn pause(&self) -> Outcome {
        signal(self.server.as_ref().ok_or("no server is running")?, "STOP")
    }

    /// Resumes the server after [`Gateway::pause`].
    pub(crate) fn resume(&self) -> Outcome {
        signal(self.server.as_ref().ok_or("no server is running")?, "CONT")
    }

    /// Stops the server (SIGTERM) and waits until it has drained.
    pub(crate) fn stop(&mut self) -> Result<ExitStatus, String> {
        let mut server = self.server.take().ok_or("no server is running")?;
        signal(&server, "TERM")?;
        let ended = process::wait(&mut server, STOP_LIMIT);
        ended.ok_or_else(|| {
            let _ = server.kill();
            let _ = server.wait();
            format!("the gateway did not end within {STOP_LIMIT:?} of SIGTERM")
        })
    }

    /// Whether the server has ended without having been stopped.
    pub(crate) fn has_ended(&mut self) -> bool {
        let server = self.server.as_mut();
        server.is_some_and(|server| !matches!(server.try_wait(), Ok(None)))
    }

    /// Runs a command of the gateway; returns what it prints.
    pub(crate) fn cli(&self, arguments: &[&str]) -> Result<String, String> {
        output(&mut self.command(arguments))
    }

    /// Runs a command of the gateway with `--json`; returns the record it prints.
    pub(crate) fn cli_json(&self, arguments: &[&str]) -> Result<Value, String> {
        let printed = output(self.command(arguments).arg("--json"))?;
        let record = serde_json::from_str(&printed);
        record.map_err(|e| {
            format!(
                "`tollgate {}` printed no JSON ({e}): {printed}",
                arguments.join(" ")
            )
        })
    }

    /// The end of the server's log.
    pub(crate) fn log_tail(&self) -> String {
        let log = fs::read(self.folder.path().join("log")).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.with_configuration(Command::new(&self.binary), arguments)
    }

    fn with_configuration(&self, mut command: Command, arguments: &[&str]) -> Command {
        command.current_dir(self.folder.path()).args(arguments);
        command
            .arg("--config")
            .arg(self.folder.path().join("tollgate.toml"));
        command.arg("--data-dir").arg(self.data());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Stopped before it is killed: an instrumented server (`cargo xtask dist`) writes its counters when it ends.
        if let Some(server) = &mut self.server {
            // A paused process receives no other signal.
            let _ = signal(server, "CONT");
            process::stop(server, "TERM", STOP_LIMIT);
        }
    }
}

/// Sends the time when the process reports that it listens; continues to read, so that the process can continue to write.
fn watch_for_listening(stdout: std::process::ChildStdout) -> mpsc::Receiver<Instant> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if line.starts_with("listening on ") {
                let _ = sender.send(Instant::now());
            }
        }
    });
    lines
}
