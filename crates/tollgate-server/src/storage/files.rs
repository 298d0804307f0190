//! The storage folder: results, uploads and task inputs as files whose names contain their expiry.
//!
//! Serving a file needs no database, and expired files are deleted by folders, one per hour. A file appears under its name
//! complete and synced to disk, or not at all.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};
use tollgate_core::{Millis, crash, id};

use crate::storage::availability::Availability;
use crate::storage::file_name::{self, NameStatus};

/// Bytes of memory that a file takes while it is written.
const WRITE_BUFFER: usize = 128 * 1024;
/// Bytes that a probe of the storage writes.
const PROBE_BYTES: usize = 64 * 1024;
/// Temporary files older than this were left by a crash and are deleted.
const TEMPORARY_TTL: Duration = Duration::from_secs(24 * 3600);
/// Seconds of expiry that share one folder.
const HOUR_S: i64 = 3600;

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Everybody who knows its name, under `/files`: results and uploads.
    Public,
    /// Only the gateway: input images of a task.
    Private,
}

/// The storage folder, and the address under which its public files are served.
#[derive(Debug, Clone)]
pub struct FileStorage {
    root: PathBuf,
    /// Without a slash at its end.
    public_url: String,
    /// Bytes of the disk that are kept free.
    pub(super) reserve: u64,
    pub(super) availability: Arc<Availability>,
}

impl FileStorage {
    /// Opens the folder `root`, which is created if it is missing. Links to public files begin with `public_url`.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(root: &Path, public_url: &str) -> Result<Self, String> {
        for folder in ["tmp", "public", "private"] {
            create_folder(&root.join(folder))
                .map_err(|e| format!("cannot use the storage folder {}: {e}", root.display()))?;
        }
        Ok(Self {
            root: root.to_owned(),
            public_url: public_url.to_owned(),
            reserve: 0,
            availability: Arc::default(),
        })
    }

    /// Keeps `bytes` of the disk free: with less, the storage is not available.
    pub fn with_reserve(mut self, bytes: u64) -> Self {
        self.reserve = bytes;
        self
    }

    /// Bytes of the disk that the process may still use.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.root)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Begins a file that expires at `expires_at` (Unix seconds). It is not visible before [`FileWriter::finish`].
    pub async fn create(
        &self,
        visibility: Visibility,
        expires_at: i64,
        extension: &str,
    ) -> io::Result<FileWriter> {
        let name = file_name::generate(expires_at, extension);
        let folder = self.folder(visibility, expires_at);
        let temporary = self.root.join("tmp").join(&name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .await?;
        file.set_max_buf_size(WRITE_BUFFER);
        Ok(FileWriter {
            file,
            written: 0,
            pending: Some(Pending {
                temporary,
                folder,
                name,
            }),
        })
    }

    /// The path of the file of that name. `None` if the name is not one of this storage, or has expired.
    pub fn path(&self, visibility: Visibility, name: &str, now: Millis) -> Option<PathBuf> {
        match file_name::parse(name, now) {
            NameStatus::Valid { expires_at } => {
                Some(self.folder(visibility, expires_at).join(name))
            }
            NameStatus::Invalid | NameStatus::Expired => None,
        }
    }

    /// Deletes a file before it expires. A missing file is not an error.
    pub async fn delete(&self, visibility: Visibility, name: &str) {
        if let NameStatus::Valid { expires_at } = file_name::parse(name, 0) {
            let _ = tokio::fs::remove_file(self.folder(visibility, expires_at).join(name)).await;
        }
    }

    /// The link to a public file.
    pub fn url(&self, name: &str) -> String {
        format!("{}/files/{name}", self.public_url)
    }

    /// The file name in `url`. `None` unless `url` is exactly a link that [`FileStorage::url`] makes.
    pub fn own_name(&self, url: &str) -> Option<String> {
        let name = url
            .strip_prefix(self.public_url.as_str())?
            .strip_prefix("/files/")?;
        (file_name::parse(name, 0) != NameStatus::Invalid).then(|| name.to_owned())
    }

    /// Checks that a file of 64 KiB can be written and synced to disk: on a full disk an empty one still can.
    pub async fn check_writable(&self) -> io::Result<()> {
        let probe = self.root.join("tmp").join(id::short_id("probe-"));
        let probed = tokio::task::spawn_blocking(move || {
            let written = std::fs::File::create_new(&probe).and_then(|mut file| {
                file.write_all(&[0; PROBE_BYTES])?;
                file.sync_all()
            });
            let removed = std::fs::remove_file(&probe);
            written.and(removed)
        });
        probed.await.map_err(io::Error::other)?
    }

    /// Deletes expired files, and temporary files that a crash left a day ago.
    pub async fn delete_expired(&self, now: Millis) {
        let root = self.root.clone();
        let deleted = tokio::task::spawn_blocking(move || delete_expired(&root, now / 1000)).await;
        if let Ok(Err(e)) = deleted {
            tracing::warn!(error = %e, "cannot delete expired files");
        }
    }

    fn folder(&self, visibility: Visibility, expires_at: i64) -> PathBuf {
        let folder = match visibility {
            Visibility::Public => "public",
            Visibility::Private => "private",
        };
        self.root
            .join(folder)
            .join((expires_at / HOUR_S).to_string())
    }
}

/// A file that is being written. If it is dropped before [`FileWriter::finish`], nothing remains of it.
#[derive(Debug)]
pub struct FileWriter {
    file: File,
    /// Bytes that [`FileWriter::append`] has handed to the operating system.
    written: u64,
    pending: Option<Pending>,
}

#[derive(Debug, Clone)]
struct Pending {
    temporary: PathBuf,
    folder: PathBuf,
    name: String,
}

