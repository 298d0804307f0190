//! Stores files in a folder of this machine, in one subfolder per hour of expiry, so that expired files are deleted by subfolder.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tokio::fs::File;
use tollgate_core::crash;

use crate::file_name::{self, NameStatus};
use crate::pending_file::{PendingFile, Visibility};

/// Seconds of expiry time that share one subfolder.
const HOUR_S: i64 = 3600;

/// The folder of the public and the private files.
#[derive(Debug, Clone)]
pub(super) struct LocalFolder {
    root: PathBuf,
}

impl LocalFolder {
    /// Opens the folder `root`, which is created if it is missing.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        for folder in ["public", "private"] {
            create_folder(&root.join(folder))?;
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// The path of the file of that name, whether or not it exists. `expires_at` is in Unix seconds.
    pub(super) fn path(&self, visibility: Visibility, expires_at: i64, name: &str) -> PathBuf {
        self.hour_folder(visibility, expires_at).join(name)
    }

    /// Syncs `file` to disk, then renames it to its final name. After an error the call may be repeated.
    pub(super) async fn publish(&self, file: &File, pending: &PendingFile) -> io::Result<()> {
        file.sync_all().await?;
        let folder = self.hour_folder(pending.visibility, pending.expires_at);
        let temporary = pending.temporary.clone();
        let visible = folder.join(&pending.name);
        crash::point("blob.before_rename");
        let moved = tokio::task::spawn_blocking(move || {
            create_folder(&folder)?;
            // If the call is repeated, the renaming may have succeeded before.
            if temporary.exists() || !visible.exists() {
                std::fs::rename(&temporary, visible)?;
            }
            std::fs::File::open(&folder)?.sync_all()
        });
        moved.await.map_err(io::Error::other)??;
        crash::point("blob.after_rename");
        Ok(())
    }

    /// Deletes the files that have expired by `now_s` (Unix seconds).
    pub(super) fn delete_expired(&self, now_s: i64) -> io::Result<()> {
        for folder in ["public", "private"] {
            for hour_folder in std::fs::read_dir(self.root.join(folder))? {
                let hour_folder = hour_folder?;
                let hour = hour_folder.file_name();
                let hour: Option<i64> = hour.to_str().and_then(|n| n.parse().ok());
                match hour {
                    Some(hour) if (hour + 1) * HOUR_S <= now_s => {
                        std::fs::remove_dir_all(hour_folder.path())?
                    }
                    Some(hour) if hour * HOUR_S <= now_s => {
                        delete_expired_in_hour(&hour_folder.path(), now_s)?
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn hour_folder(&self, visibility: Visibility, expires_at: i64) -> PathBuf {
        let hour = (expires_at / HOUR_S).to_string();
        self.root.join(visibility.folder_name()).join(hour)
    }
}

/// Creates a folder that only its owner can read, and syncs its parent.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    match folder.parent() {
        Some(parent) => std::fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn delete_expired_in_hour(hour_folder: &Path, now_s: i64) -> io::Result<()> {
    for file in std::fs::read_dir(hour_folder)? {
        let file = file?;
        let name = file.file_name();
        if name
            .to_str()
            .is_some_and(|n| file_name::parse(n, now_s * 1000) == NameStatus::Expired)
        {
            std::fs::remove_file(file.path())?;
        }
    }
    Ok(())
}
