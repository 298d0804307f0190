//! Reads BMP headers: the file header and the image header after it.

use std::io::{BufRead, Seek};

use super::error::{HeaderResult, ImageMetadataError};
use super::header_reader::HeaderReader;
use crate::image::format::PixelSize;

/// The length of the oldest image header, whose width and height fields have 16 bits.
const CORE: u32 = 12;

/// Continues reading after `BM`.
pub(super) fn read_header<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    header.skip(12)?;
    let length = u32::from_le_bytes(header.take()?);
    if length == CORE {
        let mut side = || Ok::<u32, ImageMetadataError>(u16::from_le_bytes(header.take()?).into());
        return Ok((PixelSize::new(side()?, side()?), false));
    }
    if !matches!(length, 40 | 52 | 56 | 64 | 108 | 124) {
        return Err(ImageMetadataError::NotAnImage("its BMP header is broken"));
    }
    let width = i32::from_le_bytes(header.take()?);
    let height = i32::from_le_bytes(header.take()?);
    let planes = u16::from_le_bytes(header.take()?);
    let depth = u16::from_le_bytes(header.take()?);
    if width < 0 || planes != 1 || !matches!(depth, 1 | 2 | 4 | 8 | 16 | 24 | 32) {
        return Err(ImageMetadataError::NotAnImage("its BMP header is broken"));
    }
    // A negative height means rows from top to bottom.
    let size = PixelSize::new(width.unsigned_abs(), height.unsigned_abs());
    let has_masks = matches!(length, 56 | 108 | 124);
    let has_alpha = if has_masks {
        header.skip(24 + 12)?;
        u32::from_le_bytes(header.take()?) != 0
    } else {
        false
    };
    Ok((size, has_alpha))
}
