//! sora-2 (SPEC.md › Video generation).

use super::family::Family;
use super::size::{Follow, FrameSizes};
use crate::LinkLife;
use crate::form::field::Field;
use crate::form::length::Lengths;
use crate::image::ImageFormat;
use crate::image::size::row;
use crate::input::InputRules;

static LENGTHS: Lengths = Lengths::Listed {
    values: &[8, 12],
    default: 8,
};
const FORMATS: &[ImageFormat] = &[ImageFormat::Jpeg, ImageFormat::Png, ImageFormat::Webp];

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "sora-2",
    title: "Sora 2",
    about: "Films of 8 or 12 seconds with sound, at 720p, from text or from one image. There is no reference video or audio.",
    models: &["sora-2"],
    fields: &[
        Field::prompt("Content, motion, camera and style.").at_most(32_000),
        Field::picture("The image that the film starts from; scaled and cropped to the frame.")
            .also(&["input_reference"]),
        Field::pictures("The same as a list. Only the first is used."),
        Field::seconds(&LENGTHS),
        Field::length("duration", &LENGTHS, "The same as a number."),
        Field::size("The frame, as pixels."),
        Field::ratio("aspect_ratio", "The frame's ratio, in place of `size`."),
        Field::resolution("The tier; there is only one."),
    ],
    ignored: &[],
    lengths: &LENGTHS,
    sizes: FrameSizes {
        tiers: &["720p"],
        default_tier: 0,
        rows: &[row("16:9", &[(1280, 720)]), row("9:16", &[(720, 1280)])],
        default_ratio: "16:9",
        follow: Follow::Never,
    },
    frames: 1,
    inputs: InputRules {
        formats: FORMATS,
        data_uris: FORMATS,
        only_first: true,
        ..InputRules::SANE
    },
    rules: &[],
    links: LinkLife::Usual,
    safety_review: false,
};
