//! What the two Seedream families share: fields, input limits and the group rule.

use super::field::{Field, Preset};
use super::input::{InputRules, MB};
use super::job::ImageFormat;

pub(super) const SIZE: Field = Field::size(
    "A ratio, or `auto`: the one nearest to the first reference's; needs `image_urls`.",
);

pub(super) const REFERENCES: Field = Field::references(
    "URLs or data URIs of reference images; their presence selects image-to-image.",
);

pub(super) const GROUP: Field = Field::choice(
    "sequential_image_generation",
    &["disabled", "auto"],
    "`disabled` makes one picture even with several references, `auto` a group.",
)
.or(Preset::Text("disabled"));

pub(super) const GROUP_OPTIONS: Field = Field::object(
    "sequential_image_generation_options",
    &[Field::int(
        "max_images",
        1,
        15,
        "How many pictures the group may have.",
    )],
    "Used when `sequential_image_generation` is `auto`.",
);

pub(super) const WATERMARK: Field =
    Field::flag("watermark", "Whether a visible watermark is added.").or(Preset::Flag(false));

/// Each side longer than 14 px, the area at most 6000x6000.
pub(super) const INPUTS: InputRules = InputRules {
    max_count: 10,
    data_uris: &[ImageFormat::Jpeg, ImageFormat::Png],
    max_bytes: 10 * MB,
    min_side: 15,
    max_ratio: 3,
    max_pixels: 6000 * 6000,
    ..InputRules::SANE
};
