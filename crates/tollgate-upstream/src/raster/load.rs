//! Decodes reference images and masks within limits and resizes them.

use std::fs::File;
use std::io::BufReader;

use fast_image_resize::images::Image;
use fast_image_resize::{PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use tollgate_media::image::{ImageFormat, PixelSize};

use super::encode::Raster;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::InputFile;

/// Maximum number of pixels of an image that is decoded.
const MAX_PIXELS: u64 = 64 * 1024 * 1024;
/// Maximum memory of a decoder in bytes: eight per pixel are 16-bit colour with alpha.
const MAX_ALLOC: u64 = MAX_PIXELS * 8;

/// How an image is scaled to a size of another aspect ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Keeps the ratio and fills the size; what stands out is cropped evenly on both sides.
    Cover,
    /// Ignores the ratio: both sides get the requested length.
    Stretch,
    /// Keeps the ratio and fits inside the size: the result may be smaller than requested.
    Inside,
}

/// Decodes `file` and scales it to `size`. An image that already has that size keeps every pixel.
///
/// # Errors
/// [`UpstreamErrorKind::Rejected`] for a file that cannot be decoded or has more than 64 megapixels,
/// [`UpstreamErrorKind::Unavailable`] if it cannot be opened.
pub fn load(file: &InputFile, size: PixelSize, fit: Fit) -> Result<Raster, ProviderError> {
    scale(decode(file)?, size, fit, ResizeAlg::default()).map_err(|why| decode_error(file, why))
}

/// Decodes a mask and scales it to `size`: `true` for every pixel that is to be repainted, which is where the mask is fully
/// transparent.
///
/// # Errors
/// As [`load`].
pub fn load_mask(file: &InputFile, size: PixelSize) -> Result<Vec<bool>, ProviderError> {
    // Nearest neighbour: a mixture could make transparent pixels half transparent.
    let raster = scale(decode(file)?, size, Fit::Stretch, ResizeAlg::Nearest)
        .map_err(|why| decode_error(file, why))?;
    Ok(raster
        .rgba
        .chunks_exact(4)
        .map(|pixel| pixel[3] == 0)
        .collect())
}

fn decode(file: &InputFile) -> Result<Raster, ProviderError> {
    let broken = |error: image::ImageError| decode_error(file, error);
    let source = File::open(&file.path).map_err(|error| {
        // Our own storage failed, the client's file is not at fault.
        ProviderError::new(
            UpstreamErrorKind::Unavailable,
            format!("{} cannot be read: {}", file.field, error.kind()),
        )
    })?;
    let mut reader = ImageReader::new(BufReader::new(source));
    reader.set_format(match file.format {
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
        return Err(decode_error(
            file,
            format!("{size} is more than {MAX_PIXELS} pixels"),
        ));
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

fn scale(
    raster: Raster,
    size: PixelSize,
    fit: Fit,
    algorithm: ResizeAlg,
) -> Result<Raster, String> {
    let from = raster.size;
    let size = match fit {
        Fit::Inside => fit_inside(from, size),
        Fit::Cover | Fit::Stretch => size,
    };
    if from == size {
        return Ok(raster);
    }
    let options = ResizeOptions::new().resize_alg(algorithm);
    let options = match fit {
        Fit::Cover => options.fit_into_destination(None),
        Fit::Stretch | Fit::Inside => options,
    };
    let source = Image::from_vec_u8(from.width, from.height, raster.rgba, PixelType::U8x4)
        .map_err(|error| error.to_string())?;
    let mut target = Image::new(size.width, size.height, PixelType::U8x4);
    Resizer::new()
        .resize(&source, &mut target, &options)
        .map_err(|error| error.to_string())?;
    Ok(Raster {
        size,
        rgba: target.into_vec(),
    })
}

/// The largest size with `from`'s ratio within `max`.
fn fit_inside(from: PixelSize, max: PixelSize) -> PixelSize {
    let ratio = f64::from(from.width) / f64::from(from.height);
    let width = f64::from(max.width).min(f64::from(max.height) * ratio);
    PixelSize::new(
        (width.round() as u32).max(1),
        ((width / ratio).round() as u32).max(1),
    )
}

fn decode_error(file: &InputFile, why: impl std::fmt::Display) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::Rejected,
        format!(
            "{} cannot be read as {}: {why}",
            file.field,
            file.format.name()
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inside_keeps_the_ratio() {
        let max = PixelSize::new(100, 100);
        assert_eq!(
            fit_inside(PixelSize::new(400, 200), max),
            PixelSize::new(100, 50)
        );
        assert_eq!(
            fit_inside(PixelSize::new(10, 20), max),
            PixelSize::new(50, 100)
        );
        assert_eq!(
            fit_inside(PixelSize::new(8000, 1), max),
            PixelSize::new(100, 1)
        );
    }
}
