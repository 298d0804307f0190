//! `cargo xtask man`: writes the manual pages of the gateway's commands, which packages contain.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway;
use crate::outcome::Outcome;
use crate::process::output;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program whose commands are described [default: the release build]
    #[arg(long)]
    binary: Option<PathBuf>,
}

/// Writes `target/man/tollgate.1` and a page for each command.
pub(crate) fn run(options: Options) -> Outcome {
    let binary = gateway::build_unless_given(options.binary)?;
    let folder = gateway::target_folder().join("man");
    write_pages(&binary, &folder)?;
    println!("{}", folder.display());
    Ok(())
}

/// Replaces `folder` by the manual pages of `binary`.
pub(crate) fn write_pages(binary: &Path, folder: &Path) -> Outcome {
    let cannot = |e| format!("cannot make the folder {}: {e}", folder.display());
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(cannot)?;
    output(Command::new(binary).arg("manual").arg(folder)).map(drop)
}