impl FileWriter {
    /// Appends `bytes`.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// Appends `bytes` and hands them to the operating system. After an error the call may be repeated with the same bytes: what a
    /// failed one wrote is overwritten. Not to be mixed with the other ways of writing.
    pub async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let position = io::SeekFrom::Start(self.written);
        // The error of an earlier write may be reported only here: it was reported once already.
        if self.file.seek(position).await.is_err() {
            self.file.seek(position).await?;
        }
        self.file.write_all(bytes).await?;
        self.file.flush().await?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// The file as an [`AsyncWrite`].
    pub fn writer(&mut self) -> &mut (impl AsyncWrite + Unpin + Send + use<>) {
        &mut self.file
    }

    /// Flushes what was written and returns the path of the temporary file, for reading it back.
    pub async fn flush_to_path(&mut self) -> io::Result<PathBuf> {
        self.file.flush().await?;
        let pending = self.pending.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(pending.temporary.clone())
    }

    /// Syncs the file to disk, then makes it visible under its name; returns the name. After an error the call may be repeated.
    pub async fn finish(&mut self) -> io::Result<String> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        let pending = self.pending.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let Pending {
            temporary,
            folder,
            name,
        } = pending.clone();
        crash::point("blob.before_rename");
        let visible_name = name.clone();
        let moved = tokio::task::spawn_blocking(move || {
            create_folder(&folder)?;
            let visible = folder.join(&name);
            // Of a call that is repeated, the renaming may have succeeded.
            if temporary.exists() || !visible.exists() {
                std::fs::rename(&temporary, visible)?;
            }
            std::fs::File::open(&folder)?.sync_all()
        });
        moved.await.map_err(io::Error::other)??;
        self.pending = None;
        crash::point("blob.after_rename");
        Ok(visible_name)
    }

    /// Changes the file's extension before it is visible, for types that are known only from the complete content.
    pub fn set_extension(&mut self, extension: &str) {
        if let Some(pending) = &mut self.pending {
            let stem = pending.name.split('.').next().unwrap_or_default();
            pending.name = format!("{stem}.{extension}");
        }
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            let _ = std::fs::remove_file(&pending.temporary);
        }
    }
}

/// Creates a folder that only its owner can read, and syncs its parent.
fn create_folder(folder: &Path) -> io::Result<()> {
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

fn delete_expired(root: &Path, now_s: i64) -> io::Result<()> {
    for folder in ["public", "private"] {
        for hour_folder in std::fs::read_dir(root.join(folder))? {
            let hour_folder = hour_folder?;
            let hour: Option<i64> = hour_folder
                .file_name()
                .to_str()
                .and_then(|n| n.parse().ok());
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
    let oldest = SystemTime::now() - TEMPORARY_TTL;
    for file in std::fs::read_dir(root.join("tmp"))? {
        let file = file?;
        if file
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|at| at < oldest)
        {
            std::fs::remove_file(file.path())?;
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary_folder() -> PathBuf {
        std::env::temp_dir().join(id::short_id("tollgate-files-"))
    }

    #[test]
    fn only_exact_links_of_this_storage_are_recognized() {
        let base = "https://gate.example";
        let storage = FileStorage {
            root: temporary_folder(),
            public_url: base.to_owned(),
            reserve: 0,
            availability: Arc::default(),
        };
        let name = file_name::generate(1_700_000_000, "jpg");
        let url = storage.url(&name);
        assert_eq!(storage.own_name(&url).as_ref(), Some(&name));
        for other in [
            format!("{url}?x=1"),
            format!("{url}#x"),
            format!("https://gate.example.evil/files/{name}"),
            format!("{base}/files/../{name}"),
            format!("{base}/{name}"),
        ] {
            assert_eq!(storage.own_name(&other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_file_is_visible_only_when_complete() {
        let root = temporary_folder();
        let storage = FileStorage::open(&root, "https://gate.example").unwrap();
        let mut file = storage
            .create(Visibility::Public, 4_000_000_000, "png")
            .await
            .unwrap();
        file.write(b"part").await.unwrap();
        drop(file);
        assert_eq!(
            std::fs::read_dir(root.join("tmp")).unwrap().count(),
            0,
            "an abandoned file is gone"
        );

        let mut file = storage
            .create(Visibility::Public, 4_000_000_000, "bin")
            .await
            .unwrap();
        file.write(b"complete").await.unwrap();
        file.set_extension("png");
        let name = file.finish().await.unwrap();
        let path = storage.path(Visibility::Public, &name, 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"complete");
        assert!(
            !storage
                .path(Visibility::Private, &name, 0)
                .unwrap()
                .exists()
        );
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o077,
            0
        );
        assert_eq!(
            std::fs::metadata(&root).unwrap().permissions().mode() & 0o077,
            0
        );
        storage.delete(Visibility::Public, &name).await;
        assert!(!path.exists());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[tokio::test]
    async fn expired_files_are_deleted_and_no_others() {
        let root = temporary_folder();
        let storage = FileStorage::open(&root, "https://gate.example").unwrap();
        let mut kept = Vec::new();
        for expires_at in [7_300, 7_200, 7_199, 20_000] {
            let mut file = storage
                .create(Visibility::Private, expires_at, "png")
                .await
                .unwrap();
            let name = file.finish().await.unwrap();
            kept.push((
                expires_at,
                storage.path(Visibility::Private, &name, 0).unwrap(),
            ));
        }
        storage.delete_expired(7_250_000).await;
        for (expires_at, path) in kept {
            assert_eq!(path.exists(), expires_at > 7_250, "{expires_at}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
