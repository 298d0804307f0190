//! Sizes of the families whose `size` is one of a list of pixel sizes.

use tollgate_core::ApiError;

use super::super::Draft;
use super::super::job::{PixelSize, Size};
use super::super::values::wrong;
use super::parse_pixels;

/// A list of pixel sizes.
pub struct ListedSizes {
    /// The sizes as (width, height), under the names of their groups.
    pub groups: &'static [(&'static str, &'static [(u32, u32)])],
    /// What a request without `size` gets.
    pub default: PixelSize,
}

impl ListedSizes {
    /// Every size.
    pub(crate) fn all(&self) -> impl Iterator<Item = PixelSize> {
        let groups = self.groups.iter();
        groups.flat_map(|(_, sizes)| sizes.iter().map(|(w, h)| PixelSize::new(*w, *h)))
    }

    pub(super) fn choose(&self, draft: &Draft<'_>) -> Result<(Size, String), ApiError> {
        let pixels = match draft.text("size") {
            None => self.default,
            Some(asked) => parse_pixels(asked, &['x'])
                .filter(|pixels| self.all().any(|listed| listed == *pixels))
                .ok_or_else(|| {
                    let all: Vec<String> = self.all().map(|size| size.to_string()).collect();
                    let wants = format!("one of {}", all.join(", "));
                    wrong("size", &wants, &asked.into())
                })?,
        };
        let size = Size {
            pixels: Some(pixels),
            ratio: None,
            tier: None,
        };
        Ok((size, pixels.to_string()))
    }
}
