//! `tollgate completions SHELL`: prints a completion script.

use std::io::Write as _;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::common::Failed;

#[derive(Args)]
pub(super) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    /// Prints the script that completes the commands of `C`.
    pub(super) fn run<C: CommandFactory>(self) -> Result<(), Failed> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut C::command(), "tollgate", &mut script);
        Ok(std::io::stdout().write_all(&script)?)
    }
}
