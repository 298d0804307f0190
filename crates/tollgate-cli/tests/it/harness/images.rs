//! Image files to send, and the decoding of received ones.

use std::io::Cursor;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use image::{DynamicImage, ImageFormat, Rgb, RgbImage, Rgba, RgbaImage};

/// A file of an image without alpha.
pub(crate) fn opaque(format: ImageFormat, width: u32, height: u32) -> Vec<u8> {
    let pixel = |x, y| Rgb([(x % 256) as u8, (y % 256) as u8, 90]);
    encode(&RgbImage::from_fn(width, height, pixel).into(), format)
}

/// A PNG without alpha.
pub(crate) fn png(width: u32, height: u32) -> Vec<u8> {
    opaque(ImageFormat::Png, width, height)
}

/// A PNG with alpha, its left half transparent: a mask.
pub(crate) fn mask(width: u32, height: u32) -> Vec<u8> {
    let pixel = |x, _| Rgba([0, 0, 0, if x < width / 2 { 0 } else { 255 }]);
    let image = RgbaImage::from_fn(width, height, pixel);
    encode(&image.into(), ImageFormat::Png)
}

fn encode(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut file = Cursor::new(Vec::new());
    image.write_to(&mut file, format).unwrap();
    file.into_inner()
}

/// A file as a data URI.
pub(crate) fn data_uri(media_type: &str, file: &[u8]) -> String {
    format!("data:{media_type};base64,{}", STANDARD.encode(file))
}

/// The format, width and height of a file, which is decoded completely.
#[track_caller]
pub(crate) fn decode(file: &[u8]) -> (ImageFormat, u32, u32) {
    let format = image::guess_format(file).expect("an image");
    let image = image::load_from_memory_with_format(file, format).expect("a complete image");
    (format, image.width(), image.height())
}
