//! `cargo xtask dist`: builds the binary that is shipped, with fat LTO and profile-guided optimisation (PGO) that is trained in the same run, and its
//! list of packages and their checksums. The same commit, compiler and profile give the same bytes, wherever they are built.

mod build;
mod cross;
mod reproducible;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::outcome::Outcome;
use crate::process::{TempDir, output};
use crate::rustc::{host_triple, sysroot};
use crate::{bench, gateway, repo, sbom};
use build::{Linked, PROFILE, absolute, build, cargo_build, create_folder, run_build};

/// The releases of LLVM whose `llvm-profdata` can read the profiles of rustc 1.95 or newer.
const LLVM_VERSIONS: std::ops::RangeInclusive<u32> = 22..=40;

/// The symbol of `tollgate_core::id::key_digest`, which every request with a key runs.
const PROBE_SYMBOL: &str = "_ZN13tollgate_core2id10key_digest17h";

/// Parts of the names of functions that the loads run: for chats, streams, their translation, submissions and polls.
const TRAINED: [&str; 6] = [
    "15tollgate_server4chat7handler",
    "15tollgate_server4chat6stream",
    "15tollgate_server5tasks",
    "13tollgate_chat",
    "17tollgate_upstream",
    "14tollgate_store",
];

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds that each training load lasts
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Take this recorded profile instead of training: with the profile of a release it gives the release's bytes
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Build for this target, whose standard library and linker must be installed [default: this machine's]. Another one is not trained
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Link for this version of glibc or newer, such as 2.31 for Debian 11 and Ubuntu 20.04, by `cargo zigbuild`
    #[arg(long, value_name = "VERSION")]
    glibc: Option<String>,
    /// Build the commit twice, in copies in different folders, with the last recorded profile or that of --profile, and compare the bytes
    #[arg(long, conflicts_with = "target")]
    check_reproducible: bool,
}

/// Builds an instrumented gateway, trains it with the bench's loads, builds again with the recorded profile, and writes
/// `tollgate`, `gateway.profdata`, `tollgate.cdx.json` and `SHA256SUMS` to `target/dist`.
pub(crate) fn run(options: &Options) -> Outcome {
    let host = host_triple()?;
    let glibc = options.glibc.as_deref();
    if glibc.is_some() {
        cross::check_zigbuild()?;
    }
    if options.check_reproducible {
        return reproducible::check(options.profile.as_deref(), &host, glibc);
    }
    if let Some(triple) = options.target.as_ref().filter(|triple| **triple != host) {
        return build_for(triple, glibc, options.profile.as_deref());
    }
    // Missing tools are reported before anything is built.
    if options.profile.is_none() {
        find_llvm_profdata()?;
    }
    // The training loads are programs of this tool.
    if cfg!(debug_assertions) {
        return bench::rerun_in_release();
    }
    let target = gateway::target_folder().join("dist");
    create_folder(&target)?;
    // The path of the profile is part of cargo's fingerprint, so it is the same in every run.
    let profile = target.join(PROFILE);
    let measured_symbol = match &options.profile {
        Some(given) if given == &profile => None,
        Some(given) => {
            fs::copy(given, &profile).map_err(|e| format!("{}: {e}", given.display()))?;
            None
        }
        None => Some(train(&target, &profile, options.seconds, glibc)?),
    };

    eprintln!("dist: building the optimised gateway");
    let optimized = target.join("optimized");
    // Removed because cargo does not notice a changed profile.
    let _ = fs::remove_dir_all(&optimized);
    let flags = format!("-Cprofile-use={}", profile.display());
    let linked = Linked {
        triple: &host,
        glibc,
    };
    let binary = build(&repo::root(), &optimized, &flags, &linked)?;
    cross::check_glibc(&binary, glibc)?;
    // Read from the library, because the program itself has no symbols.
    let symbol = read_probe_symbol(&library(&binary)?)?;
    if measured_symbol.is_some_and(|measured| measured != symbol) {
        return Err(
            "the two builds name their functions differently: the profile was not applied".into(),
        );
    }
    let shipped = target.join("tollgate");
    fs::copy(&binary, &shipped).map_err(|e| format!("{}: {e}", shipped.display()))?;
    let packages = target.join("tollgate.cdx.json");
    sbom::write(&packages)?;
    let sums = write_checksums(&[shipped, packages, profile], &target.join("SHA256SUMS"))?;
    print!("{sums}");
    Ok(())
}

