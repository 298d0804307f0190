//! A file beside a SQLite database that takes up room on its disk. Where the disk is so full that the database cannot even be
//! opened (its shared index is made anew), the file is deleted, and its room is enough.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Bytes. The index takes 32 KiB for every 16 MiB of the write-ahead log.
const RESERVE_BYTES: usize = 4 << 20;

/// Writes the reserve of the database at `database`, if it is not there.
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
        // A part of it would be no use, and takes the room of others.
        let _ = fs::remove_file(&path);
    }
    written
}

/// Frees the room of the reserve; returns whether there was one.
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
    fn the_reserve_takes_room_until_it_is_released() {
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
