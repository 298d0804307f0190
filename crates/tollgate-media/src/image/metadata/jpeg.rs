//! Reads JPEG headers: the segments up to the first scan, one of which contains the frame's size.

use std::io::{BufRead, Seek};

use super::error::{HeaderResult, ImageMetadataError};
use super::header_reader::HeaderReader;
use crate::image::format::PixelSize;

/// Start of scan: the image data follows.
const SOS: u8 = 0xda;
/// End of image.
const EOI: u8 = 0xd9;

/// Continues reading after the start-of-image marker.
pub(super) fn read_header<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> HeaderResult {
    let mut size = None;
    loop {
        header.step()?;
        match (marker(header)?, size) {
            (SOS, Some(size)) => return Ok((size, false)),
            (SOS | EOI, _) => {
                return Err(ImageMetadataError::NotAnImage("its JPEG frame is missing"));
            }
            (0x01 | 0xd0..=0xd8, _) => {
                return Err(ImageMetadataError::NotAnImage(
                    "its JPEG segments are broken",
                ));
            }
            (marker, _) => {
                let length = u64::from(u16::from_be_bytes(header.take()?));
                let body = length.checked_sub(2).ok_or(ImageMetadataError::NotAnImage(
                    "its JPEG segments are broken",
                ))?;
                if is_frame(marker) && body >= 6 {
                    size = Some(frame(header)?);
                    header.skip(body - 5)?;
                } else {
                    header.skip(body)?;
                }
            }
        }
    }
}

/// The next marker's code; any number of `0xff` may precede it.
fn marker<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> Result<u8, ImageMetadataError> {
    if header.byte()? != 0xff {
        return Err(ImageMetadataError::NotAnImage(
            "its JPEG segments are broken",
        ));
    }
    loop {
        header.step()?;
        match header.byte()? {
            0xff => {}
            code => return Ok(code),
        }
    }
}

/// Whether a marker starts a frame: all of `0xc0..=0xcf` except the tables DHT, JPG and DAC.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

fn frame<R: BufRead + Seek>(header: &mut HeaderReader<R>) -> Result<PixelSize, ImageMetadataError> {
    let _precision = header.byte()?;
    let height = u16::from_be_bytes(header.take()?);
    let width = u16::from_be_bytes(header.take()?);
    Ok(PixelSize::new(width.into(), height.into()))
}
