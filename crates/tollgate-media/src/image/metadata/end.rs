//! Checks that an image file has its end, which is missing after an interrupted transfer.

use std::io::{self, BufReader, Read, Seek, SeekFrom};

use super::error::ImageMetadataError;
use crate::image::format::ImageFormat;

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;
/// The maximum number of chunks of a PNG that are followed: longer chains of tiny chunks are not worth the time.
const MAX_PNG_CHUNKS: usize = 100_000;
/// The number of bytes at the end of a GIF that are searched for its trailer before its blocks are followed.
const GIF_TAIL: u64 = 4_096;

/// Checks that the file of `byte_len` bytes, which begins at the start of `reader`, has its end. Bytes after the end are ignored, as decoders
/// ignore them. Nothing is decoded.
///
/// # Errors
/// If reading fails, or the file is cut off.
pub(super) fn check(
    reader: &mut (impl Read + Seek),
    format: ImageFormat,
    byte_len: u64,
) -> Result<(), ImageMetadataError> {
    let mut head = [0; 8];
    reader.seek(SeekFrom::Start(0))?;
    reader.read_exact(&mut head)?;
    let declared = |at: usize| {
        let bytes = head[at..].first_chunk().copied().unwrap_or_default();
        u64::from(u32::from_le_bytes(bytes))
    };
    let is_complete = match format {
        ImageFormat::Png => has_png_end(reader, byte_len)?,
        ImageFormat::Jpeg => has_jpeg_end(reader, byte_len)?,
        ImageFormat::Gif => has_gif_end(reader, byte_len)?,
        ImageFormat::Webp => declared(4) + 8 <= byte_len,
        ImageFormat::Bmp => declared(2) <= byte_len,
    };
    if is_complete {
        Ok(())
    } else {
        Err(ImageMetadataError::NotAnImage("the file is cut off"))
    }
}

/// Whether the chunks of a PNG lead to `IEND`.
fn has_png_end(reader: &mut (impl Read + Seek), byte_len: u64) -> io::Result<bool> {
    let mut at = 8;
    for _ in 0..MAX_PNG_CHUNKS {
        if at + 12 > byte_len {
            break;
        }
        let mut chunk = [0; 8];
        reader.seek(SeekFrom::Start(at))?;
        reader.read_exact(&mut chunk)?;
        let [a, b, c, d, kind @ ..] = chunk;
        if &kind == b"IEND" {
            return Ok(true);
        }
        at += 12 + u64::from(u32::from_be_bytes([a, b, c, d]));
    }
    Ok(false)
}

/// Whether the first scan of a JPEG is followed by the marker of its end. Within the pixels, 0xff is followed by 0 or a restart marker.
fn has_jpeg_end(reader: &mut (impl Read + Seek), byte_len: u64) -> io::Result<bool> {
    let mut at = 2;
    while at + 4 <= byte_len {
        let mut segment = [0; 4];
        reader.seek(SeekFrom::Start(at))?;
        reader.read_exact(&mut segment)?;
        let [0xff, marker, a, b] = segment else { break };
        match marker {
            // A fill byte before a marker.
            0xff => at += 1,
            // The first scan.
            0xda => break,
            _ => at += 2 + u64::from(u16::from_be_bytes([a, b])),
        }
    }
    reader.seek(SeekFrom::Start(at.min(byte_len)))?;
    let mut piece = vec![0; PIECE];
    let mut last = 0;
    loop {
        let length = reader.read(&mut piece)?;
        if length == 0 {
            return Ok(false);
        }
        for byte in &piece[..length] {
            if (last, *byte) == (0xff, 0xd9) {
                return Ok(true);
            }
            last = *byte;
        }
    }
}

/// Whether a GIF has its trailer: as its last byte, apart from zeros behind it, or after its last block. True if its last [`GIF_TAIL`] bytes are
/// zeros.
fn has_gif_end(reader: &mut (impl Read + Seek), byte_len: u64) -> io::Result<bool> {
    reader.seek(SeekFrom::Start(byte_len.saturating_sub(GIF_TAIL)))?;
    let mut tail = Vec::new();
    reader.take(GIF_TAIL).read_to_end(&mut tail)?;
    let last = tail.iter().rfind(|byte| **byte != 0);
    if last.is_none_or(|byte| *byte == 0x3b) {
        return Ok(true);
    }
    reader.seek(SeekFrom::Start(0))?;
    match follow_gif_blocks(&mut BufReader::with_capacity(PIECE, reader)) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        found => found,
    }
}

/// Whether the blocks of a GIF lead to its trailer. <https://www.w3.org/Graphics/GIF/spec-gif89a.txt>
fn follow_gif_blocks(file: &mut BufReader<impl Read + Seek>) -> io::Result<bool> {
    let mut screen = [0; 13];
    file.read_exact(&mut screen)?;
    file.seek_relative(color_table_len(screen[10]))?;
    loop {
        match read_byte(file)? {
            // An extension; its label follows.
            0x21 => {
                read_byte(file)?;
            }
            // An image: descriptor, color table, size of the first code.
            0x2c => {
                let mut descriptor = [0; 9];
                file.read_exact(&mut descriptor)?;
                file.seek_relative(color_table_len(descriptor[8]))?;
                read_byte(file)?;
            }
            other => return Ok(other == 0x3b),
        }
        loop {
            match read_byte(file)? {
                0 => break,
                length => file.seek_relative(length.into())?,
            }
        }
    }
}

/// The length of the color table that `flags` announce, in bytes.
fn color_table_len(flags: u8) -> i64 {
    if flags & 0x80 == 0 {
        0
    } else {
        6 << (flags & 7)
    }
}

fn read_byte(file: &mut impl Read) -> io::Result<u8> {
    let mut byte = [0];
    file.read_exact(&mut byte)?;
    Ok(byte[0])
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use image::{ImageFormat as Encoder, RgbImage};

    use crate::image::ImageMetadata;

    #[test]
    fn a_file_without_its_end_is_rejected() {
        let pixels = RgbImage::from_fn(90, 70, |x, y| image::Rgb([x as u8 ^ 3, y as u8, 7]));
        for format in [
            Encoder::Png,
            Encoder::Jpeg,
            Encoder::Gif,
            Encoder::WebP,
            Encoder::Bmp,
        ] {
            let mut file = Cursor::new(Vec::new());
            pixels.write_to(&mut file, format).unwrap();
            let file = file.into_inner();
            let read = |file: &[u8]| {
                let metadata = ImageMetadata::read_complete(Cursor::new(file), file.len() as u64);
                metadata.map_err(|e| e.to_string())
            };
            assert!(read(&file).is_ok(), "{format:?}");
            let with_more = [&file[..], &[0; 5_000]].concat();
            assert!(read(&with_more).is_ok(), "{format:?}");
            let with_text = [&file[..], b"\n<html>"].concat();
            assert!(read(&with_text).is_ok(), "{format:?}");
            for cut in [file.len() / 3, 20] {
                let error = read(&file[..file.len() - cut]).unwrap_err();
                assert_eq!(error, "the file is cut off", "{format:?}");
            }
        }
    }
}
