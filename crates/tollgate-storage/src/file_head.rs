//! Reads the beginning of a file, or of a part of it.

use std::fs::File;
use std::io::{self, Read as _};

/// Reads until `buffer` is full or the file ends; returns the number of bytes.
pub(super) fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
