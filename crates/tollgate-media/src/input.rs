//! Reference images and masks: how a request names them, and what their files must be.

pub(crate) mod data_uri;
mod url;

use serde_json::Value;
use tollgate_core::{Adjustment, ApiError};

pub(crate) use url::check as check_url;

use crate::form::Draft;
use crate::form::values::wrong;
use crate::image::{ImageFacts, ImageFormat};
use crate::text;

/// One megabyte (DECISIONS.md › Values).
pub(crate) const MB: u64 = 1_048_576;

/// What reference images of a family must be. Bounds are inclusive.
#[derive(Debug, Clone, Copy)]
pub struct InputRules {
    /// Greatest number of references; 0 for families that take none.
    pub max_count: usize,
    /// File formats taken from URLs and uploads.
    pub formats: &'static [ImageFormat],
    /// File formats taken as data URIs. Empty: data URIs are refused.
    pub data_uris: &'static [ImageFormat],
    /// Greatest file size in bytes.
    pub max_bytes: u64,
    /// Smallest width and height in pixels.
    pub min_side: u32,
    /// Greatest width and height in pixels.
    pub max_side: u32,
    /// Greatest ratio of the long side to the short one.
    pub max_ratio: f64,
    /// Greatest width × height.
    pub max_pixels: u64,
    /// Whether only the first reference is used; the others are adjustments.
    pub only_first: bool,
}

impl InputRules {
    /// Takes no pictures.
    pub const NONE: Self = Self {
        max_count: 0,
        ..Self::SANE
    };

    /// What applies where SPEC.md states nothing: the uploads' formats and size, and caps that every
    /// decoder can live with.
    pub const SANE: Self = Self {
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
        only_first: false,
    };
}

/// A reference image or mask of a submission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// The request field it came in, such as `image_urls[2]`.
    pub field: String,
    /// What it is for.
    pub role: InputRole,
    /// Where its bytes are.
    pub source: InputSource,
}

/// What a picture is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputRole {
    /// The reference of that index.
    Reference(usize),
    /// The inpainting mask.
    Mask,
}

/// Where a submission's picture is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputSource {
    /// At an http or https URL, at most 8192 bytes long.
    Url(String),
    /// In the request itself, as a data URI.
    Data {
        /// What its header says; the family's limits are still to be checked
        /// ([`AnyFamily::check_input`](crate::AnyFamily::check_input)).
        facts: ImageFacts,
        /// The file.
        bytes: Vec<u8>,
    },
}

/// Reads `image_urls`. An empty list counts as absent.
pub(crate) fn read_references(
    draft: &mut Draft<'_>,
    field: &str,
    value: &Value,
) -> Result<(), ApiError> {
    let rules = draft.form.inputs;
    let Value::Array(items) = value else {
        return Err(wrong(field, "an array of URL strings", value));
    };
    if items.len() > rules.max_count {
        return Err(ApiError::invalid(format!(
            "`{field}` takes at most {} images, got {}",
            rules.max_count,
            items.len()
        )));
    }
    for (index, item) in items.iter().enumerate() {
        let path = format!("{field}[{index}]");
        let source = read_source(&rules, &path, item)?;
        add_reference(draft, path, item, source);
    }
    Ok(())
}

/// Takes one more reference image, which came as `item`; only the first where no more are used.
pub(crate) fn add_reference(
    draft: &mut Draft<'_>,
    path: String,
    item: &Value,
    source: InputSource,
) {
    let index = draft.references();
    if draft.form.inputs.only_first && index > 0 {
        let why = "only the first image is used as the reference";
        let asked = text::clip(item);
        draft
            .adjustments
            .push(Adjustment::new(path, asked, Value::Null, why));
        return;
    }
    draft.inputs.push(Input {
        field: path,
        role: InputRole::Reference(index),
        source,
    });
}

/// Reads `mask_url`.
pub(crate) fn read_mask(draft: &mut Draft<'_>, field: &str, value: &Value) -> Result<(), ApiError> {
    let source = read_source(&draft.form.inputs, field, value)?;
    draft.inputs.push(Input {
        field: field.to_owned(),
        role: InputRole::Mask,
        source,
    });
    Ok(())
}

fn read_source(rules: &InputRules, path: &str, value: &Value) -> Result<InputSource, ApiError> {
    let Some(text) = value.as_str() else {
        let wants = "a string: the image's URL itself, not an object or a number";
        return Err(wrong(path, wants, value));
    };
    read_text(rules, path, text)
}

/// A picture given as a URL or data URI.
pub(crate) fn read_text(
    rules: &InputRules,
    path: &str,
    text: &str,
) -> Result<InputSource, ApiError> {
    if data_uri::is_data_uri(text) {
        return data_uri::read(rules, path, text);
    }
    check_url(path, text, url::MAX_URL)?;
    Ok(InputSource::Url(text.to_owned()))
}

impl InputRules {
    /// 400 that names `field` unless the file is within the limits.
    pub(crate) fn check(&self, field: &str, facts: &ImageFacts) -> Result<(), ApiError> {
        let size = facts.size;
        let (long, short) = (size.width.max(size.height), size.width.min(size.height));
        self.check_bytes(field, facts.bytes)?;
        let problem = if !self.formats.contains(&facts.format) {
            format!(
                "must be {}, got {}",
                names(self.formats),
                facts.format.name()
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

    fn check_bytes(&self, field: &str, bytes: u64) -> Result<(), ApiError> {
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

/// Formats as a list in a sentence.
pub(crate) fn names(formats: &[ImageFormat]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    names.join(", ")
}
