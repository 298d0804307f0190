//! Encodes images.

use bytes::Bytes;
use tollgate_media::image::ImageFormat;
use tollgate_raster::Raster;

use crate::error::{ProviderError, UpstreamErrorKind};

/// Encodes `raster` as PNG, JPEG or WebP. `quality` is 0 to 100 and applies to JPEG and WebP; `None` means 90.
///
/// # Errors
/// [`UpstreamErrorKind::Rejected`] for GIF and BMP, which can only be decoded, and if the encoder fails.
pub fn encode(
    raster: Raster,
    format: ImageFormat,
    quality: Option<u8>,
) -> Result<Bytes, ProviderError> {
    tollgate_raster::encode(raster, format, quality)
        .map_err(|error| ProviderError::new(UpstreamErrorKind::Rejected, error.to_string()))
}
