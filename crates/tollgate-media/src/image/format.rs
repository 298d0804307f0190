//! [`ImageFormat`] (file formats) and [`PixelSize`] (width and height).

use serde::{Deserialize, Serialize};

/// Width and height in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PixelSize {
    /// Horizontal pixels.
    pub width: u32,
    /// Vertical pixels.
    pub height: u32,
}

impl PixelSize {
    /// A size of `width` × `height` pixels.
    pub const fn new(width: u32, height: u32) -> Self {
        Self { width, height }
    }

    /// Parses two whole numbers without leading zeros: `1024x768`, `1024X768` or `1024*768`. `None` if `text` has another
    /// form.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (width, height) = text.split_once(['x', 'X', '*'])?;
        let side = |digits: &str| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
            digits.parse().ok().filter(|_| plain)
        };
        Some(Self::new(side(width)?, side(height)?))
    }

    /// Width divided by height.
    pub fn aspect_ratio(self) -> f64 {
        f64::from(self.width) / f64::from(self.height)
    }

    /// Width times height.
    pub fn pixels(self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }
}

impl std::fmt::Display for PixelSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// An image file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageFormat {
    /// `image/png`.
    Png,
    /// `image/jpeg`.
    Jpeg,
    /// `image/webp`.
    Webp,
    /// `image/gif`: input images only.
    Gif,
    /// `image/bmp`: references of wan2.7 and Seedance only.
    Bmp,
}

impl ImageFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Png, Self::Jpeg, Self::Webp, Self::Gif, Self::Bmp];

    /// The lower-case name, such as `jpeg`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpeg",
            Self::Webp => "webp",
            Self::Gif => "gif",
            Self::Bmp => "bmp",
        }
    }

    /// The media type, such as `image/jpeg`.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
            Self::Bmp => "image/bmp",
        }
    }

    /// The file name extension, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Jpeg => "jpg",
            other => other.name(),
        }
    }
}
