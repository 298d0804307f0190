//! Stores results, uploads and task inputs as files whose names contain their expiry, so that serving one needs no database.
//!
//! A file is first written to a temporary file on this machine's disk and checked there. Then it becomes visible under its name, complete, or not at
//! all. Callers do not depend on where the files are stored.

use std::io::{self, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _};
use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_util::io::ReaderStream;
use tollgate_config::{Config, S3Location, ServeMode};
use tollgate_core::{Millis, id};
use tollgate_upstream::egress::Client;

use crate::file_name::{self, NameStatus};
use crate::health::Availability;
use crate::local_folder::{LocalFolder, create_folder};
use crate::pending_file::PendingFile;
pub use crate::pending_file::Visibility;
use crate::s3::{ObjectReader, S3Storage};

/// Bytes of memory that the gateway uses for a file while it is written.
const WRITE_BUFFER: usize = 128 * 1024;
/// Bytes that a probe of the storage writes.
const PROBE_BYTES: usize = 64 * 1024;
/// Temporary files older than this were left by a crash and are deleted.
const TEMPORARY_TTL: Duration = Duration::from_secs(24 * 3600);
/// Bytes of a file that are read at once, which limits the memory for a file that is served.
const READ_CHUNK: usize = 128 * 1024;

/// Where files are stored, and the URL prefix under which public files are served.
#[derive(Debug, Clone)]
pub struct FileStorage {
    /// Folder of files that are being written.
    temporary: PathBuf,
    backend: Backend,
    serve: ServeMode,
    /// The prefix of links, without a slash at its end.
    public_url: String,
    /// Bytes of the disk that are kept free.
    pub(super) reserve: u64,
    pub(super) availability: Arc<Availability>,
}

/// Where finished files are stored.
#[derive(Debug, Clone)]
enum Backend {
    Folder(LocalFolder),
    S3(S3Storage),
}

/// The purpose for which a stored file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read the complete file.
    Complete,
    /// To read a part of the file, or only its size.
    Partial,
}

