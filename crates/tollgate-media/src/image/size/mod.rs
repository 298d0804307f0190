//! [`Sizes`]: how the fields `size` and `resolution` of an image request select a pixel size.

pub(crate) mod pixel_list;
pub(crate) mod pixel_range;
pub(crate) mod ratio_table;

use serde_json::Value;
use tollgate_core::ApiError;

use super::job::Size;
use super::metadata::ImageMetadata;
use crate::fields::draft::Draft;
use crate::fields::spec::SizeSpec;

pub use pixel_list::PixelList;
pub use pixel_range::{PixelRangeSizes, SizeMode};
pub use ratio_table::{AutoSize, DefaultSize, PixelSizes, RatioTable, Row, row};

/// The sizes that a family can generate.
pub enum Sizes {
    /// `size` is a ratio; a table has its pixel sizes by tier.
    Ratios(RatioTable),
    /// `size` is one of a list of pixel sizes.
    Listed(PixelList),
    /// `size` is a tier, a ratio, or a pixel size within a range.
    PixelRange(PixelRangeSizes),
}

impl Sizes {
    /// The size of a request, and its `size` as in [`PriceFactors`](crate::PriceFactors).
    ///
    /// # Errors
    /// 400 if `size` is not one of the family's or contradicts `resolution`.
    pub(crate) fn resolve(&self, draft: &mut Draft<'_>) -> Result<(Size, String), ApiError> {
        match self {
            Self::Ratios(sizes) => sizes.resolve(draft),
            Self::Listed(sizes) => sizes.resolve(draft),
            Self::PixelRange(sizes) => sizes.resolve(draft),
        }
    }

    /// Fills in a size that follows a reference image, if that image's metadata is known.
    pub(crate) fn fill_from_references(
        &self,
        size: &mut Size,
        references: &[Option<ImageMetadata>],
    ) {
        match self {
            Self::Ratios(sizes) => {
                if let Some(Some(first)) = references.first() {
                    sizes.fill_from_reference(size, first.size);
                }
            }
            Self::Listed(_) => {}
            Self::PixelRange(sizes) => {
                if let Some(Some(last)) = references.last() {
                    sizes.fill_from_reference(size, last.size);
                }
            }
        }
    }
}

impl SizeSpec for Sizes {
    fn tiers(&self) -> (&'static [&'static str], usize) {
        match self {
            Self::Ratios(sizes) => (sizes.tiers, sizes.default_tier),
            Self::Listed(_) | Self::PixelRange(_) => (&[], 0),
        }
    }

    fn ratios(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn default(&self) -> Option<String> {
        match self {
            Self::Ratios(sizes) => match sizes.default {
                DefaultSize::Ratio(ratio) => Some(ratio.to_owned()),
                DefaultSize::FollowReference(_) => None,
            },
            Self::Listed(sizes) => Some(sizes.default.to_string()),
            Self::PixelRange(sizes) => Some(sizes.default.to_owned()),
        }
    }

    fn schema(&self) -> Value {
        match self {
            Self::Ratios(sizes) => sizes.schema(),
            Self::Listed(sizes) => sizes.schema(),
            Self::PixelRange(sizes) => sizes.schema(),
        }
    }
}
