//! Processes and their environment: temporary folders, free ports, signals by process id.

use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs, process};

use crate::outcome::Outcome;

/// The maximum number of bytes of a failed command's output that an error message contains.
const MAX_MESSAGE: usize = 4000;

/// A new folder for one run, removed with its content when dropped.
pub(crate) struct TempDir {
    path: PathBuf,
    keep: bool,
}

impl TempDir {
    /// Creates a folder that only its owner may enter, in the folder for temporary files.
    pub(crate) fn new(purpose: &str) -> Result<Self, String> {
        Self::within(&env::temp_dir(), purpose)
    }

    /// Creates a folder that only its owner may enter, in `parent`.
    pub(crate) fn within(parent: &Path, purpose: &str) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tollgate-{purpose}-{}-{number}", process::id()));
        let created = fs::DirBuilder::new().mode(0o700).create(&path);
        created.map_err(|e| format!("cannot make the folder {}: {e}", path.display()))?;
        Ok(Self { path, keep: false })
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps the folder when this value is dropped.
    pub(crate) fn keep(&mut self) {
        self.keep = true;
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        if self.keep {
            return;
        }
        if let Err(e) = fs::remove_dir_all(&self.path) {
            eprintln!("cannot remove {}: {e}", self.path.display());
        }
    }
}

/// A loopback port on which no process listens at the moment.
pub(crate) fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|l| l.local_addr());
    address
        .map(|a| a.port())
        .map_err(|e| format!("no free loopback port: {e}"))
}

/// Sends the named signal to a child process. The child has not been waited for, so the system cannot have given its id to another process.
pub(crate) fn signal(child: &Child, name: &str) -> Outcome {
    let id = child.id().to_string();
    let status = Command::new("kill").args([format!("-{name}"), id]).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("kill -{name} ended with {status}")),
        Err(e) => Err(format!("cannot run kill: {e}")),
    }
}

/// Waits for a child to end, at most `limit`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    while started.elapsed() < limit {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => sleep(Duration::from_millis(20)),
            Err(_) => return None,
        }
    }
    None
}

/// Stops a child by a signal and waits; kills it after `limit`.
pub(crate) fn stop(child: &mut Child, name: &str, limit: Duration) {
    if signal(child, name).is_err() || wait(child, limit).is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// A command that runs cargo, without the variables that cargo sets for this tool's own package: build scripts that read them would run again, and
/// half of the workspace would be compiled again.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

/// Runs a command to its end; an error names the command and contains its output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output();
    let output = output.map_err(|e| format!("cannot run {name}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = [&*output.stderr, &*output.stdout].concat();
    let message = String::from_utf8_lossy(&message[..message.len().min(MAX_MESSAGE)]).into_owned();
    let status = output.status;
    Err(format!("{name} ended with {status}: {}", message.trim()))
}
