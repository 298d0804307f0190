//! A file system in memory that the soak fills and frees again.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::output;

const CHUNK: &[u8] = &[0; 1 << 20];

/// A small file system. Dropping it unmounts it.
pub(super) struct Disk {
    folder: PathBuf,
    is_full: bool,
    is_kept: bool,
}

impl Disk {
    /// Mounts a file system of `megabytes` at `folder`, which only root may do.
    pub(super) fn create(folder: &Path, megabytes: u64) -> Result<Self, String> {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let options = format!("size={megabytes}m,mode=0700");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &options, "tmpfs"]);
        output(command.arg(folder)).map_err(|e| format!("--disk-mb needs root: {e}"))?;
        Ok(Self {
            folder: folder.to_owned(),
            is_full: false,
            is_kept: false,
        })
    }

    /// Whether [`Disk::fill`] has filled it.
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Fills the disk to its last byte.
    pub(super) fn fill(&mut self) -> Result<(), String> {
        let named = |e| format!("{}: {e}", self.folder.display());
        let mut ballast = File::create(self.ballast()).map_err(named)?;
        while ballast.write_all(CHUNK).is_ok() {}
        // Fills the remainder that is smaller than a chunk.
        while ballast.write_all(&CHUNK[..1]).is_ok() {}
        self.is_full = true;
        Ok(())
    }

    /// Frees the space that [`Disk::fill`] used.
    pub(super) fn free(&mut self) -> Result<(), String> {
        self.is_full = false;
        fs::remove_file(self.ballast()).map_err(|e| format!("{}: {e}", self.folder.display()))
    }

    /// Keeps the file system mounted when this value is dropped.
    pub(super) fn keep(&mut self) {
        self.is_kept = true;
    }

    fn ballast(&self) -> PathBuf {
        self.folder.join("ballast")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // Lazily, because a gateway may still have open files.
        let mut unmount = Command::new("umount");
        if let Err(e) = output(unmount.arg("-l").arg(&self.folder)) {
            eprintln!("{e}");
        }
    }
}
