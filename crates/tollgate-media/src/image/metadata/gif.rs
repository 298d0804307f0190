//! Reads GIF headers: the logical screen, and whether the first image has a transparent colour.

use std::io::{BufRead, Seek};

use super::error::{HeaderResult, ImageMetadataError};
use super::header_reader::HeaderReader;
use crate::image::format::PixelSize;

/// The label of the extension that may define a transparent colour.
const GRAPHIC_CONTROL: u8 = 0xf9;

/// Continues reading after `GI`.
pub(super) fn read_header<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    if !matches!(&header.take()?, b"F87a" | b"F89a") {
        return Err(ImageMetadataError::NotAnImage(
            "its GIF signature is broken",
        ));
    }
    let mut side = || Ok::<u32, ImageMetadataError>(u16::from_le_bytes(header.take()?).into());
    let size = PixelSize::new(side()?, side()?);
    let [flags, _background, _aspect] = header.take()?;
    if flags & 0x80 != 0 {
        header.skip(3 << ((flags & 7) + 1))?;
    }
    let mut has_alpha = false;
    loop {
        match header.byte()? {
            0x2c => return Ok((size, has_alpha)),
            0x21 => has_alpha |= extension(header)?,
            _ => return Err(ImageMetadataError::NotAnImage("its GIF data is missing")),
        }
    }
}

/// Skips an extension; returns whether it defines a transparent colour.
fn extension<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> Result<bool, ImageMetadataError> {
    let label = header.byte()?;
    let mut transparent = false;
    loop {
        header.step()?;
        match header.byte()? {
            0 => return Ok(transparent),
            length => {
                let first = header.byte()?;
                transparent |= label == GRAPHIC_CONTROL && first & 1 != 0;
                header.skip(u64::from(length) - 1)?;
            }
        }
    }
}
