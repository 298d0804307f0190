//! Reference pictures as an upstream takes them: in a file format that it reads, of the very size that it wants.

use std::sync::LazyLock;

use bytes::Bytes;
use tokio::fs::File;
use tokio::io::AsyncReadExt as _;
use tokio::sync::Semaphore;
use tollgate_media::image::{ImageFormat, PixelSize};

use super::{Fit, encode, load};
use crate::provider::{InputFile, ProviderError, ProviderErrorKind};

/// A decoded picture may take half a gigabyte: no more than two at a time.
static DECODING: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(2));
/// Where a PNG says what kind of colour it has: behind signature, length, name, size and depth.
const PNG_COLOUR: usize = 25;
/// The bit for alpha in it.
const PNG_ALPHA: u8 = 4;
/// JPEG files that a model will look at again.
const QUALITY: u8 = 95;

/// A reference picture to send.
#[derive(Debug, Clone)]
pub(crate) enum Upload<'a> {
    /// As it is on disk.
    File(&'a InputFile),
    /// Written anew.
    Bytes(Bytes, ImageFormat),
}

impl Upload<'_> {
    /// What its bytes are.
    pub(crate) fn format(&self) -> ImageFormat {
        match self {
            Self::File(file) => file.format,
            Self::Bytes(_, format) => *format,
        }
    }
}

/// `file` in one of the formats that the upstream reads: as it is, or as PNG.
pub(crate) async fn readable<'a>(
    file: &'a InputFile,
    reads: &[ImageFormat],
) -> Result<Upload<'a>, ProviderError> {
    if reads.contains(&file.format) {
        return Ok(Upload::File(file));
    }
    rewritten(file, file.size, ImageFormat::Png).await
}

/// `file` in one of the formats that the upstream reads, scaled to cover `size`, with what stands out cut off.
pub(crate) async fn covering<'a>(
    file: &'a InputFile,
    size: PixelSize,
    reads: &[ImageFormat],
) -> Result<Upload<'a>, ProviderError> {
    if file.size == size {
        return readable(file, reads).await;
    }
    // What comes without loss is sent without loss.
    let format = match file.format {
        ImageFormat::Jpeg => ImageFormat::Jpeg,
        _ => ImageFormat::Png,
    };
    rewritten(file, size, format).await
}

/// `file`, a mask, as PNG with an alpha channel of its own: one whose transparency is a palette's is written anew.
pub(crate) async fn mask(file: &InputFile) -> Result<Upload<'_>, ProviderError> {
    if file.format == ImageFormat::Png && has_alpha(file).await {
        return Ok(Upload::File(file));
    }
    rewritten(file, file.size, ImageFormat::Png).await
}

/// Whether a PNG's kind of colour has alpha. What cannot be read is no such PNG.
async fn has_alpha(file: &InputFile) -> bool {
    let mut head = [0; PNG_COLOUR + 1];
    let Ok(mut png) = File::open(&file.path).await else {
        return false;
    };
    let read = png.read_exact(&mut head).await;
    read.is_ok() && head[PNG_COLOUR] & PNG_ALPHA != 0
}

async fn rewritten<'a>(
    file: &InputFile,
    size: PixelSize,
    format: ImageFormat,
) -> Result<Upload<'a>, ProviderError> {
    let _turn = DECODING.acquire().await;
    let file = file.clone();
    let work = move || {
        let raster = load(&file, size, Fit::Cover)?;
        encode(raster, format, Some(QUALITY))
    };
    let bytes = tokio::task::spawn_blocking(work).await.map_err(|_| {
        ProviderError::new(
            ProviderErrorKind::Retryable,
            "a reference picture could not be brought to size",
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

    /// Left half red, right half blue.
    fn halves(name: &str, width: u32, height: u32, format: ImageFormat) -> InputFile {
        let picture = RgbImage::from_fn(width, height, |x, _| {
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
        picture.save_with_format(&path, kind).unwrap();
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
    async fn files_that_fit_are_sent_as_they_are() {
        let file = halves("asis", 16, 8, ImageFormat::Jpeg);
        let there = readable(&file, READS).await.unwrap();
        assert!(matches!(there, Upload::File(_)));
        let there = covering(&file, PixelSize::new(16, 8), READS).await.unwrap();
        assert!(matches!(there, Upload::File(_)));
        remove(&file.path);
    }

    #[tokio::test]
    async fn formats_that_nobody_reads_become_png() {
        let file = halves("gif", 16, 8, ImageFormat::Gif);
        let there = readable(&file, READS).await.unwrap();
        let Upload::Bytes(bytes, ImageFormat::Png) = there else {
            panic!("{there:?}");
        };
        let picture = image::load_from_memory(&bytes).unwrap().into_rgb8();
        assert_eq!(picture.dimensions(), (16, 8));
        assert_eq!(*picture.get_pixel(1, 1), Rgb([250, 0, 0]));
        remove(&file.path);
    }

    #[tokio::test]
    async fn masks_have_an_alpha_channel() {
        let png = halves("mask", 8, 8, ImageFormat::Png);
        // Without alpha it is written anew, and what has it is left alone.
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
        assert_eq!(bytes[PNG_COLOUR] & PNG_ALPHA, PNG_ALPHA);
        std::fs::write(&png.path, &bytes).unwrap();
        assert!(matches!(mask(&png).await.unwrap(), Upload::File(_)));
        remove(&png.path);
    }

    #[tokio::test]
    async fn a_picture_of_another_ratio_is_cut_at_its_sides() {
        for (format, loss) in [(ImageFormat::Png, 0), (ImageFormat::Jpeg, 6)] {
            let file = halves(format.name(), 64, 16, format);
            let there = covering(&file, PixelSize::new(32, 32), READS)
                .await
                .unwrap();
            assert_eq!(there.format(), format);
            let Upload::Bytes(bytes, _) = there else {
                panic!("{there:?}");
            };
            let picture = image::load_from_memory(&bytes).unwrap().into_rgb8();
            assert_eq!(picture.dimensions(), (32, 32));
            let red = picture.get_pixel(4, 16).0;
            let blue = picture.get_pixel(27, 16).0;
            assert!(red[0] >= 250 - loss && red[2] <= loss, "{red:?}");
            assert!(blue[2] >= 250 - loss && blue[0] <= loss, "{blue:?}");
            remove(&file.path);
        }
    }
}
