//! The data directory: readable by its owner only, and locked by one server at a time. It contains the admin key.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;
use tollgate_core::{Secret, id};

/// Creates the directory if it is missing, readable by its owner only.
///
/// # Errors
/// A sentence for the operator.
pub fn create(dir: &Path) -> Result<(), String> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .and_then(|()| std::fs::read_dir(dir).map(drop))
        .map_err(|e| format!("cannot use the data directory {}: {e}", dir.display()))
}

/// The lock on a data directory; released when dropped, or when the process ends in any way.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// How long [`lock_with_retry`] retries: if a process is killed while it starts another program, that program keeps the lock for a moment.
const LOCK_TIMEOUT: Duration = Duration::from_secs(3);
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Takes the lock; retries for a few seconds while another process has it.
///
/// # Errors
/// A sentence for the operator.
pub async fn lock_with_retry(dir: &Path) -> Result<Lock, String> {
    let started = Instant::now();
    loop {
        match lock(dir) {
            Err(_) if started.elapsed() < LOCK_TIMEOUT => tokio::time::sleep(LOCK_PAUSE).await,
            result => return result,
        }
    }
}

/// Locks the directory for this server.
///
/// # Errors
/// A sentence for the operator if another server has locked it.
fn lock(dir: &Path) -> Result<Lock, String> {
    let path = dir.join("lock");
    let failed =
        |e: std::io::Error| format!("cannot write to the data directory {}: {e}", dir.display());
    let file = owner_only().open(&path).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(Lock { _file: file }),
        Err(TryLockError::WouldBlock) => Err(format!(
            "the data directory {} is in use by another tollgate: stop it, or choose another with --data-dir",
            dir.display()
        )),
        Err(TryLockError::Error(e)) => Err(failed(e)),
    }
}

/// The admin key of this data directory: generated at first use, kept in the file `admin.key` that only its owner can read.
///
/// # Errors
/// A sentence for the operator.
pub fn read_or_create_admin_key(dir: &Path) -> Result<Secret, String> {
    let path = dir.join("admin.key");
    let failed = |e: std::io::Error| format!("cannot use {}: {e}", path.display());
    match owner_only().create_new(true).open(&path) {
        Ok(mut file) => {
            let key = id::api_key().replacen("sk-", "admin-", 1);
            file.write_all(key.as_bytes())
                .and_then(|()| file.sync_all())
                .map_err(failed)?;
            Ok(Secret::new(key))
        }
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let key = std::fs::read_to_string(&path).map_err(failed)?;
            if key.trim().is_empty() {
                return Err(format!(
                    "{} is empty: delete it to get a new admin key",
                    path.display()
                ));
            }
            Ok(Secret::new(key.trim()))
        }
        Err(e) => Err(failed(e)),
    }
}

fn owner_only() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lock_that_a_dying_process_still_has_is_waited_for() {
        let dir = std::env::temp_dir().join(id::short_id("tollgate-test-"));
        create(&dir).unwrap();
        let held = lock(&dir).unwrap();
        let release = async {
            tokio::time::sleep(LOCK_TIMEOUT / 2).await;
            drop(held);
        };
        let (taken, ()) = tokio::join!(lock_with_retry(&dir), release);
        let _held = taken.unwrap();
        let error = lock_with_retry(&dir).await.unwrap_err();
        assert!(error.contains("in use by another tollgate"), "{error}");
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_data_directory_has_one_lock_and_one_admin_key() {
        let dir = std::env::temp_dir().join(id::short_id("tollgate-test-"));
        create(&dir).unwrap();
        let held = lock(&dir).unwrap();
        assert!(
            lock(&dir)
                .unwrap_err()
                .contains("in use by another tollgate")
        );
        drop(held);
        lock(&dir).unwrap();
        let key = read_or_create_admin_key(&dir).unwrap();
        assert!(key.matches(read_or_create_admin_key(&dir).unwrap().expose()));
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::write(&dir, "a file").unwrap();
        assert!(
            create(&dir)
                .unwrap_err()
                .contains("cannot use the data directory")
        );
        std::fs::remove_file(&dir).unwrap();
    }
}