/// Builds for another kind of machine, on which this machine cannot train: with a recorded profile if one is given. Writes `tollgate`,
/// `tollgate.cdx.json` and `SHA256SUMS` to `target/dist/TRIPLE`.
fn build_for(triple: &str, glibc: Option<&str>, profile: Option<&Path>) -> Outcome {
    cross::check_installed(triple, glibc.is_some())?;
    let target = gateway::target_folder().join("dist").join(triple);
    create_folder(&target)?;
    let flags = match profile {
        Some(profile) => format!("-Cprofile-use={}", absolute(profile)?.display()),
        None => String::new(),
    };
    eprintln!("dist: building for {triple}");
    let linked = Linked { triple, glibc };
    let binary = build(&repo::root(), &target.join("build"), &flags, &linked)?;
    cross::check_glibc(&binary, glibc)?;
    let shipped = target.join("tollgate");
    fs::copy(&binary, &shipped).map_err(|e| format!("{}: {e}", shipped.display()))?;
    let packages = target.join("tollgate.cdx.json");
    sbom::write(&packages)?;
    print!(
        "{}",
        write_checksums(&[shipped, packages], &target.join("SHA256SUMS"))?
    );
    Ok(())
}

/// Builds an instrumented gateway, runs the bench's loads against it and writes the merged `profile`. Returns the name of a function as it is in the
/// profile.
///
/// The instrumented gateway is always linked by this machine's linker, because zig cannot link the runtime of the counters. Everything else is the
/// same as for the shipped program, otherwise functions would have other names.
fn train(
    target: &Path,
    profile: &Path,
    seconds: u64,
    glibc: Option<&str>,
) -> Result<Vec<u8>, String> {
    let llvm_profdata = find_llvm_profdata()?;
    eprintln!("dist: building the instrumented gateway");
    let instrumented = target.join("instrumented");
    let counters = target.join("counters");
    let flags = format!("-Cprofile-generate={}", counters.display());
    let host = host_triple()?;
    let linked = Linked {
        triple: &host,
        glibc,
    };
    let mut cargo = cargo_build(&repo::root(), &instrumented, &flags, &linked)?;
    if glibc.is_some() {
        cargo.envs(cross::own_linker(&host));
    }
    let binary = run_build(&mut cargo, &instrumented, &host)?;
    let measured_symbol = read_probe_symbol(&binary)?;

    eprintln!("dist: training it with the loads of `cargo xtask bench`");
    let _ = fs::remove_dir_all(&counters);
    bench::run_training_loads(&binary, seconds)?;

    eprintln!("dist: merging the counters");
    let scratch = TempDir::within(target, "profile")?;
    let merged = scratch.path().join("merged.profdata");
    merge_counters(&llvm_profdata, &counters, &merged)?;
    check_trained(&llvm_profdata, &merged)?;
    fs::copy(&merged, profile).map_err(|e| format!("{}: {e}", profile.display()))?;
    Ok(measured_symbol)
}

/// The compiled library next to the program that contains [`PROBE_SYMBOL`].
fn library(program: &Path) -> Result<PathBuf, String> {
    let folder = program.with_file_name("deps");
    let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut paths = files.filter_map(|file| Some(file.ok()?.path()));
    let found = paths.find(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libtollgate_core-") && name.ends_with(".rlib")
    });
    found.ok_or_else(|| format!("{}: no library of tollgate-core", folder.display()))
}

/// The mangled name, with its hash, of a function that both builds contain, read from a program or a library.
fn read_probe_symbol(file: &Path) -> Result<Vec<u8>, String> {
    let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    find_symbol(&bytes, PROBE_SYMBOL)
        .map(<[u8]>::to_vec)
        .ok_or_else(|| format!("{}: no symbol {PROBE_SYMBOL}", file.display()))
}

/// The name that begins with `prefix`, up to the E after its hash.
fn find_symbol<'a>(bytes: &'a [u8], prefix: &str) -> Option<&'a [u8]> {
    let start = memchr::memmem::find(bytes, prefix.as_bytes())?;
    let symbol = bytes.get(start..)?;
    symbol.get(..=memchr::memchr(b'E', symbol.get(prefix.len()..)?)? + prefix.len())
}

