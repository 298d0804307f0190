//! JPEG: the segments up to the first scan, one of which states the frame's size.

use std::io::{BufRead, Seek};

use super::head::Head;
use super::{FactsError, Found};
use crate::image::PixelSize;

/// Start of scan: the picture's data follows.
const SOS: u8 = 0xda;
/// End of image.
const EOI: u8 = 0xd9;

/// Reads on after the start-of-image marker.
pub(super) fn read<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    let mut size = None;
    loop {
        head.step()?;
        match (marker(head)?, size) {
            (SOS, Some(size)) => return Ok((size, false)),
            (SOS | EOI, _) => return Err(FactsError::NotAnImage("its JPEG frame is missing")),
            (0x01 | 0xd0..=0xd8, _) => {
                return Err(FactsError::NotAnImage("its JPEG segments are broken"));
            }
            (marker, _) => {
                let length = u64::from(u16::from_be_bytes(head.take()?));
                let body = length
                    .checked_sub(2)
                    .ok_or(FactsError::NotAnImage("its JPEG segments are broken"))?;
                if is_frame(marker) && body >= 6 {
                    size = Some(frame(head)?);
                    head.skip(body - 5)?;
                } else {
                    head.skip(body)?;
                }
            }
        }
    }
}

/// The next marker's code; any number of `0xff` may precede it.
fn marker<R: BufRead + Seek>(head: &mut Head<R>) -> Result<u8, FactsError> {
    if head.byte()? != 0xff {
        return Err(FactsError::NotAnImage("its JPEG segments are broken"));
    }
    loop {
        head.step()?;
        match head.byte()? {
            0xff => {}
            code => return Ok(code),
        }
    }
}

/// Whether a marker starts a frame: all of `0xc0..=0xcf` but the tables DHT, JPG and DAC.
fn is_frame(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

fn frame<R: BufRead + Seek>(head: &mut Head<R>) -> Result<PixelSize, FactsError> {
    let _precision = head.byte()?;
    let height = u16::from_be_bytes(head.take()?);
    let width = u16::from_be_bytes(head.take()?);
    Ok(PixelSize::new(width.into(), height.into()))
}
