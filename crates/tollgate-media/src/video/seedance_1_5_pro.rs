//! Seedance 1.5 Pro: `seedance-1.5-pro`. Docs page: docs/models/seedance-1.5-pro.md.

use super::family::Family;
use super::seedance;
use super::size::{FollowFirstFrame, FrameSizes};
use crate::fields::duration::Durations;
use crate::fields::field::Field;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

static DURATIONS: Durations = Durations::Between {
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

pub(super) static FAMILY: Family = Family {
    name: "seedance-1.5-pro",
    title: "Seedance 1.5 Pro",
    about: "Videos of 4 to 12 seconds with audio up to 1080p, from text or images: the first is the first frame, a second the last frame.",
    models: &["seedance-1.5-pro"],
    fields: &[
        seedance::PROMPT,
        Field::image("The first frame.").aliases(&["input_reference"]),
        Field::images("First frame and last frame."),
        Field::seconds(&DURATIONS),
        Field::duration(
            "duration",
            &DURATIONS,
            "The same as `seconds`, as an integer.",
        ),
        seedance::SIZE,
        seedance::RATIO,
        seedance::RESOLUTION,
        Field::object("metadata", METADATA, "Parameters of the provider."),
    ],
    ignored: &[
        ("generate_audio", seedance::SEND_IN_METADATA),
        ("return_last_frame", seedance::SEND_IN_METADATA),
        ("camera_fixed", seedance::SEND_IN_METADATA),
        ("seed", seedance::SEND_IN_METADATA),
        ("watermark", seedance::SEND_IN_METADATA),
    ],
    durations: &DURATIONS,
    sizes: FrameSizes {
        tiers: seedance::TIERS,
        default_tier: seedance::USUAL_TIER,
        rows: seedance::ROWS,
        default_ratio: "16:9",
        follow: FollowFirstFrame::ByValue("adaptive"),
    },
    frames: 2,
    input_limits: InputLimits {
        max_count: 2,
        ..seedance::INPUTS
    },
    rules: &[seedance::PROMPT_OR_IMAGES],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