/// Merges the raw counters. `--sparse` leaves out functions that never ran, so that they are optimised as without a profile, not for size.
fn merge_counters(llvm_profdata: &Path, counters: &Path, merged: &Path) -> Outcome {
    let mut command = Command::new(llvm_profdata);
    command.args(["merge", "--sparse", "--output"]).arg(merged);
    output(command.arg(counters)).map(|_| ())
}

/// Fails if one of [`TRAINED`] matches no function with counters: a load did not run, or its gateway was killed before it wrote them. Without this
/// check, the shipped program would be slower without notice.
fn check_trained(llvm_profdata: &Path, profile: &Path) -> Outcome {
    let mut command = Command::new(llvm_profdata);
    let functions = output(command.args(["show", "--all-functions"]).arg(profile))?;
    match TRAINED.iter().find(|name| !functions.contains(**name)) {
        Some(name) => Err(format!(
            "the profile has no function of {name}: a load of the training did not count"
        )),
        None => Ok(()),
    }
}

/// Writes the checksums of files in `sha256sum`'s format and returns the text.
fn write_checksums(files: &[PathBuf], sums: &Path) -> Result<String, String> {
    use std::fmt::Write as _;

    let mut text = String::new();
    for file in files {
        let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        for byte in Sha256::digest(&bytes) {
            let _ = write!(text, "{byte:02x}");
        }
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(text, "  {name}");
    }
    fs::write(sums, &text).map_err(|e| format!("{}: {e}", sums.display()))?;
    Ok(text)
}

/// The path of `llvm-profdata`: from rustup's component `llvm-tools`, otherwise the newest of the system.
fn find_llvm_profdata() -> Result<PathBuf, String> {
    let sysroot = sysroot()?;
    let tools = format!("lib/rustlib/{}/bin/llvm-profdata", host_triple()?);
    let rustup = PathBuf::from(sysroot).join(tools);
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
    fn a_symbol_ends_behind_its_hash() {
        let bytes = b"..\0_ZN1a1b17h0123E_ZN1cE.";
        assert_eq!(
            find_symbol(bytes, "_ZN1a1b17h"),
            Some(&b"_ZN1a1b17h0123E"[..])
        );
        assert_eq!(find_symbol(bytes, "_ZN1d"), None);
        assert_eq!(find_symbol(b"_ZN1a1b17h0123", "_ZN1a1b17h"), None);
    }

    #[test]
    fn the_checksum_file_has_the_format_of_sha256sum() {
        let folder = TempDir::new("checksum").unwrap();
        let files = ["tollgate", "other"].map(|name| folder.path().join(name));
        for file in &files {
            fs::write(file, "abc").unwrap();
        }
        let sums = folder.path().join("SHA256SUMS");
        let text = write_checksums(&files, &sums).unwrap();
        assert!(text.starts_with("ba7816bf8f01cfea414140de5dae2223"));
        assert_eq!(fs::read_to_string(&sums).unwrap(), text);
        let mut check = Command::new("sha256sum");
        check.current_dir(folder.path());
        output(check.args(["--strict", "--check", "SHA256SUMS"])).unwrap();
    }

    #[test]
    fn folders_of_this_machine_are_replaced_in_what_is_compiled() {
        let folder = TempDir::new("paths").unwrap();
        let source = folder.path().join("main.rs");
        fs::write(&source, "fn main() { panic!(\"{}\", file!()) }").unwrap();
        let paths = build::replaced_paths(&repo::root(), folder.path()).unwrap();
        let mut rustc = Command::new("rustc");
        rustc.current_dir(folder.path()).arg(&source);
        for (path, replacement) in &paths {
            rustc.arg(format!("--remap-path-prefix={path}={replacement}"));
        }
        output(&mut rustc).unwrap();
        let program = fs::read(folder.path().join("main")).unwrap();
        let has = |text: &str| memchr::memmem::find(&program, text.as_bytes()).is_some();
        assert!(has("/target/main.rs"));
        assert!(!has(&folder.path().display().to_string()));
    }
}
