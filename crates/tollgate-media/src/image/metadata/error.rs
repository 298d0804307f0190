//! [`ImageMetadataError`]: why the header of an image file cannot be read.

use crate::image::format::PixelSize;

/// The size in the header, and whether the image has an alpha channel.
pub(super) type HeaderResult = Result<(PixelSize, bool), ImageMetadataError>;

/// Why a file's header cannot be read. Displays as the end of the sentence "must hold an image, but …".
#[derive(Debug, thiserror::Error)]
pub enum ImageMetadataError {
    /// It could not be read.
    #[error("it could not be read: {0}")]
    Io(std::io::Error),
    /// It is not an image of a known format, or it is damaged.
    #[error("{0}")]
    NotAnImage(&'static str),
}

impl From<std::io::Error> for ImageMetadataError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            Self::NotAnImage("the file ends too early")
        } else {
            Self::Io(error)
        }
    }
}
