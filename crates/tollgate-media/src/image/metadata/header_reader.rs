//! [`HeaderReader`]: reads the start of a file with bounds on bytes and steps.

use std::io::{BufRead, ErrorKind, Seek};

use super::error::ImageMetadataError;

/// The maximum number of chunks, segments and blocks that are read before the image data.
const MAX_STEPS: u32 = 65_536;

/// Reads and skips bytes from the start of a file.
pub(super) struct HeaderReader<R> {
    reader: R,
    remaining: u64,
    steps: u32,
}

impl<R: BufRead + Seek> HeaderReader<R> {
    /// A reader of the file of `length` bytes that starts at the position of `reader`.
    pub(super) fn new(reader: R, length: u64) -> Self {
        Self {
            reader,
            remaining: length,
            steps: 0,
        }
    }

    /// The next `N` bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], ImageMetadataError> {
        let mut bytes = [0; N];
        self.consume(N as u64)?;
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, ImageMetadataError> {
        Ok(self.take::<1>()?[0])
    }

    /// Skips `count` bytes.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), ImageMetadataError> {
        self.consume(count)?;
        let offset = i64::try_from(count).map_err(|_| unexpected_end())?;
        Ok(self.reader.seek_relative(offset)?)
    }

    /// Counts one chunk, segment or block.
    ///
    /// # Errors
    /// After 65,536 of them.
    pub(super) fn step(&mut self) -> Result<(), ImageMetadataError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(ImageMetadataError::NotAnImage("its header is too long"));
        }
        Ok(())
    }

    fn consume(&mut self, count: u64) -> Result<(), ImageMetadataError> {
        self.remaining = self
            .remaining
            .checked_sub(count)
            .ok_or_else(unexpected_end)?;
        Ok(())
    }
}

fn unexpected_end() -> ImageMetadataError {
    std::io::Error::from(ErrorKind::UnexpectedEof).into()
}
