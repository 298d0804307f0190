//! `cargo xtask test`: runs all tests of the workspace, with a PostgreSQL server for the duration of the tests.

use std::env;
use std::process::ExitStatus;

use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::outcome::Outcome;
use crate::postgres::{self, Postgres};
use crate::{process, repo};

/// Seed of every property test. Every run makes the same choices unless the environment variable sets another seed: new inputs are tried on purpose
/// (`cargo test`, `cargo xtask fuzz`), and not while somebody tests another change.
const SEED: (&str, &str) = ("PROPTEST_RNG_SEED", "2026");

/// The number of tests that run at the same time: more than there are processors, because most tests wait for a gateway. With eight, some tests fail
/// on two slow processors, because the gateways then exceed time limits.
const THREADS: (&str, &str) = ("RUST_TEST_THREADS", "6");

/// The environment variable with the URL of the tests' PostgreSQL server.
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
        (None, Some(bin)) => Some(Postgres::start_in_memory(&bin)?),
        (None, None) => {
            let install = postgres::HOW_TO_INSTALL;
            if env::var_os("CI").is_some_and(|ci| ci == "true") {
                return Err(format!("no PostgreSQL found: {install}"));
            }
            eprintln!("no PostgreSQL found: its tests are SKIPPED; {install}");
            None
        }
    };
    let mut cargo = Command::from(process::cargo());
    cargo.current_dir(repo::root()).args(["test", "--locked"]);
    if !options.cargo.iter().any(|arg| selects_package(arg)) {
        cargo.arg("--workspace");
    }
    cargo.args(options.cargo);
    for (name, value) in [SEED, THREADS] {
        if env::var_os(name).is_none() {
            cargo.env(name, value);
        }
    }
    if let Some(server) = &server {
        cargo.env(VARIABLE, server.url());
    }
    let status = run_to_end(cargo)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("tests failed: cargo test ended with {status}"))
    }
}

/// Whether an argument of cargo selects packages.
fn selects_package(arg: &str) -> bool {
    arg.starts_with("-p") || arg.starts_with("--package")
}

/// Runs a command. If this program receives a signal to stop, it stops the command first, so that everything it started is stopped too.
fn run_to_end(mut command: Command) -> Result<ExitStatus, String> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build();
    let runtime = runtime.map_err(|e| format!("cannot start: {e}"))?;
    runtime.block_on(async {
        let listen = |kind| signal(kind).map_err(|e| format!("cannot listen for signals: {e}"));
        let mut interrupt = listen(SignalKind::interrupt())?;
        let mut terminate = listen(SignalKind::terminate())?;
        let child = command.spawn();
        let mut child = child.map_err(|e| format!("cannot run cargo: {e}"))?;
        tokio::select! {
            status = child.wait() => status.map_err(|e| format!("cannot wait for cargo: {e}")),
            _ = interrupt.recv() => kill_child(&mut child).await,
            _ = terminate.recv() => kill_child(&mut child).await,
        }
    })
}

async fn kill_child(child: &mut tokio::process::Child) -> Result<ExitStatus, String> {
    let _ = child.kill().await;
    Err("interrupted".to_owned())
}
