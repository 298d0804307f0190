//! `cargo xtask deb`: the Debian package, built by `dpkg-deb` from files that are laid out below `target/deb`. The same program and commit give the
//! same bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outcome::Outcome;
use crate::process::output;
use crate::{gateway, man};

#[derive(clap::Args)]
pub(crate) struct Options {
    /// The program to pack [default: that of `cargo xtask dist`]
    #[arg(long)]
    binary: Option<PathBuf>,
    /// The package's version [default: the workspace's]
    #[arg(long)]
    version: Option<String>,
    /// Pack without compression, for tests
    #[arg(long)]
    uncompressed: bool,
}

/// The shells' folders for completions: shell and file.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/tollgate"),
    ("zsh", "usr/share/zsh/vendor-completions/_tollgate"),
    ("fish", "usr/share/fish/vendor_completions.d/tollgate.fish"),
];
/// Files of the repository: source, path in the package, mode.
const FILES: [(&str, &str, u32); 6] = [
    (
        "packaging/debian/tollgate.toml",
        "etc/tollgate/tollgate.toml",
        0o640,
    ),
    (
        "packaging/systemd/tollgate.service",
        "usr/lib/systemd/system/tollgate.service",
        0o644,
    ),
    (
        "packaging/systemd/tollgate.socket",
        "usr/lib/systemd/system/tollgate.socket",
        0o644,
    ),
    (
        "packaging/systemd/tollgate-admin.socket",
        "usr/lib/systemd/system/tollgate-admin.socket",
        0o644,
    ),
    ("LICENSE", "usr/share/doc/tollgate/copyright", 0o644),
    ("CHANGELOG.md", "usr/share/doc/tollgate/changelog", 0o644),
];
/// Scripts that dpkg runs.
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Writes `target/deb/tollgate_VERSION_ARCHITECTURE.deb`.
pub(crate) fn run(options: Options) -> Outcome {
    let binary = find_program(options.binary)?;
    let version = options
        .version
        .unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned());
    let folder = gateway::target_folder().join("deb");
    let root = folder.join("root");
    let _ = fs::remove_dir_all(&root);
    lay_out(&binary, &root)?;
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    write_control(&binary, &root, &version, architecture)?;
    let package = folder.join(format!("tollgate_{version}_{architecture}.deb"));
    let committed = output(Command::new("git").args(["log", "-1", "--format=%ct"]))?;
    let compression = if options.uncompressed {
        "-Znone"
    } else {
        "-Zxz"
    };
    let mut pack = Command::new("dpkg-deb");
    pack.env("SOURCE_DATE_EPOCH", committed.trim());
    pack.args(["--root-owner-group", compression, "--build"]);
    output(pack.arg(&root).arg(&package))?;
    println!("{}", package.display());
    Ok(())
}

/// The path of the program `given`, or of the shipped one if none is given.
fn find_program(given: Option<PathBuf>) -> Result<PathBuf, String> {
    let (program, advice) = match given {
        Some(program) => (program, ""),
        None => (
            gateway::target_folder().join("dist/tollgate"),
            ": run `cargo xtask dist` first, or name another program with --binary",
        ),
    };
    fs::canonicalize(&program)
        .map_err(|e| format!("no program at {}: {e}{advice}", program.display()))
}

fn lay_out(binary: &Path, root: &Path) -> Outcome {
    copy(binary, &root.join("usr/bin/tollgate"), 0o755)?;
    for (from, to, mode) in FILES {
        copy(Path::new(from), &root.join(to), mode)?;
    }
    let pages = root.join("usr/share/man/man1");
    man::write_pages(binary, &pages)?;
    let changelog = root.join("usr/share/doc/tollgate/changelog");
    let found = fs::read_dir(&pages).map_err(|e| format!("{}: {e}", pages.display()))?;
    let pages = found.filter_map(Result::ok).map(|entry| entry.path());
    for file in pages.chain([changelog]) {
        // Compressed without name and time, so that the bytes are the same.
        output(Command::new("gzip").arg("-9n").arg(&file))?;
    }
    for (shell, path) in COMPLETIONS {
        let text = output(Command::new(binary).args(["completions", shell]))?;
        write(&root.join(path), &text, 0o644)?;
    }
    Ok(())
}

fn write_control(binary: &Path, root: &Path, version: &str, architecture: &str) -> Outcome {
    let control = root.join("DEBIAN");
    for script in SCRIPTS {
        let source = Path::new("packaging/debian").join(script);
        copy(&source, &control.join(script), 0o755)?;
    }
    write(
        &control.join("conffiles"),
        "/etc/tollgate/tollgate.toml\n",
        0o644,
    )?;
    let libc = newest_glibc(binary)?;
    let text = format!(
        "Package: tollgate\nVersion: {version}\nArchitecture: {architecture}\nSection: net\nPriority: optional\n\
         Maintainer: The Tollgate authors <tollgate@localhost>\nDepends: libc6 (>= {libc}), libgcc-s1, passwd\n\
         Description: Self-hosted gateway in front of generation models\n \
         One HTTP/JSON API for chat in four formats and for image, video and speech\n \
         generation: translated to each provider's API, metered, charged to a balance.\n"
    );
    write(&control.join("control"), &text, 0o644)
}

/// The newest version of glibc whose symbols a program needs, such as `2.34`.
pub(crate) fn newest_glibc(binary: &Path) -> Result<String, String> {
    let bytes = fs::read(binary).map_err(|e| format!("{}: {e}", binary.display()))?;
    let marker = b"GLIBC_2.";
    let starts = bytes.windows(marker.len()).enumerate();
    let versions = starts
        .filter(|(_, window)| window == marker)
        .map(|(at, _)| {
            let digits = bytes[at + marker.len()..].iter();
            let digits = digits.take_while(|byte| byte.is_ascii_digit());
            digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
        });
    let newest = versions.max();
    newest
        .map(|minor| format!("2.{minor}"))
        .ok_or_else(|| format!("{} does not use glibc", binary.display()))
}

fn copy(from: &Path, to: &Path, mode: u32) -> Outcome {
    make_parent(to)?;
    fs::copy(from, to).map_err(|e| format!("cannot copy {}: {e}", from.display()))?;
    set_mode(to, mode)
}

fn write(to: &Path, text: &str, mode: u32) -> Outcome {
    make_parent(to)?;
    fs::write(to, text).map_err(|e| format!("cannot write {}: {e}", to.display()))?;
    set_mode(to, mode)
}

fn make_parent(file: &Path) -> Outcome {
    let folder = file.parent().unwrap_or(file);
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))
}

fn set_mode(file: &Path, mode: u32) -> Outcome {
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(file, permissions).map_err(|e| format!("{}: {e}", file.display()))
}
