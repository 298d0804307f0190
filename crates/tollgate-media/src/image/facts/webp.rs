//! WebP: the first chunk, lossy, lossless or extended.

use std::io::{BufRead, Seek};

use super::head::Head;
use super::{FactsError, Found};
use crate::image::PixelSize;

/// Reads on after `RI`.
pub(super) fn read<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    let riff: [u8; 10] = head.take()?;
    if !riff.starts_with(b"FF") || !riff.ends_with(b"WEBP") {
        return Err(FactsError::NotAnImage("its WebP signature is broken"));
    }
    let (name, _length) = chunk(head)?;
    match &name {
        b"VP8 " => lossy(head),
        b"VP8L" => lossless(head),
        b"VP8X" => extended(head),
        _ => Err(FactsError::NotAnImage("its WebP header is broken")),
    }
}

fn chunk<R: BufRead + Seek>(head: &mut Head<R>) -> Result<([u8; 4], u32), FactsError> {
    Ok((head.take()?, u32::from_le_bytes(head.take()?)))
}

fn lossy<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    let [tag, _, _] = head.take()?;
    let is_key_frame = tag & 1 == 0;
    if !is_key_frame || head.take()? != [0x9d, 0x01, 0x2a] {
        return Err(FactsError::NotAnImage("its WebP frame is broken"));
    }
    let mut side = || Ok::<u32, FactsError>(u32::from(u16::from_le_bytes(head.take()?) & 0x3fff));
    Ok((PixelSize::new(side()?, side()?), false))
}

fn lossless<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    if head.byte()? != 0x2f {
        return Err(FactsError::NotAnImage("its WebP frame is broken"));
    }
    let bits = u32::from_le_bytes(head.take()?);
    let size = PixelSize::new((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1);
    Ok((size, bits & (1 << 28) != 0))
}

/// The canvas, once a frame is found among the chunks that follow.
fn extended<R: BufRead + Seek>(head: &mut Head<R>) -> Found {
    let [flags, _, _, _] = head.take()?;
    let mut side = || {
        let [low, middle, high] = head.take()?;
        Ok::<u32, FactsError>(u32::from_le_bytes([low, middle, high, 0]) + 1)
    };
    let size = PixelSize::new(side()?, side()?);
    loop {
        head.step()?;
        let (name, length) = chunk(head)?;
        if matches!(&name, b"VP8 " | b"VP8L" | b"ANMF") {
            return Ok((size, flags & 0x10 != 0));
        }
        head.skip(u64::from(length) + u64::from(length & 1))?;
    }
}
