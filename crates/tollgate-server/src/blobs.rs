//! Files: results, uploads and inputs in a folder, under names that carry their own end.
//!
//! A name is 7 base-32 digits of the second it expires in, 26 random ones, and an ending. So serving needs no
//! database: a name past its time is gone, and cleaning goes by folder of the hour. A file appears under its
//! name whole and on disk, or not at all.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tokio::fs::{File, OpenOptions};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tollgate_core::{Millis, crash, id};
use tollgate_media::image::ImageFormat;

use crate::file_type;

const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const EXPIRY_DIGITS: usize = 7;
const RANDOM_DIGITS: usize = 26;
/// What a file takes in memory while it is written.
const WRITE_BUFFER: usize = 128 * 1024;
/// Temporary files older than this were left by a crash.
const STALE: Duration = Duration::from_secs(24 * 3600);
const HOUR_S: i64 = 3600;

/// Who may see a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shelf {
    /// Everybody who knows its name, under `/files`: results and uploads.
    Public,
    /// Only this gateway: references of a task.
    Private,
}

/// What a name says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// It is no name of ours.
    Foreign,
    /// It ended before now.
    Expired,
    /// It is good until then, in Unix seconds.
    Until(i64),
}

/// The folder of files.
#[derive(Debug, Clone)]
pub struct Blobs {
    root: PathBuf,
}

impl Blobs {
    /// Files under `root`, which is made if it is not there.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn open(root: &Path) -> Result<Self, String> {
        for folder in ["tmp", "public", "private"] {
            make_folder(&root.join(folder))
                .map_err(|e| format!("cannot use the storage folder {}: {e}", root.display()))?;
        }
        Ok(Self {
            root: root.to_owned(),
        })
    }

    /// Begins a file that ends at `expires_at` (Unix seconds). Nothing shows before [`BlobWriter::finish`].
    pub async fn create(
        &self,
        shelf: Shelf,
        expires_at: i64,
        extension: &str,
    ) -> io::Result<BlobWriter> {
        let name = new_name(expires_at, extension);
        let folder = self.folder(shelf, expires_at);
        let temporary = self.root.join("tmp").join(&name);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .await?;
        file.set_max_buf_size(WRITE_BUFFER);
        Ok(BlobWriter {
            file,
            pending: Some(Pending {
                temporary,
                folder,
                name,
            }),
        })
    }

    /// Where the file of that name is, if the name is ours and not past its time.
    pub fn path(&self, shelf: Shelf, name: &str, now: Millis) -> Option<PathBuf> {
        match naming(name, now) {
            Naming::Until(expires_at) => Some(self.folder(shelf, expires_at).join(name)),
            Naming::Foreign | Naming::Expired => None,
        }
    }

    /// Deletes a file before its time. One that is not there is no error.
    pub async fn delete(&self, shelf: Shelf, name: &str) {
        if let Naming::Until(expires_at) = naming(name, 0) {
            let _ = tokio::fs::remove_file(self.folder(shelf, expires_at).join(name)).await;
        }
    }

    /// The link to a public file.
    pub fn url(&self, public_url: &str, name: &str) -> String {
        format!("{public_url}/files/{name}")
    }

    /// The name in `url`, if `url` is exactly a link that [`Blobs::url`] makes.
    pub fn own_name(&self, public_url: &str, url: &str) -> Option<String> {
        let name = url.strip_prefix(public_url)?.strip_prefix("/files/")?;
        (naming(name, 0) != Naming::Foreign).then(|| name.to_owned())
    }

    /// Whether files can be written.
    pub async fn check(&self) -> io::Result<()> {
        let probe = self.root.join("tmp").join(id::short_id("probe-"));
        tokio::fs::write(&probe, b"").await?;
        tokio::fs::remove_file(&probe).await
    }

    /// Deletes what is past its time, and what a crash left half-written a day ago.
    pub async fn sweep(&self, now: Millis) {
        let root = self.root.clone();
        let swept = tokio::task::spawn_blocking(move || sweep(&root, now / 1000)).await;
        if let Ok(Err(e)) = swept {
            tracing::warn!(error = %e, "cannot delete expired files");
        }
    }

    fn folder(&self, shelf: Shelf, expires_at: i64) -> PathBuf {
        let shelf = match shelf {
            Shelf::Public => "public",
            Shelf::Private => "private",
        };
        self.root
            .join(shelf)
            .join((expires_at / HOUR_S).to_string())
    }
}

