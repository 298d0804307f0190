//! Reads WebP headers: the first chunk, which is lossy, lossless or extended.

use std::io::{BufRead, Seek};

use super::error::{HeaderResult, ImageMetadataError};
use super::header_reader::HeaderReader;
use crate::image::format::PixelSize;

/// Continues reading after `RI`.
pub(super) fn read_header<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    let riff: [u8; 10] = header.take()?;
    if !riff.starts_with(b"FF") || !riff.ends_with(b"WEBP") {
        return Err(ImageMetadataError::NotAnImage(
            "its WebP signature is broken",
        ));
    }
    let (name, _length) = chunk(header)?;
    match &name {
        b"VP8 " => lossy(header),
        b"VP8L" => lossless(header),
        b"VP8X" => extended(header),
        _ => Err(ImageMetadataError::NotAnImage("its WebP header is broken")),
    }
}

fn chunk<R: BufRead + Seek>(
    header: &mut HeaderReader<R>,
) -> Result<([u8; 4], u32), ImageMetadataError> {
    Ok((header.take()?, u32::from_le_bytes(header.take()?)))
}

fn lossy<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    let [tag, _, _] = header.take()?;
    let is_key_frame = tag & 1 == 0;
    if !is_key_frame || header.take()? != [0x9d, 0x01, 0x2a] {
        return Err(ImageMetadataError::NotAnImage("its WebP frame is broken"));
    }
    let mut side =
        || Ok::<u32, ImageMetadataError>(u32::from(u16::from_le_bytes(header.take()?) & 0x3fff));
    Ok((PixelSize::new(side()?, side()?), false))
}

fn lossless<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    if header.byte()? != 0x2f {
        return Err(ImageMetadataError::NotAnImage("its WebP frame is broken"));
    }
    let bits = u32::from_le_bytes(header.take()?);
    let size = PixelSize::new((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1);
    Ok((size, bits & (1 << 28) != 0))
}

/// Reads the size of the canvas, provided that a frame is found among the chunks that follow.
fn extended<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    let [flags, _, _, _] = header.take()?;
    let mut side = || {
        let [low, middle, high] = header.take()?;
        Ok::<u32, ImageMetadataError>(u32::from_le_bytes([low, middle, high, 0]) + 1)
    };
    let size = PixelSize::new(side()?, side()?);
    loop {
        header.step()?;
        let (name, length) = chunk(header)?;
        if matches!(&name, b"VP8 " | b"VP8L" | b"ANMF") {
            return Ok((size, flags & 0x10 != 0));
        }
        header.skip(u64::from(length) + u64::from(length & 1))?;
    }
}
