//! Files that commands write: [`write_new`] never overwrites one, [`check_folder`] checks a path before anything costs money.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use super::common::Failed;

/// Writes a file that only its owner may read, because it can contain keys and passwords.
///
/// # Errors
/// The file exists, or cannot be written.
pub(super) fn write_new(file: &Path, text: &str) -> Result<(), Failed> {
    let cannot = |e: io::Error| format!("cannot write {}: {e}", file.display());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    match options.open(file) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(already_exists(file)),
        opened => Ok(opened
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(cannot)?),
    }
}

/// Checks that the folder of an output file exists, before anything is done that costs money.
///
/// # Errors
/// The folder does not exist.
pub(super) fn check_folder(file: Option<&Path>) -> Result<(), Failed> {
    let folder = file.and_then(Path::parent);
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    match (file, folder) {
        (Some(file), Some(folder)) if !folder.is_dir() => Err(Failed::from(format!(
            "cannot write {}: there is no folder {}",
            file.display(),
            folder.display()
        ))),
        _ => Ok(()),
    }
}

/// The error that the file already exists.
pub(super) fn already_exists(file: &Path) -> Failed {
    Failed::from(format!(
        "{} exists and is not overwritten: name another file with --out",
        file.display()
    ))
}
