//! Sora 2: `sora-2`. Docs page: docs/models/sora-2.md.

use super::family::Family;
use super::size::{FollowFirstFrame, FrameSizes};
use crate::fields::duration::Durations;
use crate::fields::field::Field;
use crate::image::format::ImageFormat;
use crate::image::size::row;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

static DURATIONS: Durations = Durations::Listed {
    values: &[8, 12],
    default: 8,
};
const FORMATS: &[ImageFormat] = &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp];

pub(super) static FAMILY: Family = Family {
    name: "sora-2",
    title: "Sora 2",
    about: "Videos of 8 or 12 seconds with audio, at 720p, from text or from one image. There is no reference video or audio.",
    models: &["sora-2"],
    fields: &[
        Field::prompt("The prompt: content, motion, camera and style.").max_chars(32_000),
        Field::image("The first frame; scaled and cropped to the video's size.")
            .aliases(&["input_reference"]),
        Field::images("The same as `image`, as a list. Only the first image is used."),
        Field::seconds(&DURATIONS),
        Field::duration(
            "duration",
            &DURATIONS,
            "The same as `seconds`, as an integer.",
        ),
        Field::size("The pixel size."),
        Field::ratio("aspect_ratio", "The aspect ratio, instead of `size`."),
        Field::resolution("The resolution tier; there is only one."),
    ],
    ignored: &[],
    durations: &DURATIONS,
    sizes: FrameSizes {
        tiers: &["720p"],
        default_tier: 0,
        rows: &[row("16:9", &[(1280, 720)]), row("9:16", &[(720, 1280)])],
        default_ratio: "16:9",
        follow: FollowFirstFrame::Never,
    },
    frames: 1,
    input_limits: InputLimits {
        formats: FORMATS,
        data_uris: FORMATS,
        first_only: true,
        ..InputLimits::DEFAULT
    },
    rules: &[],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
