//! Encodes pixels as PNG, JPEG or WebP.

use bytes::Bytes;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};
use jpeg_encoder::{ColorType, SamplingFactor};
use tollgate_media::image::{ImageFormat, PixelSize};

use crate::raster::{Raster, RasterError};

/// Quality of JPEG and WebP if the request sets none.
const DEFAULT_QUALITY: u8 = 90;

/// Encodes `raster` as PNG, JPEG or WebP. `quality` is 0 to 100 and applies to JPEG and WebP; `None` means 90.
///
/// # Errors
/// For GIF and BMP, which can only be decoded, and if the encoder fails: JPEG and WebP have a maximum width and height.
pub fn encode(
    raster: Raster,
    format: ImageFormat,
    quality: Option<u8>,
) -> Result<Bytes, RasterError> {
    let quality = quality.unwrap_or(DEFAULT_QUALITY).min(100);
    match format {
        ImageFormat::Png => png(raster),
        ImageFormat::Jpeg => jpeg(raster, quality),
        ImageFormat::Webp => webp(raster, quality),
        ImageFormat::Gif | ImageFormat::Bmp => Err(RasterError(format!(
            "images are encoded as png, jpeg or webp, not {}",
            format.name()
        ))),
    }
}

fn png(raster: Raster) -> Result<Bytes, RasterError> {
    let PixelSize { width, height } = raster.size;
    let mut file = Vec::new();
    // By far the fastest setting; on flat art and gradients, files are hardly larger than with the slow settings.
    let encoder =
        PngEncoder::new_with_quality(&mut file, CompressionType::Fast, FilterType::Adaptive);
    let written = if raster.is_opaque() {
        encoder.write_image(&raster.into_rgb(), width, height, ExtendedColorType::Rgb8)
    } else {
        encoder.write_image(&raster.rgba, width, height, ExtendedColorType::Rgba8)
    };
    written.map_err(broken)?;
    Ok(file.into())
}

fn jpeg(raster: Raster, quality: u8) -> Result<Bytes, RasterError> {
    let PixelSize { width, height } = raster.size;
    let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
        return Err(broken("a JPEG has at most 65535 x 65535 pixels"));
    };
    let mut file = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut file, quality.max(1));
    // Without colour subsampling, text stays sharp.
    encoder.set_sampling_factor(SamplingFactor::F_1_1);
    encoder
        .encode(&raster.into_rgb(), width, height, ColorType::Rgb)
        .map_err(broken)?;
    Ok(file.into())
}

fn webp(raster: Raster, quality: u8) -> Result<Bytes, RasterError> {
    let PixelSize { width, height } = raster.size;
    let mut config = webp::WebPConfig::new().map_err(|()| broken("no WebP configuration"))?;
    config.quality = quality.into();
    // 0 (fast) to 6 (thorough). 4 is libwebp's default: a tenth smaller, but three times slower.
    config.method = 1;
    let opaque = raster.is_opaque();
    let pixels = if opaque {
        raster.into_rgb()
    } else {
        raster.rgba
    };
    let encoder = if opaque {
        webp::Encoder::from_rgb(&pixels, width, height)
    } else {
        webp::Encoder::from_rgba(&pixels, width, height)
    };
    let file = encoder
        .encode_advanced(&config)
        .map_err(|error| broken(format!("{error:?}")))?;
    Ok(Bytes::copy_from_slice(&file))
}

fn broken(error: impl std::fmt::Display) -> RasterError {
    RasterError(format!("the image cannot be encoded: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of pixels.
    fn row(pixels: &[[u8; 4]]) -> Raster {
        let (width, height) = (pixels.len() as u32, 1);
        Raster {
            size: PixelSize { width, height },
            rgba: pixels.concat(),
        }
    }

    #[test]
    fn transparent_parts_become_white_if_the_format_has_no_alpha() {
        let pixels = [
            [0, 0, 0, 255],
            [0, 0, 0, 0],
            [0, 100, 255, 128],
            [9, 9, 9, 255],
        ];
        assert_eq!(
            row(&pixels).into_rgb(),
            [0, 0, 0, 255, 255, 255, 127, 177, 255, 9, 9, 9]
        );
        let file = encode(row(&[[0, 0, 0, 0]; 8]), ImageFormat::Jpeg, None).unwrap();
        let decoded = image::load_from_memory(&file).unwrap().to_rgb8();
        assert!(decoded.iter().all(|&value| value > 250));
    }

    #[test]
    fn alpha_is_kept_if_the_format_has_it() {
        for format in [ImageFormat::Png, ImageFormat::Webp] {
            let file = encode(row(&[[200, 0, 0, 255], [200, 0, 0, 0]]), format, Some(100)).unwrap();
            let decoded = image::load_from_memory(&file).unwrap().to_rgba8();
            let alpha: Vec<u8> = decoded.pixels().map(|pixel| pixel[3]).collect();
            assert_eq!(alpha, [255, 0], "{}", format.name());
        }
    }

    #[test]
    fn unsupported_formats_and_sizes_are_errors() {
        let gif = encode(row(&[[0; 4]]), ImageFormat::Gif, None).unwrap_err();
        assert_eq!(
            gif.to_string(),
            "images are encoded as png, jpeg or webp, not gif"
        );
        for format in [ImageFormat::Jpeg, ImageFormat::Webp] {
            let wide = encode(row(&[[0, 0, 0, 255]; 70_000]), format, None).unwrap_err();
            assert!(
                wide.to_string()
                    .starts_with("the image cannot be encoded: "),
                "{wide:?}"
            );
        }
    }
}