/// A file that is being written. Dropped before [`BlobWriter::finish`], it leaves nothing.
#[derive(Debug)]
pub struct BlobWriter {
    file: File,
    pending: Option<Pending>,
}

#[derive(Debug)]
struct Pending {
    temporary: PathBuf,
    folder: PathBuf,
    name: String,
}

impl BlobWriter {
    /// Appends `bytes`.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes).await
    }

    /// The file as something to write to.
    pub fn sink(&mut self) -> &mut (impl AsyncWrite + Unpin + Send + use<>) {
        &mut self.file
    }

    /// The file as it stands so far, for looking at its first bytes.
    pub async fn so_far(&mut self) -> io::Result<PathBuf> {
        self.file.flush().await?;
        let pending = self.pending.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(pending.temporary.clone())
    }

    /// Makes the file durable, then visible under its name; answers the name.
    pub async fn finish(mut self) -> io::Result<String> {
        self.file.flush().await?;
        self.file.sync_all().await?;
        let Some(Pending {
            temporary,
            folder,
            name,
        }) = self.pending.take()
        else {
            return Err(io::ErrorKind::NotFound.into());
        };
        crash::point("blob.before_rename");
        let shown = name.clone();
        let moved = tokio::task::spawn_blocking(move || {
            make_folder(&folder)?;
            std::fs::rename(&temporary, folder.join(&name))?;
            std::fs::File::open(&folder)?.sync_all()
        });
        moved.await.map_err(io::Error::other)??;
        crash::point("blob.after_rename");
        Ok(shown)
    }

    /// Renames the ending before the file is shown: for types that are known only when all has come.
    pub fn set_extension(&mut self, extension: &str) {
        if let Some(pending) = &mut self.pending {
            let stem = pending.name.split('.').next().unwrap_or_default();
            pending.name = format!("{stem}.{extension}");
        }
    }
}

impl Drop for BlobWriter {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            let _ = std::fs::remove_file(&pending.temporary);
        }
    }
}

/// What `name` says of itself at `now`.
pub fn naming(name: &str, now: Millis) -> Naming {
    let Some((stem, extension)) = name.split_once('.') else {
        return Naming::Foreign;
    };
    let digits =
        stem.len() == EXPIRY_DIGITS + RANDOM_DIGITS && stem.bytes().all(|b| BASE32.contains(&b));
    if !digits || media_type(extension).is_none() {
        return Naming::Foreign;
    }
    let expires_at = stem.bytes().take(EXPIRY_DIGITS).fold(0, |n, b| {
        let digit = BASE32.iter().position(|c| *c == b).unwrap_or_default();
        n * 32 + digit as i64
    });
    if expires_at * 1000 <= now {
        Naming::Expired
    } else {
        Naming::Until(expires_at)
    }
}

/// The media type of files with that ending; none for endings that we do not make.
pub fn media_type(extension: &str) -> Option<&'static str> {
    const UNKNOWN: &str = "bin";
    if extension == UNKNOWN {
        return Some("application/octet-stream");
    }
    let mut formats = ImageFormat::ALL.into_iter();
    let picture = formats.find(|f| f.extension() == extension);
    picture
        .map(ImageFormat::media_type)
        .or_else(|| file_type::media_type(extension))
}

/// The media type of the file of that name, which is ours.
pub fn media_type_of(name: &str) -> &'static str {
    let extension = name.rsplit('.').next().unwrap_or_default();
    media_type(extension).unwrap_or("application/octet-stream")
}

fn new_name(expires_at: i64, extension: &str) -> String {
    let expires_at = expires_at.clamp(0, (1 << (5 * EXPIRY_DIGITS)) - 1);
    let mut name = String::with_capacity(40);
    for place in (0..EXPIRY_DIGITS).rev() {
        let digit = usize::try_from(expires_at >> (5 * place) & 31).unwrap_or_default();
        name.push(char::from(BASE32[digit]));
    }
    name.push_str(&id::file_name());
    name.push('.');
    name.push_str(extension);
    name
}

