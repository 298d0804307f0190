//! `cargo xtask test`: all tests of the workspace, with a PostgreSQL server that lives as long
//! as they run.

use std::env;
use std::process::{ExitStatus, Stdio};

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::Outcome;
use crate::postgres::{self, Postgres};
use crate::repo;

/// The start of every property test's dice. A run is the same as the last one unless the
/// variable says otherwise: what a new throw finds is for who looks for it (`cargo test`,
/// `cargo xtask fuzz`), not for whoever changed something else.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "2026");

/// More failed tests than that are no accident.
const AGAIN_MOST: usize = 3;
/// Where the tests look for their PostgreSQL server.
const VARIABLE: &str = "TOLLGATE_TEST_POSTGRES_URL";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Passed on to `cargo test`, such as `-p tollgate-store` or a test's name
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    cargo: Vec<String>,
}

/// Starts a server unless [`VARIABLE`] names one, runs the tests, stops the server.
pub(crate) fn run(options: Options) -> Outcome {
    let server = match (env::var_os(VARIABLE), postgres::find()) {
        (Some(_), _) => None,
        (None, Some(bin)) => Some(Postgres::start(&bin)?),
        (None, None) => {
            let install = postgres::HOW_TO_INSTALL;
            if env::var_os("CI").is_some_and(|ci| ci == "true") {
                return Err(format!("no PostgreSQL found: {install}"));
            }
            eprintln!("no PostgreSQL found: its tests are SKIPPED; {install}");
            None
        }
    };
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(repo::root())
        .args(["test", "--locked", "--no-fail-fast"]);
    if !options.cargo.iter().any(|arg| is_package(arg)) {
        cargo.arg("--workspace");
    }
    cargo.args(options.cargo);
    if env::var_os(SEED.0).is_none() {
        cargo.env(SEED.0, SEED.1);
    }
    if let Some(server) = &server {
        cargo.env(VARIABLE, server.url());
    }
    cargo.stdout(Stdio::piped());
    let (status, failed) = run_to_end(&mut cargo)?;
    if status.success() {
        return Ok(());
    }
    let said = format!("tests failed: cargo test ended with {status}");
    if failed.is_empty() || failed.len() > AGAIN_MOST {
        return Err(said);
    }
    // Tests with real processes share a machine with each other and with whoever else is there: what fails alone, too, fails.
    eprintln!(
        "== these tests failed and are run again, alone:\n{}",
        failed.join("\n")
    );
    let mut again = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    again.current_dir(repo::root());
    again.args([
        "test",
        "--locked",
        "--workspace",
        "--",
        "--test-threads=1",
        "--exact",
    ]);
    again
        .args(&failed)
        .env(SEED.0, SEED.1)
        .stdout(Stdio::piped());
    if let Some(server) = &server {
        again.env(VARIABLE, server.url());
    }
    let (status, _) = run_to_end(&mut again)?;
    if !status.success() {
        return Err(said);
    }
    eprintln!(
        "== WARNING: passed alone, failed beside others: look at them\n{}",
        failed.join("\n")
    );
    Ok(())
}

fn is_package(arg: &str) -> bool {
    arg.starts_with("-p") || arg.starts_with("--package")
}

/// Runs a command, passing on what it says; answers the names of tests that failed too. When we are told to end, it ends
/// first, so that what we started is stopped.
fn run_to_end(command: &mut Command) -> Result<(ExitStatus, Vec<String>), String> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
    runtime.block_on(async {
        let listen = |kind| signal(kind).map_err(|e| format!("cannot listen for signals: {e}"));
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let child = command.spawn();
        let mut child = child.map_err(|e| format!("cannot run cargo: {e}"))?;
        let said = child.stdout.take();
        let running = async {
            let failed = match said {
                Some(said) => pass_on(said).await,
                None => Vec::new(),
            };
            let status = child.wait().await;
            let status = status.map_err(|e| format!("cannot wait for cargo: {e}"))?;
            Ok((status, failed))
        };
        let ended = tokio::select! {
            ended = running => Some(ended),
            _ = interrupt.recv() => None,
            _ = terminate.recv() => None,
        };
        match ended {
            Some(ended) => ended,
            None => {
                let _ = child.kill().await;
                Err("interrupted".to_owned())
            }
        }
    })
}

/// Prints every line; the names in `test NAME ... FAILED`.
async fn pass_on(said: ChildStdout) -> Vec<String> {
    let mut failed = Vec::new();
    let mut lines = BufReader::new(said).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        failed.extend(failed_test(&line).map(str::to_owned));
    }
    failed
}

fn failed_test(line: &str) -> Option<&str> {
    line.strip_prefix("test ")?.strip_suffix(" ... FAILED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_heard() {
        let name = "chat::broken::answers_that_are_none::sqlite";
        assert_eq!(failed_test(&format!("test {name} ... FAILED")), Some(name));
        assert_eq!(failed_test(&format!("test {name} ... ok")), None);
        assert_eq!(failed_test("test result: FAILED. 1 passed"), None);
    }
}
