//! Fields, input limits and the rule that the Gemini image families share.

use tollgate_core::ApiError;

use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::input::limits::{InputLimits, MB};

pub(super) const SIZE: Field =
    Field::size("A ratio. Default: the one nearest to that of the first reference image, or 1:1.");

pub(super) const OFFICIAL_FALLBACK: Field = Field::flag(
    "official_fallback",
    "No effect, and reported as an adjustment if true: the operator decides which channels serve a model. Not with the `-official` model.",
)
.default_to(DefaultValue::Flag(false));

pub(super) const REFERENCES: Field = Field::image_urls(
    "URLs or data URIs of reference images; their presence selects image-to-image.",
);

/// At most 14 images of 10 MB each.
pub(super) const INPUTS: InputLimits = InputLimits {
    max_count: 14,
    formats: &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp],
    data_uris: &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp],
    max_bytes: 10 * MB,
    ..InputLimits::DEFAULT
};

/// The fallback flag has no effect for a model that is the official channel already.
pub(super) const FALLBACK_NOT_WITH_OFFICIAL: Rule = Rule {
    text: "`official_fallback: true` must not be used with the `-official` model.",
    apply: |draft| {
        if draft.flag("official_fallback") && draft.base_model.ends_with("-official") {
            return Err(ApiError::invalid(format!(
                "`official_fallback` must not be true with {}: it is the official channel already",
                draft.model
            )));
        }
        Ok(())
    },
};
