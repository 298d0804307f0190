//! Checks and sets up a build for another kind of machine: the standard library for it, and a linker.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::deb::newest_glibc;
use crate::outcome::Outcome;
use crate::process::output;
use crate::rustc::host_triple;

/// Checks that `cargo zigbuild` can be run.
///
/// # Errors
/// The error states what to install.
pub(super) fn check_zigbuild() -> Outcome {
    let found = output(Command::new("cargo-zigbuild").arg("--version"));
    found.map(drop).map_err(|_| {
        "--glibc needs cargo-zigbuild and zig: `pip install cargo-zigbuild ziglang`".to_owned()
    })
}

/// Checks that a program needs no newer glibc than the one it was linked for.
///
/// # Errors
/// The error states the version that it needs.
pub(super) fn check_glibc(program: &Path, wanted: Option<&str>) -> Outcome {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    let minor = |version: &str| version.strip_prefix("2.")?.parse::<u32>().ok();
    let needed = newest_glibc(program)?;
    match minor(&needed) <= minor(wanted) {
        true => Ok(()),
        false => Err(format!(
            "{} needs glibc {needed}, not {wanted}",
            program.display()
        )),
    }
}

/// Checks that there is a standard library and a linker for `triple`.
///
/// # Errors
/// The error states what to install.
pub(super) fn check_installed(triple: &str, zig_links: bool) -> Outcome {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join(format!("lib/rustlib/{triple}/lib"));
    if !library.is_dir() {
        return Err(format!(
            "Rust's standard library for {triple} is not installed ({} is missing): `rustup target add {triple}`, and see `rustc --print target-list` for names",
            library.display()
        ));
    }
    if zig_links || std::env::var_os(variable(triple)).is_some() || find_linker(triple).is_some() {
        return Ok(());
    }
    let architecture = architecture(triple);
    Err(format!(
        "no linker for {triple}: Debian's package gcc-{architecture}-linux-gnu has one, or name one in {}",
        variable(triple)
    ))
}

/// The environment variable that sets cargo's linker for another kind of machine. `None` for this machine, or if the caller has set it.
pub(super) fn linker_variable(triple: &str) -> Option<(String, PathBuf)> {
    let is_host = host_triple().is_ok_and(|host| host == triple);
    let variable = variable(triple);
    if is_host || std::env::var_os(&variable).is_some() {
        return None;
    }
    Some((variable, find_linker(triple)?))
}

/// The environment variables with which `cargo zigbuild` uses this machine's compiler and linker instead of zig's.
pub(super) fn own_linker(host: &str) -> [(String, &'static str); 2] {
    let compiler = format!("CC_{}", host.replace('-', "_"));
    [(variable(host), "cc"), (compiler, "cc")]
}

/// The name of cargo's variable, such as `CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER`.
fn variable(triple: &str) -> String {
    let triple = triple.to_uppercase().replace(['-', '.'], "_");
    format!("CARGO_TARGET_{triple}_LINKER")
}

fn architecture(triple: &str) -> &str {
    triple.split('-').next().unwrap_or(triple)
}

/// Debian's compiler for the architecture, searched in `PATH`; it also compiles the C code of packages.
fn find_linker(triple: &str) -> Option<PathBuf> {
    let name = format!("{}-linux-gnu-gcc", architecture(triple));
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::TempDir;

    #[test]
    fn a_missing_target_is_named_with_what_to_install() {
        let error = check_installed("unheard-of-target", false).unwrap_err();
        assert!(
            error.contains("`rustup target add unheard-of-target`"),
            "{error}"
        );
        assert_eq!(check_installed(&host_triple().unwrap(), true), Ok(()));
        assert_eq!(
            variable("aarch64-unknown-linux-gnu"),
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER"
        );
        assert_eq!(linker_variable(&host_triple().unwrap()), None);
    }

    #[test]
    fn a_program_that_needs_a_newer_glibc_is_named() {
        let folder = TempDir::new("glibc").unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "GLIBC_2.17\0GLIBC_2.31\0").unwrap();
        for (wanted, is_fine) in [(None, true), (Some("2.31"), true), (Some("2.28"), false)] {
            let checked = check_glibc(&program, wanted);
            assert_eq!(checked.is_ok(), is_fine, "{checked:?}");
        }
    }
}
