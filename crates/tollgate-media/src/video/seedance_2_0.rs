//! Seedance 2.0: `seedance-2.0` and `seedance-2.0-fast`. Docs page: docs/models/seedance-2.0.md.

use tollgate_core::ApiError;

use super::family::Family;
use super::rules::tier_field;
use super::seedance;
use super::size::{FollowFirstFrame, FrameSizes};
use crate::fields::duration::Durations;
use crate::fields::field::Field;
use crate::fields::spec::Rule;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;

/// The model that does not support the highest tier.
const FAST: &str = "seedance-2.0-fast";

static DURATIONS: Durations = Durations::Between {
    min: 4,
    max: 15,
    default: 5,
};

const METADATA: &[Field] = &[
    seedance::GENERATE_AUDIO,
    seedance::RETURN_LAST_FRAME,
    seedance::SEED,
    seedance::WATERMARK,
];

pub(super) static FAMILY: Family = Family {
    name: "seedance-2.0",
    title: "Seedance 2.0",
    about: "Videos of 4 to 15 seconds with audio up to 1080p, from text, from one image as the first frame, or with up to 9 images as references.",
    models: &["seedance-2.0", FAST],
    fields: &[
        seedance::PROMPT,
        Field::image("The first frame.").aliases(&["input_reference"]),
        Field::images("One: the first frame. Several: references."),
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
    frames: 1,
    input_limits: InputLimits {
        max_count: 9,
        ..seedance::INPUTS
    },
    rules: &[
        seedance::PROMPT_OR_IMAGES,
        Rule {
            text: "seedance-2.0-fast does not support 1080p.",
            apply: |draft| {
                if draft.base_model == FAST && draft.text("resolution") == Some("1080p") {
                    return Err(ApiError::invalid(format!(
                        "`{}` must be 480p or 720p for {}, got 1080p",
                        tier_field(draft),
                        draft.model
                    )));
                }
                Ok(())
            },
        },
    ],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};
