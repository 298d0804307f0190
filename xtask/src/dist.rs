//! `cargo xtask dist`: builds the binary that is shipped: fat LTO and profile-guided optimisation (PGO), trained in the same run, with
//! its checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::process::{TempDir, output};
use crate::{Outcome, bench, gateway, repo};

/// The releases of LLVM whose `llvm-profdata` reads the profiles of rustc 1.95 or newer.
const LLVM_VERSIONS: std::ops::RangeInclusive<u32> = 22..=40;

/// `tollgate_core::id::key_digest`, which every request with a key runs.
const PROBE_SYMBOL: &str = "_ZN13tollgate_core2id10key_digest17h";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds that each training load lasts
    #[arg(long, default_value_t = 5)]
    seconds: u64,
}

/// Builds an instrumented gateway, trains it with the bench's loads, builds again with the recorded profile, and writes
/// `target/dist/tollgate` and `target/dist/SHA256SUMS`.
pub(crate) fn run(options: &Options) -> Outcome {
    if cfg!(debug_assertions) {
        return bench::rerun_in_release();
    }
    let llvm_profdata = find_llvm_profdata()?;
    let target = gateway::target_folder().join("dist");
    create_folder(&target)?;

    eprintln!("dist 1/4: building the instrumented gateway");
    let instrumented = target.join("instrumented");
    let counters = target.join("counters");
    let flags = format!("-Cprofile-generate={}", counters.display());
    let binary = build(&instrumented, &flags)?;
    let measured_symbol = read_probe_symbol(&binary)?;

    eprintln!("dist 2/4: training it with the loads of `cargo xtask bench`");
    let _ = fs::remove_dir_all(&counters);
    bench::run_training_loads(&binary, options.seconds)?;

    eprintln!("dist 3/4: merging the counters");
    let scratch = TempDir::within(&target, "profile")?;
    let merged = scratch.path().join("merged.profdata");
    merge_counters(&llvm_profdata, &counters, &merged)?;
    // The path of the profile is part of cargo's fingerprint: it stays the same from run to run.
    let profile = target.join("gateway.profdata");
    fs::copy(&merged, &profile).map_err(|e| format!("{}: {e}", profile.display()))?;

    eprintln!("dist 4/4: building the optimised gateway");
    let optimized = target.join("optimized");
    // Cargo does not see that the profile changed.
    let _ = fs::remove_dir_all(&optimized);
    let flags = format!("-Cprofile-use={}", profile.display());
    let binary = build(&optimized, &flags)?;
    if read_probe_symbol(&binary)? != measured_symbol {
        return Err(
            "the two builds name their functions differently: the profile was not applied".into(),
        );
    }
    let shipped = target.join("tollgate");
    fs::copy(&binary, &shipped).map_err(|e| format!("{}: {e}", shipped.display()))?;
    let checksum = write_checksum(&shipped, &target.join("SHA256SUMS"))?;
    println!("{checksum}  {}", shipped.display());
    Ok(())
}

/// Builds `tollgate` with the profile `dist` and returns the path of the program. The target is named, because cargo then leaves build
/// scripts and procedural macros without `rustflags`.
/// Builds the gateway with the same profile every time: cargo hashes the profile's settings into the names of all
/// functions, and LLVM finds a function's counters by its name.
fn build(target: &Path, rustflags: &str) -> Result<PathBuf, String> {
    let host = host_triple()?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(repo::root())
        .args(["build", "--locked", "--profile", "dist"])
        .args(["--package", "tollgate-server", "--target", &host])
        .arg("--target-dir")
        .arg(target)
        .env("RUSTFLAGS", rustflags);
    match cargo.status() {
        Ok(status) if status.success() => Ok(target.join(host).join("dist/tollgate")),
        Ok(_) => Err("the build failed".to_owned()),
        Err(e) => Err(format!("cannot run cargo: {e}")),
    }
}

/// Merges the raw counters. `--sparse` leaves out functions that never ran: they are then optimised as without a profile, not for size.
/// The mangled name, with its hash, of a function that both builds contain.
fn read_probe_symbol(binary: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::read(binary).map_err(|e| format!("{}: {e}", binary.display()))?;
    find_symbol(&bytes, PROBE_SYMBOL)
        .map(<[u8]>::to_vec)
        .ok_or_else(|| format!("{}: no symbol {PROBE_SYMBOL}", binary.display()))
}

fn find_symbol<'a>(bytes: &'a [u8], prefix: &str) -> Option<&'a [u8]> {
    let start = memchr::memmem::find(bytes, prefix.as_bytes())?;
    let symbol = bytes.get(start..)?;
    symbol.get(..memchr::memchr(0, symbol)?)
}

fn merge_counters(llvm_profdata: &Path, counters: &Path, merged: &Path) -> Outcome {
    let mut command = Command::new(llvm_profdata);
    command.args(["merge", "--sparse", "--output"]).arg(merged);
    output(command.arg(counters)).map(|_| ())
}

/// Writes a line of `sha256sum`'s format and returns the checksum.
fn write_checksum(file: &Path, sums: &Path) -> Result<String, String> {
    use std::fmt::Write as _;

    let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let checksum = Sha256::digest(&bytes)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let line = format!("{checksum}  {name}\n");
    fs::write(sums, line).map_err(|e| format!("{}: {e}", sums.display()))?;
    Ok(checksum)
}

fn create_folder(folder: &Path) -> Outcome {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

fn host_triple() -> Result<String, String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("`rustc -vV` names no host")?;
    Ok(host.to_owned())
}

/// `llvm-profdata` of rustup's component `llvm-tools`, else the newest of the system.
fn find_llvm_profdata() -> Result<PathBuf, String> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let tools = format!("lib/rustlib/{}/bin/llvm-profdata", host_triple()?);
    let rustup = PathBuf::from(sysroot.trim()).join(tools);
    let debian = LLVM_VERSIONS
        .rev()
        .map(|version| format!("/usr/lib/llvm-{version}/bin/llvm-profdata").into());
    let mut candidates = std::iter::once(rustup).chain(debian);
    candidates.find(|path| path.is_file()).ok_or_else(|| {
        let oldest = LLVM_VERSIONS.start();
        format!("llvm-profdata {oldest} or newer is needed: `rustup component add llvm-tools`, or Debian's package llvm-{oldest}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_symbol_ends_at_its_zero_byte() {
        let bytes = b"..\0_ZN1a1b17h0123E\0_ZN1c";
        assert_eq!(
            find_symbol(bytes, "_ZN1a1b17h"),
            Some(&b"_ZN1a1b17h0123E"[..])
        );
        assert_eq!(find_symbol(bytes, "_ZN1c"), None);
    }

    #[test]
    fn the_checksum_file_has_the_format_of_sha256sum() {
        let folder = TempDir::new("checksum").unwrap();
        let (file, sums) = (folder.path().join("tollgate"), folder.path().join("SUMS"));
        fs::write(&file, "abc").unwrap();
        let checksum = write_checksum(&file, &sums).unwrap();
        assert!(checksum.starts_with("ba7816bf8f01cfea414140de5dae2223"));
        assert_eq!(
            fs::read_to_string(&sums).unwrap(),
            format!("{checksum}  tollgate\n")
        );
    }
}
