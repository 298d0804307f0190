//! BMP: the file header and the picture header behind it.

use std::io::{BufRead, Seek};

use super::head::Head;
use super::{FactsError, Found};
use crate::image::PixelSize;

/// Length of the oldest picture header, whose sides are 16 bits wide.
const CORE: u32 = 12;

/// Reads on after `BM`.
pub(super) fn read<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    head.skip(12)?;
    let length = u32::from_le_bytes(head.take()?);
    if length == CORE {
        let mut side = || Ok::<u32, FactsError>(u16::from_le_bytes(head.take()?).into());
        return Ok((PixelSize::new(side()?, side()?), false));
    }
    if !matches!(length, 40 | 52 | 56 | 64 | 108 | 124) {
        return Err(FactsError::NotAnImage("its BMP header is broken"));
    }
    let width = i32::from_le_bytes(head.take()?);
    let height = i32::from_le_bytes(head.take()?);
    let planes = u16::from_le_bytes(head.take()?);
    let depth = u16::from_le_bytes(head.take()?);
    if width < 0 || planes != 1 || !matches!(depth, 1 | 2 | 4 | 8 | 16 | 24 | 32) {
        return Err(FactsError::NotAnImage("its BMP header is broken"));
    }
    // A negative height means rows from top to bottom.
    let size = PixelSize::new(width.unsigned_abs(), height.unsigned_abs());
    let has_masks = matches!(length, 56 | 108 | 124);
    let has_alpha = if has_masks {
        head.skip(24 + 12)?;
        u32::from_le_bytes(head.take()?) != 0
    } else {
        false
    };
    Ok((size, has_alpha))
}
