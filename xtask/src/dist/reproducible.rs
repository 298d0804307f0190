//! `cargo xtask dist --check-reproducible`: checks that the same commit, compiler and profile give the same bytes in any folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use super::build::{Linked, PROFILE, absolute, build, create_folder};
use super::cross;
use crate::outcome::Outcome;
use crate::process::output;
use crate::{gateway, repo};

/// The folders of the two builds. Their lengths differ, because a path that is left in a binary shifts the bytes after it.
const FOLDERS: [&str; 2] = ["a", "another-folder-with-a-longer-name"];

/// Builds the last commit twice from copies of its files, in separate folders that share nothing, and compares the programs.
///
/// # Errors
/// If there is no profile, a build fails, or the bytes differ; in the last case both programs are kept.
pub(super) fn check(profile: Option<&Path>, triple: &str, glibc: Option<&str>) -> Outcome {
    let dist = gateway::target_folder().join("dist");
    let recorded = dist.join(PROFILE);
    let profile = absolute(profile.unwrap_or(&recorded)).map_err(|e| {
        format!("there is no profile to build with: run `cargo xtask dist`, or name one with --profile ({e})")
    })?;
    let git = |arguments: &[&str]| {
        output(
            Command::new("git")
                .current_dir(repo::root())
                .args(arguments),
        )
    };
    let commit = git(&["rev-parse", "HEAD"])?;
    let commit = commit.trim();
    let root = dist.join("reproducible");
    let _ = fs::remove_dir_all(&root);
    let mut programs = Vec::new();
    for (number, name) in FOLDERS.iter().enumerate() {
        let folder = root.join(name);
        let source = folder.join("source");
        create_folder(&source)?;
        let archive = folder.join("source.tar");
        let to = format!("--output={}", archive.display());
        git(&["archive", &to, commit])?;
        output(
            Command::new("tar")
                .arg("-xf")
                .arg(&archive)
                .arg("-C")
                .arg(&source),
        )?;
        // The path of the profile is the same for both, because cargo hashes it.
        let flags = format!("-Cprofile-use={}", profile.display());
        eprintln!("dist: build {} of 2, in {}", number + 1, folder.display());
        let linked = Linked { triple, glibc };
        let program = build(&source, &folder.join("target"), &flags, &linked)?;
        cross::check_glibc(&program, glibc)?;
        let kept = root.join(format!("tollgate-{}", number + 1));
        fs::copy(&program, &kept).map_err(|e| format!("{}: {e}", kept.display()))?;
        let _ = fs::remove_dir_all(&folder);
        programs.push(kept);
    }
    let sum = compare(&programs)?;
    println!(
        "{sum}  tollgate\nthe same bytes twice: commit {commit}, profile {}",
        checksum(&profile)?
    );
    Ok(())
}

/// The checksum of the files, if they are identical.
fn compare(programs: &[PathBuf]) -> Result<String, String> {
    let mut sums = Vec::new();
    for program in programs {
        sums.push(checksum(program)?);
    }
    match sums.as_slice() {
        [first, rest @ ..] if rest.iter().all(|sum| sum == first) => Ok(first.clone()),
        _ => {
            let lines = sums.iter().zip(programs);
            let lines: Vec<String> = lines
                .map(|(sum, program)| format!("{sum}  {}", program.display()))
                .collect();
            Err(format!("the builds differ:\n{}", lines.join("\n")))
        }
    }
}

fn checksum(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let digest = Sha256::digest(bytes);
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::TempDir;

    #[test]
    fn builds_that_differ_are_named_with_their_checksums() {
        let folder = TempDir::new("reproducible").unwrap();
        let files = ["first", "second"].map(|name| folder.path().join(name));
        for file in &files {
            fs::write(file, "abc").unwrap();
        }
        let sum = compare(&files).unwrap();
        assert!(sum.starts_with("ba7816bf8f01cfea414140de5dae2223"));
        fs::write(&files[1], "abd").unwrap();
        let error = compare(&files).unwrap_err();
        assert!(error.contains(&format!("{sum}  ")), "{error}");
        assert!(error.contains("second"), "{error}");
    }
}
