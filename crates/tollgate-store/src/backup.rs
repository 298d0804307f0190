//! Backup and restore of a SQLite database (docs/operating.md). PostgreSQL has its own tools.

use std::path::{Path, PathBuf};

use crate::db::sqlite_copy::copy_database;
use crate::error::StoreError;
use crate::schema::inspect_database;
use crate::store::DatabaseLocation;

/// Copies the database of a gateway, which may be running, to the new file `backup`. Returns the size of the copy in bytes.
///
/// # Errors
/// [`StoreError::Setup`] if there is no database or `backup` exists; [`StoreError::DiskFull`] if the copy does not fit.
pub async fn back_up_sqlite(database: &Path, backup: &Path) -> Result<u64, StoreError> {
    if !database.exists() {
        return Err(missing(database));
    }
    copy(database, backup).await
}

/// Creates the database of a gateway from a backup. Returns its size in bytes. If the backup is of an older version, the next start migrates it.
///
/// # Errors
/// [`StoreError::Setup`] if there is a database already, or `backup` is not a database of this program or is of a newer version that this one must not use.
pub async fn restore_sqlite(backup: &Path, database: &Path) -> Result<u64, StoreError> {
    let location = DatabaseLocation::Sqlite(backup.to_owned());
    let state = inspect_database(&location)
        .await?
        .ok_or_else(|| missing(backup))?;
    let shown = backup.display();
    match state.schema_version {
        None => {
            return Err(StoreError::Setup(format!(
                "{shown} is not a backup of a tollgate database"
            )));
        }
        Some(version) if state.is_too_new() => {
            let known = state.known_version;
            return Err(StoreError::Setup(format!(
                "{shown} has schema version {version} and this program knows only {known}: restore it with the newer tollgate"
            )));
        }
        Some(_) => {}
    }
    // A log that belongs to a deleted database would be applied to the restored one.
    for suffix in ["", "-wal", "-journal"] {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        let file = PathBuf::from(name);
        let would_be_overwritten = match suffix {
            // A server that has been stopped leaves an empty log.
            "-wal" => std::fs::metadata(&file).is_ok_and(|log| log.len() > 0),
            _ => file.exists(),
        };
        if would_be_overwritten {
            return Err(StoreError::Setup(format!(
                "{} exists and is not overwritten: move it away, or choose another --data-dir",
                file.display()
            )));
        }
    }
    copy(backup, database).await
}

fn missing(file: &Path) -> StoreError {
    StoreError::Setup(format!("there is no database {}", file.display()))
}

async fn copy(from: &Path, to: &Path) -> Result<u64, StoreError> {
    if to.exists() {
        return Err(StoreError::Setup(format!(
            "{} exists and is not overwritten",
            to.display()
        )));
    }
    let (source, target) = (from.to_owned(), to.to_owned());
    let named = format!("{} to {}", from.display(), to.display());
    let copied = tokio::task::spawn_blocking(move || {
        copy_database(&source, &target)?;
        Ok(std::fs::metadata(&target).map_or(0, |file| file.len()))
    });
    let copied = copied
        .await
        .map_err(|e| StoreError::Broken(e.to_string()))?;
    copied.map_err(|e: crate::db::DbError| match StoreError::from(e) {
        StoreError::Broken(why) => StoreError::Setup(format!("cannot copy {named}: {why}")),
        other => other,
    })
}
