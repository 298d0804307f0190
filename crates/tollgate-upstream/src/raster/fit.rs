//! Converts reference images to a form that an upstream accepts: a file format that it supports, the size that it requires.

use std::sync::LazyLock;

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tollgate_media::image::{ImageFormat, PixelSize};
use tollgate_raster::Fit;

use super::encode::encode;
use super::load::load_scaled;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::InputFile;

/// A decoded image may take half a gigabyte: at most two are decoded at a time.
static DECODING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));
/// Offset of the colour type in a PNG file: after signature, chunk length, chunk name, size and bit depth.
const PNG_COLOUR_TYPE: usize = 25;
/// The bit of the colour type for an alpha channel.
const PNG_ALPHA_BIT: u8 = 4;
/// Quality of JPEG files for a model.
const JPEG_QUALITY: u8 = 95;

/// A reference image to send.
#[derive(Debug, Clone)]
pub(crate) enum Upload<'a> {
    /// The unchanged file on disk.
    File(&'a InputFile),
    /// A re-encoded image.
    Bytes(Bytes, ImageFormat),
}

impl Upload<'_> {
    /// The format of the bytes.
    pub(crate) fn format(&self) -> ImageFormat {
        match self {
            Self::File(file) => file.format,
            Self::Bytes(_, format) => *format,
        }
    }
}

/// `file` in one of the formats that the upstream supports: unchanged, or as PNG.
pub(crate) async fn readable<'a>(
    file: &'a InputFile,
    supported: &[ImageFormat],
) -> Result<Upload<'a>, ProviderError> {
    if supported.contains(&file.format) {
        return Ok(Upload::File(file));
    }
    reencode(file, file.size, ImageFormat::Png).await
}

/// `file` in one of the formats that the upstream supports, scaled to cover `size` and cropped.
pub(crate) async fn covering<'a>(
    file: &'a InputFile,
    size: PixelSize,
    supported: &[ImageFormat],
) -> Result<Upload<'a>, ProviderError> {
    if file.size == size {
        return readable(file, supported).await;
    }
    // Lossless files stay lossless.
    let format = match file.format {
        ImageFormat::Jpeg => ImageFormat::Jpeg,
        _ => ImageFormat::Png,
    };
    reencode(file, size, format).await
}

/// `file`, a mask, as PNG with an alpha channel. A mask whose transparency is in its palette is re-encoded.
pub(crate) async fn mask(file: &InputFile) -> Result<Upload<'_>, ProviderError> {
    if file.format == ImageFormat::Png && has_alpha(file).await {
        return Ok(Upload::File(file));
    }
    reencode(file, file.size, ImageFormat::Png).await
}

/// Whether a PNG has an alpha channel. False if it cannot be read.
async fn has_alpha(file: &InputFile) -> bool {
    let mut head = [0; PNG_COLOUR_TYPE + 1];
    let Ok(mut png) = File::open(&file.path).await else {
        return false;
    };
    let read = png.read_exact(&mut head).await;
    read.is_ok() && head[PNG_COLOUR_TYPE] & PNG_ALPHA_BIT != 0
}

