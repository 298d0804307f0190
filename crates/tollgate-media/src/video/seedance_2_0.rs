//! seedance-2.0 and seedance-2.0-fast (SPEC.md › Video generation; the values are the provider's).

use tollgate_core::ApiError;

use super::family::Family;
use super::read::tier_field;
use super::seedance;
use super::size::{Follow, FrameSizes};
use crate::LinkLife;
use crate::form::Rule;
use crate::form::field::Field;
use crate::form::length::Lengths;
use crate::input::InputRules;

/// The model without the highest tier.
const FAST: &str = "seedance-2.0-fast";

static LENGTHS: Lengths = Lengths::Between {
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

/// The declaration.
pub(super) static FAMILY: Family = Family {
    name: "seedance-2.0",
    title: "Seedance 2.0",
    about: "Films of 4 to 15 seconds with sound up to 1080p, from text, from one image as the first frame, or with up to 9 images as references.",
    models: &["seedance-2.0", FAST],
    fields: &[
        seedance::PROMPT,
        Field::picture("The first frame.").also(&["input_reference"]),
        Field::pictures("One: the first frame. Several: references."),
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
    frames: 1,
    inputs: InputRules {
        max_count: 9,
        ..seedance::INPUTS
    },
    rules: &[
        seedance::PROMPT_OR_IMAGES,
        Rule {
            text: "seedance-2.0-fast makes no 1080p.",
            apply: |draft| {
                if draft.like == FAST && draft.text("resolution") == Some("1080p") {
                    return Err(ApiError::invalid(format!(
                        "`{}` must be 480p or 720p for {FAST}, got 1080p",
                        tier_field(draft)
                    )));
                }
                Ok(())
            },
        },
    ],
    links: LinkLife::Usual,
    safety_review: false,
};
