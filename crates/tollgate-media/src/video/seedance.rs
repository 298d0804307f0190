//! What the Seedance families share: fields, input limits, frames and rules.

use super::read::prompt_or_images;
use crate::form::Rule;
use crate::form::field::{Field, Preset};
use crate::image::ImageFormat;
use crate::image::size::{Row, row};
use crate::input::{InputRules, MB};

pub(super) const PROMPT: Field = Field::text(
    "prompt",
    "Content, motion, camera and style. Required without an image.",
);
pub(super) const SIZE: Field = Field::size(
    "The frame, as pixels of the table, or of a table's ratio with the tier's number of lines.",
);
pub(super) const RATIO: Field = Field::ratio(
    "aspect_ratio",
    "The frame's ratio; `adaptive`: the one of the table nearest to the first frame's, as it is by default when there is a first frame.",
);
pub(super) const RESOLUTION: Field = Field::resolution("The tier.");

pub(super) const GENERATE_AUDIO: Field =
    Field::flag("generate_audio", "Whether the film has sound.").or(Preset::Flag(true));
pub(super) const RETURN_LAST_FRAME: Field = Field::flag(
    "return_last_frame",
    "Whether the last frame comes too, as `metadata.last_frame_url`.",
)
.or(Preset::Flag(false));
pub(super) const CAMERA_FIXED: Field = Field::flag(
    "camera_fixed",
    "Whether the camera stands still; no effect with references.",
);
pub(super) const SEED: Field = Field::int(
    "seed",
    -1,
    4_294_967_295,
    "The same seed and parameters give similar results; -1 is any.",
);
pub(super) const WATERMARK: Field =
    Field::flag("watermark", "Whether a visible mark is added.").or(Preset::Flag(false));

/// Hints for those who send what stands in `metadata` beside it.
pub(super) const IN_METADATA: &[(&str, &str)] = &[
    ("generate_audio", "it is read from `metadata`"),
    ("return_last_frame", "it is read from `metadata`"),
    ("camera_fixed", "it is read from `metadata`"),
    ("seed", "it is read from `metadata`"),
    ("watermark", "it is read from `metadata`"),
];

const FORMATS: &[ImageFormat] = &[
    ImageFormat::Jpeg,
    ImageFormat::Png,
    ImageFormat::Webp,
    ImageFormat::Gif,
    ImageFormat::Bmp,
];

/// The provider's limits: 0.4 to 2.5, 300 to 6000 pixels a side, 30 MB.
pub(super) const INPUTS: InputRules = InputRules {
    formats: FORMATS,
    data_uris: FORMATS,
    max_bytes: 30 * MB,
    min_side: 300,
    max_side: 6000,
    max_ratio: 2.5,
    ..InputRules::SANE
};

pub(super) const TIERS: &[&str] = &["480p", "720p", "1080p"];
/// Index of the tier of a request that names none.
pub(super) const USUAL_TIER: usize = 1;

/// The provider's frames of 1.5 and 2.0.
pub(super) const ROWS: &[Row] = &[
    row("16:9", &[(864, 496), (1280, 720), (1920, 1080)]),
    row("4:3", &[(752, 560), (1112, 834), (1664, 1248)]),
    row("1:1", &[(640, 640), (960, 960), (1440, 1440)]),
    row("3:4", &[(560, 752), (834, 1112), (1248, 1664)]),
    row("9:16", &[(496, 864), (720, 1280), (1080, 1920)]),
    row("21:9", &[(992, 432), (1470, 630), (2206, 946)]),
];

pub(super) const PROMPT_OR_IMAGES: Rule = Rule {
    text: "`prompt` is required for text-to-video and optional with an image.",
    apply: prompt_or_images,
};
