//! [`InputLimits`]: the limits on number, format, file size and dimensions of a family's reference images.

use tollgate_core::ApiError;

use crate::image::format::ImageFormat;
use crate::image::metadata::ImageMetadata;

/// The number of bytes in a megabyte in these limits: 1024 × 1024.
pub(crate) const MB: u64 = 1_048_576;

/// Limits of the reference images and masks of a family. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub struct InputLimits {
    /// Largest number of references; 0 if the family accepts none.
    pub max_count: usize,
    /// File formats accepted from URLs and uploads.
    pub formats: &'static [ImageFormat],
    /// File formats accepted as data URIs. Empty if data URIs are rejected.
    pub data_uris: &'static [ImageFormat],
    /// Largest file size in bytes.
    pub max_bytes: u64,
    /// Smallest width and height in pixels.
    pub min_side: u32,
    /// Largest width and height in pixels.
    pub max_side: u32,
    /// Largest ratio of the longer side to the shorter one; infinite if there is no limit.
    pub max_ratio: f64,
    /// Largest width × height.
    pub max_pixels: u64,
    /// Whether only the first reference is used; the others are reported as adjustments.
    pub first_only: bool,
}

impl InputLimits {
    /// No input images.
    pub const NONE: Self = Self {
        max_count: 0,
        ..Self::DEFAULT
    };

    /// The limits of models whose provider documents none: the formats and file size of uploads, and dimensions that image decoders can handle.
    pub const DEFAULT: Self = Self {
        max_count: 16,
        formats: &[
            ImageFormat::Jpeg,
            ImageFormat::Png,
            ImageFormat::Webp,
            ImageFormat::Gif,
        ],
        data_uris: &[],
        max_bytes: 20 * MB,
        min_side: 1,
        max_side: 32_768,
        max_ratio: f64::INFINITY,
        max_pixels: 64_000_000,
        first_only: false,
    };

    /// Checks all limits except the number of images. `field` names the image in errors.
    ///
    /// # Errors
    /// 400 that names the field and the limit.
    pub(crate) fn check(&self, field: &str, metadata: &ImageMetadata) -> Result<(), ApiError> {
        let size = metadata.size;
        let (long, short) = (size.width.max(size.height), size.width.min(size.height));
        self.check_bytes(field, metadata.bytes)?;
        let problem = if !self.formats.contains(&metadata.format) {
            format!(
                "must be {}, got {}",
                format_names(self.formats),
                metadata.format.name()
            )
        } else if short < self.min_side || long > self.max_side {
            format!(
                "must be {} to {} pixels on each side, got {size}",
                self.min_side, self.max_side
            )
        } else if f64::from(long) > f64::from(short) * self.max_ratio {
            let k = self.max_ratio;
            format!("must have a ratio from 1:{k} to {k}:1, got {size}")
        } else if size.pixels() > self.max_pixels {
            let max = self.max_pixels;
            format!(
                "must have at most {max} pixels, got {size} = {}",
                size.pixels()
            )
        } else {
            return Ok(());
        };
        Err(ApiError::invalid(format!("`{field}` {problem}")))
    }

    /// Checks only the file size.
    ///
    /// # Errors
    /// 400 that names the field and the limit.
    pub(crate) fn check_bytes(&self, field: &str, bytes: u64) -> Result<(), ApiError> {
        if bytes > self.max_bytes {
            let max = self.max_bytes;
            return Err(ApiError::invalid(format!(
                "`{field}` must be at most {max} bytes ({} MB), got {bytes} bytes",
                max / MB
            )));
        }
        Ok(())
    }
}

/// The names of `formats`, separated by commas.
pub(crate) fn format_names(formats: &[ImageFormat]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    names.join(", ")
}
