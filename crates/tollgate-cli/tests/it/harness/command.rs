//! Commands of the gateway, run to their end.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tokio::process::Command;

use super::TIMEOUT;

/// The exit status and the output of a command.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// The JSON on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }

    /// Checks that the command failed with status 1, printed nothing on stdout, and wrote one error message, which contains `expected`.
    #[track_caller]
    pub(crate) fn check_failure(&self, expected: &str) {
        assert_eq!((self.code, self.stdout.as_str()), (1, ""), "{self:?}");
        let own = self.stderr.lines().filter(|l| l.starts_with("tollgate: "));
        let own: Vec<&str> = own.collect();
        assert_eq!(own.len(), 1, "{}", self.stderr);
        assert!(own[0].contains(expected), "{}, not {expected}", own[0]);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
    }
}

/// A command of the gateway that runs in `dir`, without any environment variable that configures the gateway.
pub(crate) fn tollgate(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(arguments).current_dir(dir).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("TOLLGATE_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs a command to its end.
pub(crate) async fn run_command(command: &mut Command) -> CommandOutput {
    let output = command.stdin(Stdio::null()).output();
    let output = tokio::time::timeout(TIMEOUT, output).await;
    let output = output.expect("the command ends").unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
