//! Checks that an image file has its end, which is missing after an interrupted transfer.

use std::io::{self, Read, Seek, SeekFrom};

use super::error::ImageMetadataError;
use crate::image::format::ImageFormat;

/// Bytes that are read at a time.
const PIECE: usize = 64 * 1024;
/// The maximum number of chunks of a PNG that are followed: longer chains of tiny chunks are not worth the time.
const MAX_PNG_CHUNKS: usize = 100_000;
/// The number of bytes at the end of a GIF that are searched for its trailer: some programs append a few bytes of their own.
const GIF_TAIL: u64 = 4_096;

/// Checks that the file of `byte_len` bytes, which begins at the start of `reader`, has its end. Bytes after the end are ignored. Nothing is decoded.
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

/// Whether the last byte of a GIF, apart from zeros behind it, is its trailer.
fn has_gif_end(reader: &mut (impl Read + Seek), byte_len: u64) -> io::Result<bool> {
    reader.seek(SeekFrom::Start(byte_len.saturating_sub(GIF_TAIL)))?;
    let mut tail = Vec::new();
    reader.take(GIF_TAIL).read_to_end(&mut tail)?;
    let last = tail.iter().rfind(|byte| **byte != 0);
    Ok(last.is_none_or(|byte| *byte == 0x3b))
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
            for cut in [file.len() / 3, 20] {
                let error = read(&file[..file.len() - cut]).unwrap_err();
                assert_eq!(error, "the file is cut off", "{format:?}");
            }
        }
    }
}
