//! GIF: the logical screen, and whether the first picture has a transparent colour.

use std::io::{BufRead, Seek};

use super::head::Head;
use super::{FactsError, Found};
use crate::image::PixelSize;

/// Label of the extension that may name a transparent colour.
const GRAPHIC_CONTROL: u8 = 0xf9;

/// Reads on after `GI`.
pub(super) fn read<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    if !matches!(&head.take()?, b"F87a" | b"F89a") {
        return Err(FactsError::NotAnImage("its GIF signature is broken"));
    }
    let mut side = || Ok::<u32, FactsError>(u16::from_le_bytes(head.take()?).into());
    let size = PixelSize::new(side()?, side()?);
    let [flags, _background, _aspect] = head.take()?;
    if flags & 0x80 != 0 {
        head.skip(3 << ((flags & 7) + 1))?;
    }
    let mut has_alpha = false;
    loop {
        match head.byte()? {
            0x2c => return Ok((size, has_alpha)),
            0x21 => has_alpha |= extension(head)?,
            _ => return Err(FactsError::NotAnImage("its GIF data is missing")),
        }
    }
}

/// Passes over an extension; whether it names a transparent colour.
fn extension<R: BufRead + Seek>(head: &mut Head<R>) -> Result<bool, FactsError> {
    let label = head.byte()?;
    let mut transparent = false;
    loop {
        head.step()?;
        match head.byte()? {
            0 => return Ok(transparent),
            length => {
                let first = head.byte()?;
                transparent |= label == GRAPHIC_CONTROL && first & 1 != 0;
                head.skip(u64::from(length) - 1)?;
            }
        }
    }
}
