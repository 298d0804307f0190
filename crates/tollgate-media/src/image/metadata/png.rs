//! Reads PNG headers: the `IHDR` chunk, and whether there is a `tRNS` chunk before the image data.

use std::io::{BufRead, Seek};

use super::error::{HeaderResult, ImageMetadataError};
use super::header_reader::HeaderReader;
use crate::image::format::PixelSize;

/// Continues reading after the first two bytes of the signature.
pub(super) fn read_header<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    if header.take()? != *b"NG\r\n\x1a\n" {
        return Err(ImageMetadataError::NotAnImage(
            "its PNG signature is broken",
        ));
    }
    if header.take()? != *b"\0\0\0\x0dIHDR" {
        return Err(ImageMetadataError::NotAnImage("its PNG header is missing"));
    }
    let size = PixelSize::new(
        u32::from_be_bytes(header.take()?),
        u32::from_be_bytes(header.take()?),
    );
    let [depth, colour, compression, filter, interlace] = header.take()?;
    let depth_ok = match colour {
        0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | 4 | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    let sides_ok = size.width.max(size.height) <= i32::MAX.unsigned_abs();
    if !depth_ok || !sides_ok || compression != 0 || filter != 0 || interlace > 1 {
        return Err(ImageMetadataError::NotAnImage("its PNG header is broken"));
    }
    header.skip(4)?;
    let mut has_alpha = matches!(colour, 4 | 6);
    loop {
        header.step()?;
        let length = u32::from_be_bytes(header.take()?);
        match &header.take::<4>()? {
            b"IDAT" => return Ok((size, has_alpha)),
            b"IEND" => return Err(ImageMetadataError::NotAnImage("its PNG data is missing")),
            b"tRNS" => has_alpha = true,
            _ => {}
        }
        header.skip(u64::from(length) + 4)?;
    }
}
