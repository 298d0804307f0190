//! Seedance 1.0: `seedance-1.0-pro`, `-fast` and `-mini`. Docs page: docs/models/seedance-1.0.md.

use serde_json::Value;
use tollgate_core::{Adjustment, ApiError};

use super::family::Family;
use super::rules::{image_fields, tier_field};
use super::seedance;
use super::size::{FollowFirstFrame, FrameSizes};
use crate::fields::draft::Draft;
use crate::fields::duration::Durations;
use crate::fields::field::Field;
use crate::fields::spec::Rule;
use crate::image::size::row;
use crate::input::input_image::InputSource;
use crate::input::limits::InputLimits;
use crate::link_ttl::LinkTtl;
use crate::text::clip_json;

/// The model that accepts references.
const MINI: &str = "seedance-1.0-mini";
/// The model that does not accept a last frame.
const FAST: &str = "seedance-1.0-fast";
/// The number of images used as frames: first and last frame.
const FRAMES: usize = 2;

static DURATIONS: Durations = Durations::Between {
    min: 2,
    max: 12,
    default: 5,
};

const METADATA: &[Field] = &[
    seedance::RETURN_LAST_FRAME,
    seedance::CAMERA_FIXED,
    seedance::SEED,
    seedance::WATERMARK,
];

pub(super) static FAMILY: Family = Family {
    name: "seedance-1.0",
    title: "Seedance 1.0",
    about: "Videos without audio of 2 to 12 seconds up to 1080p, from text or images: the first is the first frame, a second the last frame.",
    models: &["seedance-1.0-pro", FAST, MINI],
    fields: &[
        seedance::PROMPT,
        Field::image("The first frame.").aliases(&["input_reference"]),
        Field::images(
            "First frame and last frame; with seedance-1.0-mini three or four are references. seedance-1.0-fast uses the first only.",
        ),
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
        ("return_last_frame", seedance::SEND_IN_METADATA),
        ("camera_fixed", seedance::SEND_IN_METADATA),
        ("seed", seedance::SEND_IN_METADATA),
        ("watermark", seedance::SEND_IN_METADATA),
    ],
    durations: &DURATIONS,
    sizes: FrameSizes {
        tiers: seedance::TIERS,
        default_tier: seedance::USUAL_TIER,
        rows: &[
            row("16:9", &[(864, 480), (1248, 704), (1920, 1088)]),
            row("4:3", &[(736, 544), (1120, 832), (1664, 1248)]),
            row("1:1", &[(640, 640), (960, 960), (1440, 1440)]),
            row("3:4", &[(544, 736), (832, 1120), (1248, 1664)]),
            row("9:16", &[(480, 864), (704, 1248), (1088, 1920)]),
            row("21:9", &[(960, 416), (1504, 640), (2176, 928)]),
        ],
        default_ratio: "16:9",
        follow: FollowFirstFrame::ByValue("adaptive"),
    },
    frames: FRAMES,
    input_limits: InputLimits {
        max_count: 4,
        ..seedance::INPUTS
    },
    rules: &[
        seedance::PROMPT_OR_IMAGES,
        Rule {
            text: "seedance-1.0-pro and seedance-1.0-fast take at most 2 images, seedance-1.0-mini 4.",
            apply: |draft| {
                let count = draft.references();
                if count > FRAMES && draft.base_model != MINI {
                    return Err(ApiError::invalid(format!(
                        "{} take at most {FRAMES} images with {}: first and last frame, got {count}",
                        image_fields(draft),
                        draft.model
                    )));
                }
                Ok(())
            },
        },
        Rule {
            text: "seedance-1.0-fast does not support a last frame: a second image is ignored.",
            apply: drop_last_frame,
        },
        Rule {
            text: "With references (three or four images) 1080p is not supported, and `metadata.camera_fixed` has no effect.",
            apply: |draft| {
                let count = draft.references();
                if count <= FRAMES {
                    return Ok(());
                }
                if draft.text("resolution") == Some("1080p") {
                    return Err(ApiError::invalid(format!(
                        "`{}` must be 480p or 720p with references, got 1080p and {count} images",
                        tier_field(draft)
                    )));
                }
                draft.drop_member("metadata", "camera_fixed", "no effect with references");
                Ok(())
            },
        },
    ],
    link_ttl: LinkTtl::Standard,
    safety_review: false,
};

fn drop_last_frame(draft: &mut Draft<'_>) -> Result<(), ApiError> {
    if draft.base_model != FAST || draft.references() != FRAMES {
        return Ok(());
    }
    if let Some(last) = draft.inputs.pop() {
        let requested = match &last.source {
            InputSource::Url(url) => clip_json(&Value::from(url.as_str())),
            InputSource::Data { .. } => "image data".into(),
        };
        let why = "this model does not support a last frame";
        draft
            .adjustments
            .push(Adjustment::new(last.field, requested, Value::Null, why));
    }
    Ok(())
}
