//! A file beside a SQLite database that occupies space on its disk. If the disk is so full that the database cannot be opened (which creates its
//! shared index), the file is deleted, which frees enough space.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The size of the file in bytes. The index needs 32 KiB for every 16 MiB of the write-ahead log.
const RESERVE_BYTES: usize = 4 << 20;

/// Writes the reserve of the database at `database`, if it does not exist.
pub(crate) fn ensure(database: &Path) -> io::Result<()> {
    let path = path(database);
    let is_complete = fs::metadata(&path).is_ok_and(|file| file.len() == RESERVE_BYTES as u64);
    if is_complete {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let written = options.open(&path).and_then(|mut file| {
        file.write_all(&vec![0; RESERVE_BYTES])?;
        file.sync_all()
    });
    if written.is_err() {
        // An incomplete file would be useless, and occupies space that others need.
        let _ = fs::remove_file(&path);
    }
    written
}

/// Deletes the reserve to free its space; returns whether it existed.
pub(crate) fn release(database: &Path) -> bool {
    fs::remove_file(path(database)).is_ok()
}

fn path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-reserve");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_occupies_disk_space_until_it_is_released() {
        let name = format!("tollgate-reserve-{}.db", std::process::id());
        let database = std::env::temp_dir().join(name);
        ensure(&database).unwrap();
        let length = || fs::metadata(path(&database)).map(|file| file.len());
        assert_eq!(length().unwrap(), RESERVE_BYTES as u64);
        fs::write(path(&database), b"cut off").unwrap();
        ensure(&database).unwrap();
        assert_eq!(length().unwrap(), RESERVE_BYTES as u64);
        assert!(release(&database));
        assert!(length().is_err() && !release(&database));
    }
}
