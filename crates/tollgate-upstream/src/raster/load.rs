//! Loads reference images and masks from files of a client, and scales them.

use std::fs::File;

use tollgate_media::image::PixelSize;
use tollgate_raster::{Filter, Fit, Raster, RasterError};

use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::InputFile;

/// Decodes `file` and scales it to `size`. An image that already has that size keeps every pixel.
///
/// # Errors
/// [`UpstreamErrorKind::Rejected`] for a file that cannot be decoded or has more than 64 megapixels,
/// [`UpstreamErrorKind::Unavailable`] if it cannot be opened.
pub fn load_scaled(file: &InputFile, size: PixelSize, fit: Fit) -> Result<Raster, ProviderError> {
    tollgate_raster::scale(decode(file)?, size, fit, Filter::Lanczos)
        .map_err(|error| decode_error(file, &error))
}

/// Decodes a mask and scales it to `size`: `true` for every pixel that is to be repainted, which is where the mask is fully
/// transparent.
///
/// # Errors
/// As [`load_scaled`].
pub fn load_mask(file: &InputFile, size: PixelSize) -> Result<Vec<bool>, ProviderError> {
    let raster = tollgate_raster::scale(decode(file)?, size, Fit::Stretch, Filter::Nearest)
        .map_err(|error| decode_error(file, &error))?;
    Ok(raster
        .rgba
        .chunks_exact(4)
        .map(|pixel| pixel[3] == 0)
        .collect())
}

fn decode(file: &InputFile) -> Result<Raster, ProviderError> {
    let source = File::open(&file.path).map_err(|error| {
        // The gateway's own storage failed; the client's file is not at fault.
        ProviderError::new(
            UpstreamErrorKind::Unavailable,
            format!("{} cannot be read: {}", file.field, error.kind()),
        )
    })?;
    tollgate_raster::decode(source, file.format).map_err(|error| decode_error(file, &error))
}

fn decode_error(file: &InputFile, error: &RasterError) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Rejected,
        format!(
            "{} cannot be read as {}: {error}",
            file.field,
            file.format.name()
        ),
    )
}
