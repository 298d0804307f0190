//! Installs an SDK in a folder of its own below the target folder, with exactly the versions that a file of `tests/sdk/requirements` lists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::gateway::target_folder;
use crate::outcome::Outcome;
use crate::process::output;

/// The advice for users without Python.
const HOW_TO_INSTALL: &str =
    "it takes Python 3 with its module `venv` (Debian and Ubuntu: apt-get install python3-venv)";
/// The oldest version of Node.js that the SDKs support.
const OLDEST_NODE: u32 = 20;
/// A file that is written last: the installed versions, and the interpreter they are for.
const STAMP: &str = "installed";

/// The language of an SDK.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    /// Used only if it is installed already.
    JavaScript,
}

/// SDKs in certain versions, with everything that they need.
pub(super) struct Environment {
    pub(super) language: Language,
    /// The name of the file of versions, and of the folder.
    pub(super) name: &'static str,
}

impl Environment {
    /// The folder of the environment.
    pub(super) fn folder(&self) -> PathBuf {
        target_folder().join("sdk").join(self.name)
    }

    /// The interpreter that runs the scripts.
    pub(super) fn program(&self) -> PathBuf {
        match self.language {
            Language::Python => self.folder().join("bin/python"),
            Language::JavaScript => PathBuf::from("node"),
        }
    }

    /// Creates the environment, unless it exists and is up to date. `scripts` contains the folder of versions. Returns the reason if it cannot be
    /// created on this machine and that is not an error.
    pub(super) fn create_if_outdated(&self, scripts: &Path) -> Result<Option<String>, String> {
        let (file, interpreter) = match self.language {
            Language::Python => ("txt", python_version()?),
            Language::JavaScript => match node_version() {
                Ok(version) => ("json", version),
                Err(why) => return Ok(Some(why)),
            },
        };
        let versions = scripts.join(format!("requirements/{}.{file}", self.name));
        let text = fs::read_to_string(&versions);
        let text = text.map_err(|e| format!("cannot read {}: {e}", versions.display()))?;
        let wanted = format!("{interpreter}{text}");
        let folder = self.folder();
        let stamp = folder.join(STAMP);
        if fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
            return Ok(None);
        }
        println!("sdk: installing {}", self.name);
        if folder.exists() {
            let removed = fs::remove_dir_all(&folder);
            removed.map_err(|e| format!("cannot remove {}: {e}", folder.display()))?;
        }
        match self.language {
            Language::Python => self.install_python(&versions)?,
            Language::JavaScript => {
                if output(Command::new("npm").args(["ping", "--fetch-retries", "0"])).is_err() {
                    return Ok(Some("npm's registry cannot be reached".to_owned()));
                }
                self.install_javascript(&versions)?;
            }
        }
        let written = fs::write(&stamp, wanted);
        written.map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
        Ok(None)
    }

    fn install_python(&self, versions: &Path) -> Outcome {
        create_venv(&self.folder(), &["--without-pip"])?;
        let mut pip = Command::new(shared_pip()?);
        pip.arg("--python").arg(self.program());
        // Only the modules that the scripts import are compiled, when they are imported.
        pip.args(["install", "--quiet", "--no-compile"]);
        pip.args(["--disable-pip-version-check", "--requirement"]);
        output(pip.arg(versions))?;
        Ok(())
    }

    fn install_javascript(&self, versions: &Path) -> Outcome {
        let folder = self.folder();
        let package = folder.join("package.json");
        let copied = fs::create_dir_all(&folder).and_then(|()| fs::copy(versions, &package));
        copied.map_err(|e| format!("cannot write {}: {e}", package.display()))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund"]);
        output(npm.current_dir(&folder))?;
        Ok(())
    }
}

/// The `pip` that installs into every environment. It is created once, because a copy in each would take longer than the SDKs.
fn shared_pip() -> Result<PathBuf, String> {
    let version = python_version()?.trim().replace(' ', "-");
    let folder = target_folder().join(format!("sdk/pip-of-{version}"));
    // This file is the last one to be written.
    let program = folder.join("bin/pip");
    if !program.exists() {
        create_venv(&folder, &["--clear"])?;
    }
    Ok(program)
}

fn create_venv(folder: &Path, options: &[&str]) -> Outcome {
    let mut venv = Command::new("python3");
    let created = output(venv.args(["-m", "venv"]).args(options).arg(folder));
    created.map_err(|e| format!("{e}; {HOW_TO_INSTALL}"))?;
    Ok(())
}

/// The version of Python.
fn python_version() -> Result<String, String> {
    let version = output(Command::new("python3").arg("--version"));
    version.map_err(|e| format!("{e}; {HOW_TO_INSTALL}"))
}

/// The version of Node.js, or the reason why it is not used.
fn node_version() -> Result<String, String> {
    let missing = |_| format!("no Node.js {OLDEST_NODE} or newer with npm found");
    let version = output(Command::new("node").arg("--version")).map_err(missing)?;
    output(Command::new("npm").arg("--version")).map_err(missing)?;
    let major = version.trim_start_matches('v').split('.').next();
    let major: u32 = major.and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < OLDEST_NODE {
        return Err(missing(String::new()));
    }
    Ok(version)
}
