//! Sizes: how a family's `size` and `resolution` become pixels.

mod free;
mod listed;
mod ratio;

pub use free::{FreeSizes, Scene};
pub use listed::ListedSizes;
pub use ratio::{Auto, DefaultSize, PixelsAsked, RatioSizes, Row, row};

use tollgate_core::ApiError;

use super::Draft;
use super::facts::ImageFacts;
use super::job::{PixelSize, Size};

/// The sizes that a family makes.
pub enum Sizes {
    /// `size` names a ratio; a table says its pixels, tier by tier.
    Ratios(RatioSizes),
    /// `size` is one of a list of pixel sizes.
    Listed(ListedSizes),
    /// `size` is a tier, a ratio or pixels within a range.
    Free(FreeSizes),
}

impl Sizes {
    /// The size that a request asks for, and its `size` as asked or by default.
    pub(crate) fn choose(&self, draft: &mut Draft<'_>) -> Result<(Size, String), ApiError> {
        match self {
            Self::Ratios(sizes) => sizes.choose(draft),
            Self::Listed(sizes) => sizes.choose(draft),
            Self::Free(sizes) => sizes.choose(draft),
        }
    }

    /// Fills in a size that follows a reference, if the facts of that one are known.
    pub(crate) fn follow(&self, size: &mut Size, references: &[Option<ImageFacts>]) {
        match self {
            Self::Ratios(sizes) => {
                if let Some(Some(first)) = references.first() {
                    sizes.follow(size, first.size);
                }
            }
            Self::Listed(_) => {}
            Self::Free(sizes) => {
                if let Some(Some(last)) = references.last() {
                    sizes.follow(size, last.size);
                }
            }
        }
    }
}

/// `text` as pixels: two whole numbers without leading zeros, one of `separators` between them.
pub(crate) fn parse_pixels(text: &str, separators: &[char]) -> Option<PixelSize> {
    let (width, height) = text.split_once(separators)?;
    let side = |digits: &str| {
        let plain = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
        digits.parse().ok().filter(|_| plain)
    };
    Some(PixelSize::new(side(width)?, side(height)?))
}

/// Width ÷ height of a ratio such as `16:9`.
pub(crate) fn ratio_of(text: &str) -> Option<f64> {
    let (width, height) = text.split_once(':')?;
    let part = |digits: &str| digits.parse::<u16>().ok().filter(|n| *n > 0).map(f64::from);
    Some(part(width)? / part(height)?)
}

/// Width ÷ height of a picture.
pub(crate) fn shape_of(size: PixelSize) -> f64 {
    f64::from(size.width) / f64::from(size.height)
}