impl FileStorage {
    /// Opens the storage that `config` names. Links to public files begin with `public_url`; requests to S3 are sent by `egress`.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn from_config(config: &Config, egress: &Client, public_url: &str) -> Result<Self, String> {
        let root = config.storage_dir();
        let storage = match config.storage_s3() {
            None => Self::open(&root, public_url)?,
            Some(location) => {
                let s3 = S3Storage::open(location, egress.clone())?;
                Self::with_backend(&root, public_url, |_| Ok(Backend::S3(s3)))?
            }
        };
        Ok(Self {
            serve: config.storage_serve,
            reserve: config.storage_reserve_mb * 1_048_576,
            ..storage
        })
    }

    /// Opens the folder `root`, which is created if it is missing. Links to public files begin with `public_url`.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(root: &Path, public_url: &str) -> Result<Self, String> {
        Self::with_backend(root, public_url, |root| {
            LocalFolder::open(root).map(Backend::Folder)
        })
    }

    fn with_backend(
        root: &Path,
        public_url: &str,
        open: impl FnOnce(&Path) -> io::Result<Backend>,
    ) -> Result<Self, String> {
        let failed = |e| format!("cannot use the storage folder {}: {e}", root.display());
        let temporary = root.join("tmp");
        create_folder(&temporary).map_err(failed)?;
        Ok(Self {
            temporary,
            backend: open(root).map_err(failed)?,
            serve: ServeMode::default(),
            public_url: public_url.to_owned(),
            reserve: 0,
            availability: Arc::default(),
        })
    }

    /// Bytes that the process may still use of the disk that files are written to.
    pub fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.temporary)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Creates a file that expires at `expires_at` (Unix seconds). It is not visible before [`FileWriter::finish`].
    pub async fn create(
        &self,
        visibility: Visibility,
        expires_at: i64,
        extension: &str,
    ) -> io::Result<FileWriter> {
        let name = file_name::generate(expires_at, extension);
        let temporary = self.temporary.join(&name);
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
            backend: self.backend.clone(),
            pending: Some(PendingFile {
                temporary,
                visibility,
                expires_at,
                name,
            }),
        })
    }

    /// Opens the file of that name for serving.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, it has expired, or the name is not one of this storage.
    pub async fn open_file(
        &self,
        visibility: Visibility,
        name: &str,
        access: Access,
        now: Millis,
    ) -> io::Result<OpenFile> {
        let expires_at = expiry_of(name, now)?;
        let source = match &self.backend {
            Backend::Folder(folder) => {
                let path = folder.path(visibility, expires_at, name);
                let opened = tokio::task::spawn_blocking(move || {
                    let file = std::fs::File::open(path)?;
                    let bytes = file.metadata()?.len();
                    Ok::<_, io::Error>((file, bytes))
                });
                let (file, bytes) = opened.await.map_err(io::Error::other)??;
                Source::Folder(File::from_std(file), bytes)
            }
            Backend::S3(s3) => {
                let is_complete = access == Access::Complete;
                let object = s3.open_file(visibility, name, is_complete).await?;
                Source::S3(Box::new(object))
            }
        };
        Ok(OpenFile { source })
    }

    /// Returns the file of that name on this machine's disk, for work that reads it more than once.
    ///
    /// # Errors
    /// `NotFound` if there is no such file, it has expired, or the name is not one of this storage.
    pub async fn local_copy(
        &self,
        visibility: Visibility,
        name: &str,
        now: Millis,
    ) -> io::Result<LocalCopy> {
        let expires_at = expiry_of(name, now)?;
        match &self.backend {
            Backend::Folder(folder) => {
                let path = folder.path(visibility, expires_at, name);
                match path.exists() {
                    true => Ok(LocalCopy {
                        path,
                        is_temporary: false,
                    }),
                    false => Err(io::ErrorKind::NotFound.into()),
                }
            }
            Backend::S3(s3) => {
                // The copy is deleted when this value is dropped, also if the download is cancelled.
                let copy = LocalCopy {
                    path: self.temporary.join(id::short_id("copy-")),
                    is_temporary: true,
                };
                s3.download(visibility, name, &copy.path).await?;
                Ok(copy)
            }
        }
    }

    /// Deletes a file before it expires. A missing file is not an error.
    pub async fn delete(&self, visibility: Visibility, name: &str) {
        let Ok(expires_at) = expiry_of(name, 0) else {
            return;
        };
        match &self.backend {
            Backend::Folder(folder) => {
                let path = folder.path(visibility, expires_at, name);
                let _ = tokio::fs::remove_file(path).await;
            }
            Backend::S3(s3) => {
                if let Err(error) = s3.delete(visibility, name).await {
                    tracing::warn!(%error, "cannot delete an object: it stays until it expires");
                }
            }
        }
    }

    /// The link to a public file.
    pub fn url(&self, name: &str) -> String {
        format!("{}/files/{name}", self.public_url)
    }

    /// The file name in `url`. `None` unless `url` is exactly a link that [`FileStorage::url`] returns.
    pub fn own_name(&self, url: &str) -> Option<String> {
        let name = url
            .strip_prefix(self.public_url.as_str())?
            .strip_prefix("/files/")?;
        (file_name::parse(name, 0) != NameStatus::Invalid).then(|| name.to_owned())
    }

    /// Whether clients are redirected to the bucket.
    pub fn redirects(&self) -> bool {
        self.serve == ServeMode::Redirect && matches!(self.backend, Backend::S3(_))
    }

    /// The link of the bucket to redirect a client to, which is valid for minutes and at most for `seconds_left`. `None` if the gateway itself serves
    /// files. The link is for `GET` if `is_get`, else for `HEAD`.
    pub fn redirect_link(
        &self,
        name: &str,
        is_get: bool,
        seconds_left: i64,
    ) -> io::Result<Option<String>> {
        match &self.backend {
            Backend::S3(s3) if self.redirects() => s3.link(name, is_get, seconds_left).map(Some),
            _ => Ok(None),
        }
    }

    /// Checks that a file of 64 KiB can be written and synced to disk: on a full disk an empty file can still be written. With S3, also checks that
    /// an object can be stored in the bucket and deleted.
    pub async fn check_writable(&self) -> io::Result<()> {
        let probe = self.temporary.join(id::short_id("probe-"));
        let probed = tokio::task::spawn_blocking(move || {
            let written = std::fs::File::create_new(&probe).and_then(|mut file| {
                file.write_all(&[0; PROBE_BYTES])?;
                file.sync_all()
            });
            let removed = std::fs::remove_file(&probe);
            written.and(removed)
        });
        probed.await.map_err(io::Error::other)??;
        match &self.backend {
            Backend::Folder(_) => Ok(()),
            Backend::S3(s3) => s3.check_writable().await,
        }
    }

    /// Deletes expired files in this node's folder, which other nodes may not see, and temporary files that a crash left a day ago. Deletes the
    /// expired objects of the bucket only if `and_objects`, since it is enough that one node does so.
    pub async fn delete_expired(&self, now: Millis, and_objects: bool) {
        let warn = |error: io::Error| tracing::warn!(%error, "cannot delete expired files");
        let temporary = self.temporary.clone();
        let folder = match &self.backend {
            Backend::Folder(folder) => Some(folder.clone()),
            Backend::S3(_) => None,
        };
        let deleted = tokio::task::spawn_blocking(move || {
            if let Some(folder) = folder {
                folder.delete_expired(now / 1000)?;
            }
            delete_abandoned(&temporary)
        });
        if let Ok(Err(error)) = deleted.await {
            warn(error);
        }
        if and_objects
            && let Backend::S3(s3) = &self.backend
            && let Err(error) = s3.delete_expired(now / 1000).await
        {
            warn(error);
        }
    }
}

