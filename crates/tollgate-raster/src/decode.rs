//! Decodes images within limits.

use std::fs::File;
use std::io::BufReader;

use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use tollgate_media::image::{ImageFormat, PixelSize};

use crate::raster::{Raster, RasterError};

/// Maximum number of pixels of an image that is decoded.
const MAX_PIXELS: u64 = 64 * 1024 * 1024;
/// Maximum memory of a decoder in bytes: eight per pixel are 16-bit colour with alpha.
const MAX_ALLOC: u64 = MAX_PIXELS * 8;

/// Decodes a file of `format`. The orientation that a camera stored is applied.
///
/// # Errors
/// For a file that is not of that format or is damaged, and for more than 64 megapixels.
pub fn decode(file: File, format: ImageFormat) -> Result<Raster, RasterError> {
    let broken = |error: image::ImageError| RasterError(error.to_string());
    let mut reader = ImageReader::new(BufReader::new(file));
    reader.set_format(match format {
        ImageFormat::Png => image::ImageFormat::Png,
        ImageFormat::Jpeg => image::ImageFormat::Jpeg,
        ImageFormat::Webp => image::ImageFormat::WebP,
        ImageFormat::Gif => image::ImageFormat::Gif,
        ImageFormat::Bmp => image::ImageFormat::Bmp,
    });
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_ALLOC);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let size = PixelSize::new(width, height);
    if size.pixels() > MAX_PIXELS || width == 0 || height == 0 {
        return Err(RasterError(format!(
            "{size} is more than {MAX_PIXELS} pixels"
        )));
    }
    limits.reserve(decoder.total_bytes()).map_err(broken)?;
    decoder.set_limits(limits).map_err(broken)?;
    let orientation = decoder.orientation().map_err(broken)?;
    let mut decoded = DynamicImage::from_decoder(decoder).map_err(broken)?;
    // Cameras store the orientation as metadata.
    decoded.apply_orientation(orientation);
    let rgba = decoded.into_rgba8();
    Ok(Raster {
        size: PixelSize::new(rgba.width(), rgba.height()),
        rgba: rgba.into_raw(),
    })
}
