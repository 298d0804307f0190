//! [`PixelList`]: sizes of the families whose `size` is one of a list of pixel sizes.

use serde_json::{Value, json};
use tollgate_core::ApiError;

use crate::fields::draft::Draft;
use crate::image::format::PixelSize;
use crate::image::job::Size;
use crate::text::invalid_value;

/// A list of pixel sizes.
pub struct PixelList {
    /// Groups of (width, height), each with its name for the docs page.
    pub groups: &'static [(&'static str, &'static [(u32, u32)])],
    /// The size of a request without `size`.
    pub default: PixelSize,
}

impl PixelList {
    /// The JSON Schema of `size`.
    pub(super) fn schema(&self) -> Value {
        let all: Vec<String> = self.all().map(|size| size.to_string()).collect();
        json!({ "type": "string", "enum": all })
    }

    /// Every size.
    pub(crate) fn all(&self) -> impl Iterator<Item = PixelSize> {
        let groups = self.groups.iter();
        groups.flat_map(|(_, sizes)| sizes.iter().map(|(w, h)| PixelSize::new(*w, *h)))
    }

    pub(super) fn resolve(&self, draft: &Draft<'_>) -> Result<(Size, String), ApiError> {
        let pixels = match draft.text("size") {
            None => self.default,
            Some(requested) => PixelSize::parse(requested)
                .filter(|pixels| self.all().any(|listed| listed == *pixels))
                .ok_or_else(|| {
                    let all: Vec<String> = self.all().map(|size| size.to_string()).collect();
                    let allowed = format!("one of {}", all.join(", "));
                    invalid_value("size", &allowed, &requested.into())
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
