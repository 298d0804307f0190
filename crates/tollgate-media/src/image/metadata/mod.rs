//! Reads format, size and alpha channel from the header of a JPEG, PNG, WebP, GIF or BMP file.
//!
//! No pixel is decoded, at most 64 KiB are allocated, and the number of steps is limited, so a hostile file costs no more than a valid one. The
//! decoders of the `image` crate keep complete files or metadata chunks in memory before they have read the size.

mod bmp;
mod end;
mod error;
mod gif;
mod header_reader;
mod jpeg;
mod png;
mod webp;

use std::io::{BufRead, Seek};

use serde::{Deserialize, Serialize};

pub use error::ImageMetadataError;
use header_reader::HeaderReader;

use super::format::{ImageFormat, PixelSize};

/// The contents of an image file's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageMetadata {
    /// The file format, detected from the bytes.
    pub format: ImageFormat,
    /// The size as stored; an EXIF rotation is not applied.
    pub size: PixelSize,
    /// Whether it has an alpha channel or a transparent colour.
    pub has_alpha: bool,
    /// The file size in bytes.
    pub bytes: u64,
}

impl ImageMetadata {
    /// [`Self::read`] of a file that begins at the start of `reader`, with a check that the file is not cut off.
    ///
    /// # Errors
    /// If reading fails, the bytes are not those of such a file, or its end is missing.
    pub fn read_complete(
        mut reader: impl BufRead + Seek,
        byte_len: u64,
    ) -> Result<Self, ImageMetadataError> {
        let metadata = Self::read(&mut reader, byte_len)?;
        end::check(&mut reader, metadata.format, byte_len)?;
        Ok(metadata)
    }

    /// Reads the header of the JPEG, PNG, WebP, GIF or BMP file that starts at the position of `reader` and is `byte_len`
    /// bytes long.
    ///
    /// # Errors
    /// If reading fails, or the bytes are not those of a complete header of such a file.
    pub fn read(reader: impl BufRead + Seek, byte_len: u64) -> Result<Self, ImageMetadataError> {
        let mut header = HeaderReader::new(reader, byte_len);
        let magic: [u8; 2] = header.take()?;
        let (format, (size, has_alpha)) = match magic {
            [0x89, b'P'] => (ImageFormat::Png, png::read_header(&mut header)?),
            [0xff, 0xd8] => (ImageFormat::Jpeg, jpeg::read_header(&mut header)?),
            [b'R', b'I'] => (ImageFormat::Webp, webp::read_header(&mut header)?),
            [b'G', b'I'] => (ImageFormat::Gif, gif::read_header(&mut header)?),
            [b'B', b'M'] => (ImageFormat::Bmp, bmp::read_header(&mut header)?),
            _ => {
                return Err(ImageMetadataError::NotAnImage(
                    "its bytes are not those of an image file",
                ));
            }
        };
        if size.width == 0 || size.height == 0 {
            return Err(ImageMetadataError::NotAnImage("its width or height is 0"));
        }
        Ok(Self {
            format,
            size,
            has_alpha,
            bytes: byte_len,
        })
    }
}
