//! Runs cargo so that the same sources give the same program wherever it is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cross;
use crate::outcome::Outcome;
use crate::process::{self, output};
use crate::repo;
use crate::rustc::sysroot;

/// The paths of sources and packages in the binary.
const SOURCE: &str = "/source";
const PACKAGES: &str = "/packages";
/// The file name of the recorded profile in `target/dist`.
pub(super) const PROFILE: &str = "gateway.profdata";

/// The machines for which a program is linked.
#[derive(Clone, Copy)]
pub(super) struct Linked<'a> {
    pub(super) triple: &'a str,
    /// The oldest glibc that the program runs with; `None` for the version of this machine.
    pub(super) glibc: Option<&'a str>,
}

/// Leaves out the symbol table, which nothing reads: the message of a panic has its file and line. Not in the cargo profile, because the symbols of the
/// instrumented program are read.
const WITHOUT_SYMBOLS: &str = "-Cstrip=symbols";

/// Builds `tollgate` from the sources in `source` with the cargo profile `dist` and returns the path of the program.
pub(super) fn build(
    source: &Path,
    target: &Path,
    rustflags: &str,
    linked: &Linked<'_>,
) -> Result<PathBuf, String> {
    let rustflags = format!("{rustflags} {WITHOUT_SYMBOLS}");
    let mut cargo = cargo_build(source, target, &rustflags, linked)?;
    run_build(&mut cargo, target, linked.triple)
}

/// The command of [`build`]. It names the target, because cargo then builds build scripts and procedural macros without `rustflags`. It always uses
/// the same cargo profile: cargo hashes the profile's settings into the names of all functions, and LLVM finds a function's counters by its name.
pub(super) fn cargo_build(
    source: &Path,
    target: &Path,
    rustflags: &str,
    linked: &Linked<'_>,
) -> Result<Command, String> {
    let paths = replaced_paths(source, target)?;
    let rust: Vec<String> = paths
        .iter()
        .map(|(path, replacement)| format!("--remap-path-prefix={path}={replacement}"))
        .collect();
    let c: Vec<String> = paths
        .iter()
        .map(|(path, replacement)| format!("-ffile-prefix-map={path}={replacement}"))
        .collect();
    let committed =
        output(
            Command::new("git")
                .current_dir(repo::root())
                .args(["log", "-1", "--format=%ct"]),
        )?;
    let Linked { triple, glibc } = *linked;
    let mut cargo = process::cargo();
    cargo
        .current_dir(source)
        // `cargo zigbuild` reads the version of glibc after the target.
        .arg(if glibc.is_some() { "zigbuild" } else { "build" })
        .args(["--locked", "--profile", "dist", "--package"])
        .args(["tollgate-cli", "--target"])
        .arg(glibc.map_or(triple.to_owned(), |version| format!("{triple}.{version}")))
        .arg("--target-dir")
        .arg(target)
        .env(
            "RUSTFLAGS",
            [
                rustflags,
                &flags_of_target(source, triple)?,
                &rust.join(" "),
            ]
            .join(" "),
        )
        .env("CFLAGS", c.join(" "))
        .env("SOURCE_DATE_EPOCH", committed.trim())
        .envs(match glibc {
            Some(_) => None,
            None => cross::linker_variable(triple),
        });
    Ok(cargo)
}

/// The flags in `.cargo/config.toml` of `source` for every build for `triple`: cargo ignores them if `RUSTFLAGS` is set.
fn flags_of_target(source: &Path, triple: &str) -> Result<String, String> {
    let path = source.join(".cargo/config.toml");
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let config = fs::read_to_string(&path).map_err(|e| failed(&e))?;
    let config: toml::Table = toml::from_str(&config).map_err(|e| failed(&e))?;
    let flags = config
        .get("target")
        .and_then(|targets| targets.get(triple)?.get("rustflags")?.as_array());
    let flags = flags.into_iter().flatten().filter_map(toml::Value::as_str);
    Ok(flags.collect::<Vec<_>>().join(" "))
}

/// Runs [`cargo_build`] and returns the path of the program.
pub(super) fn run_build(
    cargo: &mut Command,
    target: &Path,
    triple: &str,
) -> Result<PathBuf, String> {
    match cargo.status() {
        Ok(status) if status.success() => Ok(target.join(triple).join("dist/tollgate")),
        Ok(_) => Err("the build failed".to_owned()),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

/// Folders of this machine, each with its replacement in the binary. If two match, the later one is used.
pub(super) fn replaced_paths(
    source: &Path,
    target: &Path,
) -> Result<[(String, &'static str); 4], String> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let cargo_home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo_home = cargo_home.unwrap_or_else(|| Path::new(&home).join(".cargo"));
    let sysroot = sysroot()?;
    let text = |path: &Path| path.display().to_string();
    Ok([
        (text(source), SOURCE),
        (text(target), "/target"),
        (text(&cargo_home), PACKAGES),
        (sysroot, "/rust"),
    ])
}

pub(super) fn absolute(file: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(file).map_err(|e| format!("{}: {e}", file.display()))
}

pub(super) fn create_folder(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_for_this_target_keep_the_flags_of_the_configuration() {
        let flags = |triple| flags_of_target(&repo::root(), triple).unwrap();
        assert_eq!(
            flags("x86_64-unknown-linux-gnu"),
            "-C relro-level=partial -C link-arg=-Wl,-z,now"
        );
        assert_eq!(flags("aarch64-unknown-linux-gnu"), "");
    }
}
