//! Reads reference images and masks from disk, within limits, and brings them to size.

use std::fs::File;
use std::io::BufReader;

use fast_image_resize::images::Image;
use fast_image_resize::{PixelType, ResizeAlg, ResizeOptions, Resizer};
use image::{DynamicImage, ImageDecoder, ImageReader, Limits};
use tollgate_media::image::{ImageFormat, PixelSize};

use super::encode::Raster;
use crate::provider::{InputFile, ProviderError, ProviderErrorKind};

/// Most pixels of an image that is decoded at all.
const MAX_PIXELS: u64 = 64 * 1024 * 1024;
/// Most memory a decoder may take, in bytes: eight a pixel are 16-bit colour with alpha.
const MAX_ALLOC: u64 = MAX_PIXELS * 8;

/// How a picture is brought to a size of another ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Sides that stand out are cut off.
    Cover,
    /// Both sides are brought to size, each by itself.
    Stretch,
    /// As large as fits; the result may be smaller than asked.
    Inside,
}

/// Decodes `file` and brings it to `size`. Where it has that size already, every pixel stays as it is.
pub(crate) fn load(file: &InputFile, size: PixelSize, fit: Fit) -> Result<Raster, ProviderError> {
    scale(decode(file)?, size, fit, ResizeAlg::default()).map_err(|why| refuse(file, why))
}

/// Which pixels of a picture of `size` are to be repainted: those where the mask is fully transparent.
pub(crate) fn load_mask(file: &InputFile, size: PixelSize) -> Result<Vec<bool>, ProviderError> {
    // The nearest pixel, not a mixture: half transparent is not transparent.
    let raster = scale(decode(file)?, size, Fit::Stretch, ResizeAlg::Nearest)
        .map_err(|why| refuse(file, why))?;
    Ok(raster
        .rgba
        .chunks_exact(4)
        .map(|pixel| pixel[3] == 0)
        .collect())
}

fn decode(file: &InputFile) -> Result<Raster, ProviderError> {
    let broken = |error: image::ImageError| refuse(file, error);
    let source = File::open(&file.path).map_err(|error| {
        // Our own storage failed, not the client's picture.
        ProviderError::new(
            ProviderErrorKind::Retryable,
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
        return Err(refuse(
            file,
            format!("{size} is more than {MAX_PIXELS} pixels"),
        ));
    }
    limits.reserve(decoder.total_bytes()).map_err(broken)?;
    decoder.set_limits(limits).map_err(broken)?;
    let orientation = decoder.orientation().map_err(broken)?;
    let mut picture = DynamicImage::from_decoder(decoder).map_err(broken)?;
    // Cameras leave it to the viewer to turn the picture.
    picture.apply_orientation(orientation);
    let rgba = picture.into_rgba8();
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
        Fit::Inside => inside(from, size),
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

/// The largest size of `from`'s ratio within `room`.
fn inside(from: PixelSize, room: PixelSize) -> PixelSize {
    let ratio = f64::from(from.width) / f64::from(from.height);
    let width = f64::from(room.width).min(f64::from(room.height) * ratio);
    PixelSize::new(
        (width.round() as u32).max(1),
        ((width / ratio).round() as u32).max(1),
    )
}

fn refuse(file: &InputFile, why: impl std::fmt::Display) -> ProviderError {
    ProviderError::new(
        ProviderErrorKind::Rejected,
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
        let room = PixelSize::new(100, 100);
        assert_eq!(
            inside(PixelSize::new(400, 200), room),
            PixelSize::new(100, 50)
        );
        assert_eq!(
            inside(PixelSize::new(10, 20), room),
            PixelSize::new(50, 100)
        );
        assert_eq!(
            inside(PixelSize::new(8000, 1), room),
            PixelSize::new(100, 1)
        );
    }
}
