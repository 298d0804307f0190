//! What a picture's file says of itself, read from its header alone.
//!
//! No pixel is decoded, nothing is allocated, and the number of steps is bounded, so a hostile file
//! costs no more than a good one. (The decoders of the `image` crate would do, but they keep whole
//! files or metadata chunks in memory before they tell a size.)

mod bmp;
mod gif;
mod head;
mod jpeg;
mod png;
mod webp;

use std::io::{BufRead, Seek};

use serde::{Deserialize, Serialize};

use super::job::{ImageFormat, PixelSize};
use head::Head;

/// What a picture's header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFacts {
    /// The format that its bytes have.
    pub format: ImageFormat,
    /// Its size as stored; an EXIF rotation is not applied.
    pub size: PixelSize,
    /// Whether its pixels have an alpha channel (or a transparent colour).
    pub has_alpha: bool,
    /// The file's length in bytes.
    pub bytes: u64,
}

/// Why a file is no picture. Reads as the end of the sentence "must hold an image, but …".
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// It could not be read.
    #[error("it could not be read: {0}")]
    Io(std::io::Error),
    /// It is no picture, or a broken one.
    #[error("{0}")]
    NotAnImage(&'static str),
}

impl From<std::io::Error> for FactsError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            Self::NotAnImage("the file ends too early")
        } else {
            Self::Io(error)
        }
    }
}

/// What a header parser finds: the size, and whether there is alpha.
type Found = Result<(PixelSize, bool), FactsError>;

/// Reads the facts of the picture that starts where `reader` stands and is `byte_len` bytes long.
/// JPEG, PNG, WebP, GIF and BMP are known.
pub fn read(reader: impl BufRead + Seek, byte_len: u64) -> Result<ImageFacts, FactsError> {
    let mut head = Head::new(reader, byte_len);
    let magic: [u8; 2] = head.take()?;
    let (format, (size, has_alpha)) = match magic {
        [0x89, b'P'] => (ImageFormat::Png, png::read(&mut head)?),
        [0xff, 0xd8] => (ImageFormat::Jpeg, jpeg::read(&mut head)?),
        [b'R', b'I'] => (ImageFormat::Webp, webp::read(&mut head)?),
        [b'G', b'I'] => (ImageFormat::Gif, gif::read(&mut head)?),
        [b'B', b'M'] => (ImageFormat::Bmp, bmp::read(&mut head)?),
        _ => {
            return Err(FactsError::NotAnImage(
                "its bytes are not those of a JPEG, PNG, WebP, GIF or BMP file",
            ));
        }
    };
    if size.width == 0 || size.height == 0 {
        return Err(FactsError::NotAnImage("its width or height is 0"));
    }
    Ok(ImageFacts {
        format,
        size,
        has_alpha,
        bytes: byte_len,
    })
}
