//! Commands of the gateway, run to their end.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::PATIENCE;

/// What a command came to.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A command of the gateway, in `folder`, with nothing configured but what the folder has.
pub(crate) fn bare(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .args(arguments)
        .current_dir(folder)
        .kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TOLLGATE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end.
pub(crate) async fn said(command: &mut Command) -> Said {
    let output = command.stdin(Stdio::null()).output();
    let output = tokio::time::timeout(PATIENCE, output).await;
    let output = output.expect("the command ends").unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
