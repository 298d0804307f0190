//! Decodes images within limits.

use std::fs::File;
use std::io::BufReader;

use image::metadata::Orientation;
use image::{ColorType, ImageDecoder, ImageReader, Limits, RgbaImage, imageops};
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
    let color = decoder.color_type();
    let mut samples = vec![0; decoder.total_bytes() as usize];
    decoder.read_image(&mut samples).map_err(broken)?;
    let rgba = to_rgba(samples, color)?;
    Ok(oriented(Raster { size, rgba }, orientation))
}

/// Converts the decoder's output to 8 bits of red, green, blue and alpha. Implemented here and not with the crate `image`, which an ordinary build
/// does not optimise.
fn to_rgba(samples: Vec<u8>, color: ColorType) -> Result<Vec<u8>, RasterError> {
    let samples = match color.bytes_per_pixel() / color.channel_count() {
        1 => samples,
        _ => to_8_bits(&samples),
    };
    Ok(match color {
        ColorType::Rgba8 | ColorType::Rgba16 => samples,
        ColorType::Rgb8 | ColorType::Rgb16 => {
            to_pixels(&samples, |[red, green, blue]| [red, green, blue, 255])
        }
        ColorType::L8 | ColorType::L16 => to_pixels(&samples, |[grey]| [grey, grey, grey, 255]),
        ColorType::La8 | ColorType::La16 => {
            to_pixels(&samples, |[grey, alpha]| [grey, grey, grey, alpha])
        }
        _ => {
            return Err(RasterError(format!(
                "pixels of type {color:?} are not read"
            )));
        }
    })
}

/// Rounds samples of 16 bits, in the byte order of this machine, to 8.
fn to_8_bits(samples: &[u8]) -> Vec<u8> {
    let (samples, _) = samples.as_chunks::<2>();
    let mut rounded = vec![0; samples.len()];
    for (to, from) in rounded.iter_mut().zip(samples) {
        // 65,535 / 257 is 255.
        *to = ((u32::from(u16::from_ne_bytes(*from)) + 128) / 257) as u8;
    }
    rounded
}

fn to_pixels<const N: usize>(samples: &[u8], pixel: impl Fn([u8; N]) -> [u8; 4]) -> Vec<u8> {
    let (samples, _) = samples.as_chunks::<N>();
    let mut rgba = vec![0; samples.len() * 4];
    for (to, from) in rgba.as_chunks_mut::<4>().0.iter_mut().zip(samples) {
        *to = pixel(*from);
    }
    rgba
}

/// Rotates and mirrors an image by the orientation that its camera stored.
fn oriented(raster: Raster, orientation: Orientation) -> Raster {
    let PixelSize { width, height } = raster.size;
    let Some(mut image) = RgbaImage::from_raw(width, height, raster.rgba) else {
        unreachable!("four bytes per pixel");
    };
    match orientation {
        Orientation::NoTransforms => {}
        Orientation::FlipHorizontal => imageops::flip_horizontal_in_place(&mut image),
        Orientation::FlipVertical => imageops::flip_vertical_in_place(&mut image),
        Orientation::Rotate180 => imageops::rotate180_in_place(&mut image),
        Orientation::Rotate90 => image = imageops::rotate90(&image),
        Orientation::Rotate270 => image = imageops::rotate270(&image),
        Orientation::Rotate90FlipH => {
            image = imageops::rotate90(&image);
            imageops::flip_horizontal_in_place(&mut image);
        }
        Orientation::Rotate270FlipH => {
            image = imageops::rotate270(&image);
            imageops::flip_horizontal_in_place(&mut image);
        }
    }
    Raster {
        size: PixelSize::new(image.width(), image.height()),
        rgba: image.into_raw(),
    }
}

#[cfg(test)]
mod tests {
    use image::DynamicImage;

    use super::*;

    #[test]
    fn every_colour_type_is_converted_to_rgba() {
        let wide = |values: &[u16]| {
            values
                .iter()
                .flat_map(|value| value.to_ne_bytes())
                .collect()
        };
        let cases: [(ColorType, Vec<u8>, [u8; 4]); 8] = [
            (ColorType::L8, vec![7], [7, 7, 7, 255]),
            (ColorType::La8, vec![7, 8], [7, 7, 7, 8]),
            (ColorType::Rgb8, vec![1, 2, 3], [1, 2, 3, 255]),
            (ColorType::Rgba8, vec![1, 2, 3, 4], [1, 2, 3, 4]),
            (ColorType::L16, wide(&[257 * 7]), [7, 7, 7, 255]),
            (ColorType::La16, wide(&[128, 129]), [0, 0, 0, 1]),
            (ColorType::Rgb16, wide(&[0, 65_535, 257]), [0, 255, 1, 255]),
            (
                ColorType::Rgba16,
                wide(&[257, 514, 771, 1028]),
                [1, 2, 3, 4],
            ),
        ];
        for (color, samples, pixel) in cases {
            assert_eq!(to_rgba(samples, color).unwrap(), pixel, "{color:?}");
        }
        to_rgba(vec![0; 12], ColorType::Rgb32F).unwrap_err();
    }

    #[test]
    fn every_exif_orientation_is_applied() {
        let rgba: Vec<u8> = (0..24).collect();
        for value in 1..=8 {
            let orientation = Orientation::from_exif(value).unwrap();
            let size = PixelSize::new(3, 2);
            let raster = Raster {
                size,
                rgba: rgba.clone(),
            };
            let turned = oriented(raster, orientation);
            let mut expected = DynamicImage::from(RgbaImage::from_raw(3, 2, rgba.clone()).unwrap());
            expected.apply_orientation(orientation);
            assert_eq!(turned.size.width, expected.width(), "{value}");
            assert_eq!(turned.rgba, expected.into_bytes(), "{value}");
        }
    }
}
