//! Reference images and masks: how a request names them, and what their files must be.

mod data_uri;
mod url;

use serde_json::Value;
use tollgate_core::{Adjustment, ApiError};

use super::draft::Draft;
use super::facts::ImageFacts;
use super::family::Family;
use super::field::Field;
use super::job::ImageFormat;
use super::values::wrong;
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
    pub max_ratio: u32,
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
        max_ratio: u32::MAX,
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
        /// ([`Family::check_input`]).
        facts: ImageFacts,
        /// The file.
        bytes: Vec<u8>,
    },
}

/// Reads `image_urls`. An empty list counts as absent.
pub(super) fn read_references(
    draft: &mut Draft<'_>,
    field: &Field,
    value: &Value,
) -> Result<(), ApiError> {
    let rules = draft.family().inputs;
    let Value::Array(items) = value else {
        return Err(wrong(field.name, "an array of URL strings", value));
    };
    if items.len() > rules.max_count {
        return Err(ApiError::invalid(format!(
            "`{}` takes at most {} images, got {}",
            field.name,
            rules.max_count,
            items.len()
        )));
    }
    for (index, item) in items.iter().enumerate() {
        let path = format!("{}[{index}]", field.name);
        let source = read_source(&rules, &path, item)?;
        if rules.only_first && index > 0 {
            let why = "only the first image is used as the reference";
            let asked = text::clip(item);
            draft
                .adjustments
                .push(Adjustment::new(path, asked, Value::Null, why));
            continue;
        }
        draft.inputs.push(Input {
            field: path,
            role: InputRole::Reference(index),
            source,
        });
    }
    Ok(())
}

/// Reads `mask_url`.
pub(super) fn read_mask(
    draft: &mut Draft<'_>,
    field: &Field,
    value: &Value,
) -> Result<(), ApiError> {
    let source = read_source(&draft.family().inputs, field.name, value)?;
    draft.inputs.push(Input {
        field: field.name.to_owned(),
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
    if data_uri::is_data_uri(text) {
        return data_uri::read(rules, path, text);
    }
    url::check(path, text)?;
    Ok(InputSource::Url(text.to_owned()))
}

impl Family {
    /// Checks a picture's file against the family's limits. `field` names it in errors;
    /// `first_reference`, where known, is what a mask's size must equal.
    pub fn check_input(
        &self,
        role: InputRole,
        field: &str,
        facts: &ImageFacts,
        first_reference: Option<&ImageFacts>,
    ) -> Result<(), ApiError> {
        self.inputs.check(field, facts)?;
        if role != InputRole::Mask {
            return Ok(());
        }
        if !facts.has_alpha {
            return Err(ApiError::invalid(format!(
                "`{field}` must have an alpha channel, got a {} without one",
                facts.format.name()
            )));
        }
        match first_reference {
            Some(first) if first.size != facts.size => Err(ApiError::invalid(format!(
                "`{field}` must have the size of the first reference image ({}), got {}",
                first.size, facts.size
            ))),
            _ => Ok(()),
        }
    }
}

impl InputRules {
    fn check(&self, field: &str, facts: &ImageFacts) -> Result<(), ApiError> {
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
        } else if u64::from(long) > u64::from(short) * u64::from(self.max_ratio) {
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
