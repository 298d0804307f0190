//! What the three Gemini image families share: fields, input limits and the rule on the fallback flag.

use tollgate_core::ApiError;

use super::family::Rule;
use super::field::{Field, Preset};
use super::input::{InputRules, MB};
use super::job::ImageFormat;

pub(super) const SIZE: Field =
    Field::size("A ratio. Without it, the one nearest to the first reference's, else 1:1.");

pub(super) const OFFICIAL_FALLBACK: Field = Field::flag(
    "official_fallback",
    "Whether the official channel may be used when the usual one cannot. Not with the `-official` model.",
)
.or(Preset::Flag(false));

pub(super) const REFERENCES: Field = Field::references(
    "URLs or data URIs of reference images; their presence selects image-to-image.",
);

/// At most 14 pictures of 10 MB each.
pub(super) const INPUTS: InputRules = InputRules {
    max_count: 14,
    formats: &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp],
    data_uris: &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp],
    max_bytes: 10 * MB,
    ..InputRules::SANE
};

/// The fallback flag makes no sense for a model that is the official channel already.
pub(super) const FALLBACK_NOT_WITH_OFFICIAL: Rule = Rule {
    text: "`official_fallback: true` must not be used with the `-official` model.",
    apply: |draft| {
        if draft.flag("official_fallback") && draft.like.ends_with("-official") {
            return Err(ApiError::invalid(format!(
                "`official_fallback` must not be true with {}: it is the official channel already",
                draft.like
            )));
        }
        Ok(())
    },
};
