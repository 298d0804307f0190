//! A reader of headers that never leaves the file and never takes too many steps.

use std::io::{BufRead, ErrorKind, Seek};

use super::FactsError;

/// The most chunks, segments or blocks that are looked at before the picture's data.
const MAX_STEPS: u32 = 65_536;

/// A file's beginning.
pub(super) struct Head<R> {
    reader: R,
    left: u64,
    steps: u32,
}

impl<R: BufRead + Seek> Head<R> {
    /// The file of `length` bytes that starts where `reader` stands.
    pub(super) fn new(reader: R, length: u64) -> Self {
        Self {
            reader,
            left: length,
            steps: 0,
        }
    }

    /// The next `N` bytes.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], FactsError> {
        let mut bytes = [0; N];
        self.spend(N as u64)?;
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next byte.
    pub(super) fn byte(&mut self) -> Result<u8, FactsError> {
        Ok(self.take::<1>()?[0])
    }

    /// Passes over `count` bytes.
    pub(super) fn skip(&mut self, count: u64) -> Result<(), FactsError> {
        self.spend(count)?;
        let offset = i64::try_from(count).map_err(|_| ended())?;
        Ok(self.reader.seek_relative(offset)?)
    }

    /// Counts one chunk, segment or block.
    pub(super) fn step(&mut self) -> Result<(), FactsError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(FactsError::NotAnImage("its header is too long"));
        }
        Ok(())
    }

    fn spend(&mut self, count: u64) -> Result<(), FactsError> {
        self.left = self.left.checked_sub(count).ok_or_else(ended)?;
        Ok(())
    }
}

fn ended() -> FactsError {
    std::io::Error::from(ErrorKind::UnexpectedEof).into()
}
