//! `cargo xtask profile`: records what a busy gateway runs, for release builds to be laid out by (`profile/rustc`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{TempDir, output};
use crate::{Outcome, bench, gateway, repo};

/// Where it lies, from the root.
const PROFILE: &str = "profile/release.profdata";
/// The variable by which `profile/rustc` is told to count.
const INTO: &str = "TOLLGATE_PROFILE_INTO";

/// LLVM's releases that can read what rustc 1.95 writes, and may come to be.
const OLDEST: u32 = 19;
const NEWEST: u32 = 40;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long each load lasts
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

/// Builds a gateway that counts, puts the bench's loads on it, and writes the profile.
pub(crate) fn run(options: &Options) -> Outcome {
    if cfg!(debug_assertions) {
        return bench::again_in_release();
    }
    let merge = merger()?;
    let target = gateway::target_folder().join("counting");
    fs::create_dir_all(&target).map_err(|e| format!("{}: {e}", target.display()))?;
    // One folder for all builds: its name is in what is built.
    let counts = target.join("counts");
    let _ = fs::remove_dir_all(&counts);
    eprintln!("building a gateway that counts");
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repo::root()).env(INTO, &counts);
    cargo.args(["build", "--release", "--locked", "-p", "tollgate-server"]);
    cargo.arg("--target-dir").arg(&target);
    match cargo.status() {
        Ok(status) if status.success() => {}
        Ok(_) => return Err("the build failed".to_owned()),
        Err(e) => return Err(format!("cannot run cargo: {e}")),
    }
    // What ran while building counted as well.
    let _ = fs::remove_dir_all(&counts);
    bench::put_loads(&target.join("release/tollgate"), options.seconds)?;
    let written = TempDir::within(&target, "profile")?;
    let profile = written.path().join("release.profdata");
    write(&merge, &counts, &profile)?;
    let place = repo::root().join(PROFILE);
    fs::copy(&profile, &place).map_err(|e| format!("{}: {e}", place.display()))?;
    eprintln!("written: {}", place.display());
    Ok(())
}

/// What never ran is left out: it is built as if there were no profile, not for size.
fn write(merge: &Path, counts: &Path, profile: &Path) -> Outcome {
    let mut command = Command::new(merge);
    command.args(["merge", "--sparse", "--output"]).arg(profile);
    output(command.arg(counts)).map(|_| ())
}

/// `llvm-profdata`: rustup's (component `llvm-tools`), or the newest of the system that can read what rustc writes.
fn merger() -> Result<PathBuf, String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let mut found = Vec::new();
    let lib = PathBuf::from(sysroot.trim()).join("lib/rustlib");
    let hosts = fs::read_dir(lib).into_iter().flatten().flatten();
    found.extend(hosts.map(|host| host.path().join("bin/llvm-profdata")));
    let versions = (OLDEST..=NEWEST).rev();
    found.extend(versions.map(|v| format!("/usr/lib/llvm-{v}/bin/llvm-profdata").into()));
    let is_there = |path: &PathBuf| path.is_file();
    found.into_iter().find(is_there).ok_or_else(|| {
        format!("llvm-profdata {OLDEST} or newer is needed: `rustup component add llvm-tools`, or Debian's llvm-{OLDEST}")
    })
}
