//! seedance-1.5-pro (SPEC.md › Video generation; the values are the provider's).

use super::family::Family;
use super::seedance;
use super::size::{Follow, FrameSizes};
use crate::LinkLife;
use crate::form::field::Field;
use crate::form::length::Lengths;
use crate::input::InputRules;

static LENGTHS: Lengths = Lengths::Between {
    min: 4,
    max: 12,
    default: 5,
};

const METADATA: &[Field] = &[
    seedance::GENERATE_AUDIO,
    seedance::RETURN_LAST_FRAME,
    seedance::CAMERA_FIXED,
    seedance::SEED,
    seedance::WATERMARK,
];

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "seedance-1.5-pro",
    title: "Seedance 1.5 Pro",
    about: "Films of 4 to 12 seconds with sound up to 1080p, from text or images: the first is the first frame, a second the last frame.",
    models: &["seedance-1.5-pro"],
    fields: &[
        seedance::PROMPT,
        Field::picture("The first frame.").also(&["input_reference"]),
        Field::pictures("First frame and last frame."),
        Field::seconds(&LENGTHS),
        Field::length("duration", &LENGTHS, "The same as a number."),
        seedance::SIZE,
        seedance::RATIO,
        seedance::RESOLUTION,
        Field::object("metadata", METADATA, "The provider's own parameters."),
    ],
    ignored: seedance::IN_METADATA,
    lengths: &LENGTHS,
    sizes: FrameSizes {
        tiers: seedance::TIERS,
        default_tier: seedance::USUAL_TIER,
        rows: seedance::ROWS,
        default_ratio: "16:9",
        follow: Follow::Named("adaptive"),
    },
    frames: 2,
    inputs: InputRules {
        max_count: 2,
        ..seedance::INPUTS
    },
    rules: &[seedance::PROMPT_OR_IMAGES],
    links: LinkLife::Usual,
    safety_review: false,
};
