//! Images that go to a provider and come from the sandbox: reference images and masks as uploads, and results.

mod fit;
mod load;

use bytes::Bytes;
use tollgate_media::image::ImageFormat;

pub(crate) use fit::{Upload, covering, mask, readable};
pub use load::{load, load_mask};
pub use tollgate_raster::{Fit, Raster};

use crate::error::{ProviderError, UpstreamErrorKind};

/// Encodes `raster` as PNG, JPEG or WebP. `quality` is 0 to 100 and applies to JPEG and WebP; `None` means 90.
///
/// # Errors
/// [`UpstreamErrorKind::Rejected`] for GIF and BMP, which are only read, and if the encoder fails.
pub fn encode(
    raster: Raster,
    format: ImageFormat,
    quality: Option<u8>,
) -> Result<Bytes, ProviderError> {
    tollgate_raster::encode(raster, format, quality)
        .map_err(|error| ProviderError::new(UpstreamErrorKind::Rejected, error.to_string()))
}
