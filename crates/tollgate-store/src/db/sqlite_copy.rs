//! Creates consistent copies of a SQLite database while another process writes to it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::sql::DbError;
use super::sqlite::{db_error, open_reader};

/// Copies the current state of the database `from` to the new file `to`, readable by its owner only. The copy is checked and on disk when this
/// returns; if it fails or is interrupted, there is no file `to`.
///
/// `VACUUM INTO` reads in one transaction, which blocks no writer. SQLite's backup API would start again after each commit of another process.
pub(crate) fn copy_database(from: &Path, to: &Path) -> Result<(), DbError> {
    let partial = partial_name(to);
    let copied = copy_into(from, &partial)
        .and_then(|()| check(&partial))
        // If `to` was created in between, it is not replaced.
        .and_then(|()| fs::hard_link(&partial, to).map_err(|e| io_error(to, &e)));
    let _ = fs::remove_file(&partial);
    copied?;
    sync_folder(to).map_err(|e| io_error(to, &e))
}

fn copy_into(from: &Path, partial: &Path) -> Result<(), DbError> {
    // A process that was killed may have left this file.
    let _ = fs::remove_file(partial);
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(partial);
    let file = file.map_err(|e| io_error(partial, &e))?;
    let target = partial
        .to_str()
        .ok_or_else(|| DbError::Failed(format!("{} is not UTF-8", partial.display())))?;
    let connection = Connection::open(from).map_err(db_error)?;
    connection
        .execute("VACUUM INTO ?1", [target])
        .map_err(db_error)?;
    file.sync_all().map_err(|e| io_error(partial, &e))
}

/// Checks the file by reading every page.
fn check(file: &Path) -> Result<(), DbError> {
    let connection = open_reader(file)?;
    let found: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(db_error)?;
    match found.as_str() {
        "ok" => Ok(()),
        damage => Err(DbError::Failed(format!("the copy is damaged: {damage}"))),
    }
}

fn partial_name(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

fn sync_folder(file: &Path) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}

fn io_error(file: &Path, error: &io::Error) -> DbError {
    match error.kind() {
        io::ErrorKind::StorageFull => DbError::DiskFull(error.to_string()),
        _ => DbError::Failed(format!("{}: {error}", file.display())),
    }
}
