//! Where an SDK is installed: a folder of its own below the target folder, with exactly the
//! versions that a file of `tests/sdk` names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::gateway::target_folder;
use crate::process::output;

/// What to say to somebody who has no Python.
const HOW_TO_INSTALL: &str =
    "it takes Python 3 with its module `venv` (Debian and Ubuntu: apt-get install python3-venv)";
/// Written last: what was installed, for which interpreter.
const STAMP: &str = "installed";

/// What an SDK is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
}

/// One SDK in one version, with all that it needs.
pub(super) struct Environment {
    pub(super) language: Language,
    /// The name of its file of versions, and of its folder.
    pub(super) name: &'static str,
}

impl Environment {
    /// Where it is.
    pub(super) fn folder(&self) -> PathBuf {
        target_folder().join("sdk").join(self.name)
    }

    /// The interpreter that runs its scripts.
    pub(super) fn program(&self) -> PathBuf {
        match self.language {
            Language::Python => self.folder().join("bin/python"),
        }
    }

    /// Makes it, unless it is there as it should be. `scripts` holds the files of versions.
    pub(super) fn make(&self, scripts: &Path) -> Outcome {
        let versions = scripts.join(format!("requirements/{}.txt", self.name));
        let text = fs::read_to_string(&versions);
        let text = text.map_err(|e| format!("cannot read {}: {e}", versions.display()))?;
        let interpreter = output(Command::new("python3").arg("--version"));
        let interpreter = interpreter.map_err(|e| format!("{e}; {HOW_TO_INSTALL}"))?;
        let wanted = format!("{interpreter}{text}");
        let folder = self.folder();
        let stamp = folder.join(STAMP);
        if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            return Ok(());
        }
        println!("sdk: installing {}", self.name);
        if folder.exists() {
            let removed = fs::remove_dir_all(&folder);
            removed.map_err(|e| format!("cannot remove {}: {e}", folder.display()))?;
        }
        let made = output(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        made.map_err(|e| format!("{e}; {HOW_TO_INSTALL}"))?;
        let mut pip = Command::new(self.program());
        pip.args(["-m", "pip", "install", "--quiet"]);
        pip.args(["--disable-pip-version-check", "--requirement"]);
        output(pip.arg(&versions))?;
        fs::write(&stamp, wanted).map_err(|e| format!("cannot write {}: {e}", stamp.display()))
    }
}
