//! PNG: the `IHDR` chunk, and whether a `tRNS` chunk stands before the picture's data.

use std::io::{BufRead, Seek};

use super::head::Head;
use super::{FactsError, Found};
use crate::image::PixelSize;

/// Reads on after the first two bytes of the signature.
pub(super) fn read<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    if head.take()? != *b"NG\r\n\x1a\n" {
        return Err(FactsError::NotAnImage("its PNG signature is broken"));
    }
    if head.take()? != *b"\0\0\0\x0dIHDR" {
        return Err(FactsError::NotAnImage("its PNG header is missing"));
    }
    let size = PixelSize::new(
        u32::from_be_bytes(head.take()?),
        u32::from_be_bytes(head.take()?),
    );
    let [depth, colour, compression, filter, interlace] = head.take()?;
    let depth_ok = match colour {
        0 => matches!(depth, 1 | 2 | 4 | 8 | 16),
        3 => matches!(depth, 1 | 2 | 4 | 8),
        2 | 4 | 6 => matches!(depth, 8 | 16),
        _ => false,
    };
    let sides_ok = size.width.max(size.height) <= i32::MAX.unsigned_abs();
    if !depth_ok || !sides_ok || compression != 0 || filter != 0 || interlace > 1 {
        return Err(FactsError::NotAnImage("its PNG header is broken"));
    }
    head.skip(4)?;
    let mut has_alpha = matches!(colour, 4 | 6);
    loop {
        head.step()?;
        let length = u32::from_be_bytes(head.take()?);
        match &head.take::<4>()? {
            b"IDAT" => return Ok((size, has_alpha)),
            b"IEND" => return Err(FactsError::NotAnImage("its PNG data is missing")),
            b"tRNS" => has_alpha = true,
            _ => {}
        }
        head.skip(u64::from(length) + 4)?;
    }
}
