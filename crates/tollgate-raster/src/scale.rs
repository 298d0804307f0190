//! Scales images.

use fast_image_resize::images::TypedImage;
use fast_image_resize::pixels::U8x4;
use fast_image_resize::{FilterType, ResizeAlg, ResizeOptions, Resizer};
use tollgate_media::image::PixelSize;

use crate::raster::{Raster, RasterError};

/// How an image is scaled to a size of another aspect ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Keeps the ratio and fills the size; the excess is cropped evenly on both sides.
    Cover,
    /// Ignores the ratio: both sides get the requested length.
    Stretch,
    /// Keeps the ratio and fits inside the size: the result may be smaller than requested.
    Inside,
}

/// How the pixels of a scaled image are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Lanczos with three lobes: sharp.
    Lanczos,
    /// The nearest pixel as it is, for masks: a mixture could make transparent pixels half transparent.
    Nearest,
}

/// Scales an image to `size`. One that already has that size keeps every pixel.
///
/// # Errors
/// If `raster` has fewer pixels than its size states.
pub fn scale(
    mut raster: Raster,
    size: PixelSize,
    fit: Fit,
    filter: Filter,
) -> Result<Raster, RasterError> {
    let from = raster.size;
    let size = match fit {
        Fit::Inside => fit_inside(from, size),
        Fit::Cover | Fit::Stretch => size,
    };
    if from == size {
        return Ok(raster);
    }
    let algorithm = match filter {
        Filter::Lanczos => ResizeAlg::Convolution(FilterType::Lanczos3),
        Filter::Nearest => ResizeAlg::Nearest,
    };
    let options = ResizeOptions::new().resize_alg(algorithm);
    let options = match fit {
        Fit::Cover => options.fit_into_destination(None),
        Fit::Stretch | Fit::Inside => options,
    };
    // Both of the type that the resizer uses for its own images: it is compiled for each pair of types.
    let source = TypedImage::<U8x4>::from_buffer(from.width, from.height, &mut raster.rgba)
        .map_err(|error| RasterError(error.to_string()))?;
    let mut rgba = vec![0; size.width as usize * size.height as usize * 4];
    let mut target = TypedImage::<U8x4>::from_buffer(size.width, size.height, &mut rgba)
        .map_err(|error| RasterError(error.to_string()))?;
    Resizer::new()
        .resize_typed(&source, &mut target, &options)
        .map_err(|error| RasterError(error.to_string()))?;
    Ok(Raster { size, rgba })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_inside_keeps_the_ratio() {
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