/// Makes a folder for its owner alone, durably.
fn make_folder(folder: &Path) -> io::Result<()> {
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

fn sweep(root: &Path, now_s: i64) -> io::Result<()> {
    for shelf in ["public", "private"] {
        for bucket in std::fs::read_dir(root.join(shelf))? {
            let bucket = bucket?;
            let hour: Option<i64> = bucket.file_name().to_str().and_then(|n| n.parse().ok());
            match hour {
                Some(hour) if (hour + 1) * HOUR_S <= now_s => {
                    std::fs::remove_dir_all(bucket.path())?
                }
                Some(hour) if hour * HOUR_S <= now_s => sweep_bucket(&bucket.path(), now_s)?,
                _ => {}
            }
        }
    }
    let stale = SystemTime::now() - STALE;
    for left in std::fs::read_dir(root.join("tmp"))? {
        let left = left?;
        if left
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|at| at < stale)
        {
            std::fs::remove_file(left.path())?;
        }
    }
    Ok(())
}

fn sweep_bucket(bucket: &Path, now_s: i64) -> io::Result<()> {
    for file in std::fs::read_dir(bucket)? {
        let file = file?;
        let name = file.file_name();
        if name
            .to_str()
            .is_some_and(|n| naming(n, now_s * 1000) == Naming::Expired)
        {
            std::fs::remove_file(file.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        std::env::temp_dir().join(id::short_id("tollgate-blobs-"))
    }

    #[test]
    fn names_carry_their_end() {
        let name = new_name(1_700_000_000, "png");
        assert_eq!(
            naming(&name, 1_699_999_999_999),
            Naming::Until(1_700_000_000)
        );
        assert_eq!(naming(&name, 1_700_000_000_000), Naming::Expired);
        let good = name.strip_suffix(".png").unwrap();
        for bad in [
            "",
            ".png",
            "../x.png",
            "x.png",
            "..%2f.png",
            &format!("{good}.exe"),
            &format!("{good}.png/"),
            good,
        ] {
            assert_eq!(naming(bad, 0), Naming::Foreign, "{bad}");
        }
        assert_eq!(
            naming(&format!("{}.png", good.to_uppercase()), 0),
            Naming::Foreign
        );
    }

    #[test]
    fn own_links_are_recognised_exactly() {
        let blobs = Blobs { root: folder() };
        let name = new_name(1_700_000_000, "jpg");
        let base = "https://gate.example";
        let url = blobs.url(base, &name);
        assert_eq!(blobs.own_name(base, &url).as_ref(), Some(&name));
        for other in [
            format!("{url}?x=1"),
            format!("{url}#x"),
            format!("https://gate.example.evil/files/{name}"),
            format!("{base}/files/../{name}"),
            format!("{base}/{name}"),
        ] {
            assert_eq!(blobs.own_name(base, &other), None, "{other}");
        }
    }

    #[tokio::test]
    async fn a_file_shows_whole_or_not_at_all() {
        let root = folder();
        let blobs = Blobs::open(&root).unwrap();
        let mut file = blobs
            .create(Shelf::Public, 4_000_000_000, "png")
            .await
            .unwrap();
        file.write(b"half").await.unwrap();
        drop(file);
        assert_eq!(
            std::fs::read_dir(root.join("tmp")).unwrap().count(),
            0,
            "an abandoned file is gone"
        );

        let mut file = blobs
            .create(Shelf::Public, 4_000_000_000, "bin")
            .await
            .unwrap();
        file.write(b"whole").await.unwrap();
        file.set_extension("png");
        let name = file.finish().await.unwrap();
        let path = blobs.path(Shelf::Public, &name, 0).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert!(!blobs.path(Shelf::Private, &name, 0).unwrap().exists());
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o077,
            0
        );
        assert_eq!(
            std::fs::metadata(&root).unwrap().permissions().mode() & 0o077,
            0
        );
        blobs.delete(Shelf::Public, &name).await;
        assert!(!path.exists());
        std::fs::remove_dir_all(&root).unwrap();
    }

    #[tokio::test]
    async fn sweeping_takes_what_is_past_its_time() {
        let root = folder();
        let blobs = Blobs::open(&root).unwrap();
        let mut kept = Vec::new();
        for expires_at in [7_300, 7_200, 7_199, 20_000] {
            let file = blobs
                .create(Shelf::Private, expires_at, "png")
                .await
                .unwrap();
            let name = file.finish().await.unwrap();
            kept.push((expires_at, blobs.path(Shelf::Private, &name, 0).unwrap()));
        }
        blobs.sweep(7_250_000).await;
        for (expires_at, path) in kept {
            assert_eq!(path.exists(), expires_at > 7_250, "{expires_at}");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