/// Checks that an object can be stored in the bucket at `location` and deleted. Uses no folder.
///
/// # Errors
/// A sentence for the operator.
pub async fn check_bucket(location: &S3Location, egress: &Client) -> Result<(), String> {
    let bucket = S3Storage::open(location, egress.clone())?;
    bucket.check_writable().await.map_err(|e| e.to_string())
}

/// When the file of that name expires, in Unix seconds.
fn expiry_of(name: &str, now: Millis) -> io::Result<i64> {
    match file_name::parse(name, now) {
        NameStatus::Valid { expires_at } => Ok(expires_at),
        NameStatus::Invalid | NameStatus::Expired => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A stored file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    source: Source,
}

#[derive(Debug)]
enum Source {
    /// A file, and its size in bytes.
    Folder(File, u64),
    S3(Box<ObjectReader>),
}

impl OpenFile {
    /// Its size in bytes.
    pub fn bytes(&self) -> u64 {
        match &self.source {
            Source::Folder(_, bytes) => *bytes,
            Source::S3(object) => object.bytes(),
        }
    }

    /// Returns the `len` bytes from `first` on as a stream.
    pub async fn into_stream(
        self,
        first: u64,
        len: u64,
    ) -> io::Result<BoxStream<'static, io::Result<Bytes>>> {
        match self.source {
            Source::Folder(mut file, _) => {
                if first > 0 {
                    file.seek(SeekFrom::Start(first)).await?;
                }
                let chunk = usize::try_from(len).unwrap_or(READ_CHUNK);
                let chunk = chunk.clamp(1, READ_CHUNK);
                let stream = ReaderStream::with_capacity(file.take(len), chunk);
                Ok(stream.boxed())
            }
            Source::S3(mut object) => {
                object.start(first, len).await?;
                Ok(object.into_stream())
            }
        }
    }
}

/// A file on this machine's disk that is not deleted as long as this value exists.
#[derive(Debug)]
pub struct LocalCopy {
    path: PathBuf,
    /// Whether the file is deleted when this value is dropped.
    is_temporary: bool,
}

impl LocalCopy {
    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for LocalCopy {
    fn drop(&mut self) {
        if self.is_temporary {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A file that is being written. If this value is dropped before [`FileWriter::finish`], the file is deleted.
#[derive(Debug)]
pub struct FileWriter {
    file: File,
    /// Bytes that [`FileWriter::append`] has handed to the operating system.
    written: u64,
    backend: Backend,
    pending: Option<PendingFile>,
}

impl FileWriter {
    /// Appends `bytes`.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// Appends `bytes` and hands them to the operating system. After an error the call may be repeated with the same bytes: they overwrite what the
    /// failed call wrote. Do not mix this with the other methods that write.
    pub async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let position = io::SeekFrom::Start(self.written);
        // Seeking may report the error of an earlier write, which was already reported: seek again.
        if self.file.seek(position).await.is_err() {
            self.file.seek(position).await?;
        }
        self.file.write_all(bytes).await?;
        self.file.flush().await?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Returns the file as an [`AsyncWrite`].
    pub fn writer(&mut self) -> &mut (impl AsyncWrite + Unpin + Send + use<>) {
        &mut self.file
    }

    /// Flushes what was written and returns the path of the temporary file, for reading it back.
    pub async fn flush_to_path(&mut self) -> io::Result<PathBuf> {
        self.file.flush().await?;
        let pending = self.pending.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(pending.temporary.clone())
    }

    /// Stores the file, then makes it visible under its name; returns the name. After an error the call may be repeated.
    pub async fn finish(&mut self) -> io::Result<String> {
        self.file.flush().await?;
        let pending = self.pending.as_ref().ok_or(io::ErrorKind::NotFound)?;
        match &self.backend {
            Backend::Folder(folder) => folder.publish(&self.file, pending).await?,
            Backend::S3(s3) => s3.publish(pending).await?,
        }
        let name = pending.name.clone();
        self.pending = None;
        Ok(name)
    }

    /// Keeps the file on this machine only, without a name: it is deleted when the returned value is dropped.
    pub async fn finish_locally(mut self) -> io::Result<LocalCopy> {
        self.file.flush().await?;
        let pending = self.pending.take().ok_or(io::ErrorKind::NotFound)?;
        Ok(LocalCopy {
            path: pending.temporary,
            is_temporary: true,
        })
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

/// Deletes the temporary files that a crash left a day ago.
fn delete_abandoned(temporary: &Path) -> io::Result<()> {
    let oldest = SystemTime::now() - TEMPORARY_TTL;
    for file in std::fs::read_dir(temporary)? {
        let file = file?;
        let modified = file.metadata().and_then(|m| m.modified());
        if modified.is_ok_and(|at| at < oldest) {
            std::fs::remove_file(file.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
