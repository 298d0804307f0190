//! `cargo xtask fuzz`: builds and runs the crate `tollgate-fuzz`, which contains the fuzz targets.

use crate::outcome::Outcome;
use crate::{process, repo};

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Arguments of the fuzzer: `--seconds N`, `--only PART`, `--seed N`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs every target.
pub(crate) fn run(options: &Options) -> Outcome {
    let mut cargo = process::cargo();
    cargo.current_dir(repo::root());
    cargo.args([
        "run",
        "--release",
        "--locked",
        "--quiet",
        "-p",
        "tollgate-fuzz",
        "--",
    ]);
    let status = cargo.args(&options.arguments).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the fuzzer ended with {status}")),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}