async fn reencode<'a>(
    file: &InputFile,
    size: PixelSize,
    format: ImageFormat,
) -> Result<Upload<'a>, ProviderError> {
    let _permit = DECODING.acquire().await;
    let file = file.clone();
    let work = move || {
        let raster = load_scaled(&file, size, Fit::Cover)?;
        encode(raster, format, Some(JPEG_QUALITY))
    };
    let bytes = tokio::task::spawn_blocking(work).await.map_err(|_| {
        ProviderError::new(
            UpstreamErrorKind::Unavailable,
            "a reference image could not be resized",
        )
    })??;
    Ok(Upload::Bytes(bytes, format))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use image::{Rgb, RgbImage};

    use super::*;

    const READS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg];

    /// An image whose left half is red and whose right half is blue.
    fn halves(name: &str, width: u32, height: u32, format: ImageFormat) -> InputFile {
        let pixels = RgbImage::from_fn(width, height, |x, _| {
            Rgb(if x < width / 2 {
                [250, 0, 0]
            } else {
                [0, 0, 250]
            })
        });
        let name = format!("tollgate-fit-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let kind = match format {
            ImageFormat::Gif => image::ImageFormat::Gif,
            ImageFormat::Jpeg => image::ImageFormat::Jpeg,
            _ => image::ImageFormat::Png,
        };
        pixels.save_with_format(&path, kind).unwrap();
        InputFile {
            field: "image_urls[0]".into(),
            bytes: std::fs::metadata(&path).unwrap().len(),
            path,
            format,
            size: PixelSize::new(width, height),
        }
    }

    fn remove(path: &PathBuf) {
        std::fs::remove_file(path).unwrap();
    }

    #[tokio::test]
    async fn files_of_the_right_format_and_size_are_sent_as_they_are() {
        let file = halves("asis", 16, 8, ImageFormat::Jpeg);
        let upload = readable(&file, READS).await.unwrap();
        assert!(matches!(upload, Upload::File(_)));
        let upload = covering(&file, PixelSize::new(16, 8), READS).await.unwrap();
        assert!(matches!(upload, Upload::File(_)));
        remove(&file.path);
    }

    #[tokio::test]
    async fn unsupported_formats_become_png() {
        let file = halves("gif", 16, 8, ImageFormat::Gif);
        let upload = readable(&file, READS).await.unwrap();
        let Upload::Bytes(bytes, ImageFormat::Png) = upload else {
            panic!("{upload:?}");
        };
        let pixels = image::load_from_memory(&bytes).unwrap().into_rgb8();
        assert_eq!(pixels.dimensions(), (16, 8));
        assert_eq!(*pixels.get_pixel(1, 1), Rgb([250, 0, 0]));
        remove(&file.path);
    }

    #[tokio::test]
    async fn masks_get_an_alpha_channel() {
        let png = halves("mask", 8, 8, ImageFormat::Png);
        // A mask without alpha is re-encoded; one with alpha is sent unchanged.
        assert!(matches!(mask(&png).await.unwrap(), Upload::Bytes(..)));
        let clear = image::RgbaImage::from_pixel(8, 8, image::Rgba([0, 0, 0, 0]));
        clear
            .save_with_format(&png.path, image::ImageFormat::WebP)
            .unwrap();
        let file = InputFile {
            format: ImageFormat::Webp,
            ..png.clone()
        };
        let Upload::Bytes(bytes, ImageFormat::Png) = mask(&file).await.unwrap() else {
            panic!("a mask is a PNG");
        };
        assert_eq!(bytes[PNG_COLOUR_TYPE] & PNG_ALPHA_BIT, PNG_ALPHA_BIT);
        std::fs::write(&png.path, &bytes).unwrap();
        assert!(matches!(mask(&png).await.unwrap(), Upload::File(_)));
        remove(&png.path);
    }

    #[tokio::test]
    async fn an_image_of_another_ratio_is_cropped() {
        for (format, loss) in [(ImageFormat::Png, 0), (ImageFormat::Jpeg, 6)] {
            let file = halves(format.name(), 64, 16, format);
            let upload = covering(&file, PixelSize::new(32, 32), READS)
                .await
                .unwrap();
            assert_eq!(upload.format(), format);
            let Upload::Bytes(bytes, _) = upload else {
                panic!("{upload:?}");
            };
            let pixels = image::load_from_memory(&bytes).unwrap().into_rgb8();
            assert_eq!(pixels.dimensions(), (32, 32));
            let red = pixels.get_pixel(4, 16).0;
            let blue = pixels.get_pixel(27, 16).0;
            assert!(red[0] >= 250 - loss && red[2] <= loss, "{red:?}");
            assert!(blue[2] >= 250 - loss && blue[0] <= loss, "{blue:?}");
            remove(&file.path);
        }
    }
}
