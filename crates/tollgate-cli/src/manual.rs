//! `tollgate manual DIR`: writes a manual page for each command, for packages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::common::Failed;

#[derive(Args)]
pub(super) struct Manual {
    /// An existing folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

impl Manual {
    /// Writes `tollgate.1`, `tollgate-serve.1` and so on, from the declarations of the commands of `C`.
    pub(super) fn run<C: CommandFactory>(self) -> Result<(), Failed> {
        let cannot = |e| format!("cannot write to {}: {e}", self.folder.display());
        clap_mangen::generate_to(C::command(), &self.folder).map_err(cannot)?;
        Ok(())
    }
}
