//! Fields, sizes, input limits and the rule that the Seedance families share.

use super::rules::prompt_or_images;
use crate::fields::field::{DefaultValue, Field};
use crate::fields::spec::Rule;
use crate::image::format::ImageFormat;
use crate::image::size::{Row, row};
use crate::input::limits::{InputLimits, MB};

pub(super) const PROMPT: Field = Field::text(
    "prompt",
    "The prompt: content, motion, camera and style. Required without an image.",
);
pub(super) const SIZE: Field = Field::size(
    "A pixel size from the table, or one with a ratio of the table and as many lines as the tier has.",
);
pub(super) const RATIO: Field = Field::ratio(
    "aspect_ratio",
    "The aspect ratio. `adaptive` selects the one nearest to that of the first frame, which is the default if there is a first frame.",
);
pub(super) const RESOLUTION: Field = Field::resolution("The resolution tier.");

pub(super) const GENERATE_AUDIO: Field =
    Field::flag("generate_audio", "Whether the video has audio.")
        .default_to(DefaultValue::Flag(true));
pub(super) const RETURN_LAST_FRAME: Field = Field::flag(
    "return_last_frame",
    "Whether to return the last frame too, as `metadata.last_frame_url`.",
)
.default_to(DefaultValue::Flag(false));
pub(super) const CAMERA_FIXED: Field = Field::flag(
    "camera_fixed",
    "Whether the camera is fixed; no effect with references.",
);
pub(super) const SEED: Field = Field::int(
    "seed",
    -1,
    4_294_967_295,
    "The same seed and parameters give similar results; -1 means a random one.",
);
pub(super) const WATERMARK: Field =
    Field::flag("watermark", "Whether a visible watermark is added.")
        .default_to(DefaultValue::Flag(false));

/// The hint for clients that send a field of `metadata` at the top level.
pub(super) const SEND_IN_METADATA: &str = "send it in `metadata`";

const FORMATS: &[ImageFormat] = &[
    ImageFormat::Jpeg,
    ImageFormat::Png,
    ImageFormat::Webp,
    ImageFormat::Gif,
    ImageFormat::Bmp,
];

/// The provider's limits: aspect ratio 0.4 to 2.5, 300 to 6000 pixels per side, 30 MB.
pub(super) const INPUTS: InputLimits = InputLimits {
    formats: FORMATS,
    data_uris: FORMATS,
    max_bytes: 30 * MB,
    min_side: 300,
    max_side: 6000,
    max_ratio: 2.5,
    ..InputLimits::DEFAULT
};

pub(super) const TIERS: &[&str] = &["480p", "720p", "1080p"];
/// The index of the default tier, for requests that set none.
pub(super) const USUAL_TIER: usize = 1;

/// The frame sizes of the provider's models 1.5 and 2.0.
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
